import { describe, expect, it } from 'vitest';

import { cell, logCsv, LogRows } from '../../cockpit/logRows';
import { row } from './state';

describe('a cell of the export', () => {
  it.each([
    ['=HYPERLINK("http://x")', '\'=HYPERLINK("http://x")'],
    ['+1', "'+1"],
    ['-1', "'-1"],
    ['@SUM(A1)', "'@SUM(A1)"],
    ['\t=1', "'=1"],
    ['\r=1', "'=1"],
    ['\u0000=1', "'=1"],
    ['\tx', "'x"],
    [' =1', "' =1"],
    ['＝1', "'＝1"],
    ['count of rows', 'count of rows'],
    ['a\u0007b\u001b[2J\u202ec', 'ab[2Jc'],
    ['1 - 2', '1 - 2']
  ])('%j is %j', (text, safe) => expect(cell(text)).toBe(safe));

  it('is a number or empty as it is', () => {
    expect([cell(-3), cell(null)]).toEqual([-3, null]);
  });
});

it('the export is oldest first and quotes what a spreadsheet would execute', () => {
  expect(logCsv([row(2, { words: '=1+1, "x"' }), row(1, { actor: null })])).toBe(
    'id,time,actor,kind,status,words,cost\r\n' +
      '1,2026-11-21T01:20:00.000Z,,release,released,question 1,mu 0.1\r\n' +
      '2,2026-11-21T01:20:00.000Z,ana,release,released,"\'=1+1, ""x""",mu 0.1\r\n'
  );
});

it('rows are read again from the first that is not finished', () => {
  const rows = new LogRows();
  expect(rows.settled).toBe(0);
  rows.add([row(1), row(2), row(3)]);
  expect(rows.settled).toBe(3);
  rows.add([row(2, { status: 'reserved' })]);
  expect(rows.settled).toBe(1);
  rows.add([row(300)]);
  expect(rows.settled).toBe(200); // row 2 may stay unanswered for ever
});
