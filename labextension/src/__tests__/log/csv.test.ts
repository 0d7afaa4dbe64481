import { beforeEach, describe, expect, it, vi } from 'vitest';

import { csvName, toCsv } from '../../log/csv';
import { exportLog } from '../../log/exportLog';
import { FakeModel } from '../fakeModel';
import { release, releases, sharedSession } from '../fixture';

const HEADER = 'id,time,status,query,cost_fraction,cost,mu,estimate,value,low,high,error,cell_id\r\n';

describe('toCsv', () => {
  it('has a header and ends every line as RFC 4180 wants', () => {
    expect(toCsv([])).toBe(HEADER);
  });

  it('has one line for each release, oldest first, and nothing for what there is not', () => {
    const [mean, count] = sharedSession().log;
    expect(toCsv([mean, count].filter(row => row !== undefined))).toBe(
      `${HEADER}1,2026-11-21T01:19:41Z,failed,count of persons,11.16%,mu 0.0707,0.0707,,,,,,\r\n` +
        '2,2026-11-21T01:19:58Z,released,mean of mdvis by coins,5.58%,mu 0.05,0.05,5 groups,,,,± 0.31 at 95% or better (noise),3f2a-mean\r\n'
    );
  });

  it('has the released number and its interval as numbers, and in words', () => {
    const answer = { estimate: '5,908 (5,890 to 5,926)', value: 5908.25, low: 5890.5, high: 5926 };
    const line = toCsv([release(1, answer)]).slice(HEADER.length);
    expect(line).toContain(',"5,908 (5,890 to 5,926)",5908.25,5890.5,5926,,');
  });

  it.each([
    ['a, b', '"a, b"'],
    ['a "b"', '"a ""b"""'],
    ['a\nb', '"a\nb"'],
    ['a\rb', '"a\rb"'],
    ['a\r\nb', '"a\r\nb"'],
    ['"', '""""'],
    ['plain; text', 'plain; text'],
    [' spaces ', ' spaces ']
  ])('writes the question %j as %s', (question, field) => {
    const line = toCsv([release(1, { query: question })]).slice(HEADER.length);
    expect(line).toBe(`1,2026-11-21T01:20:00Z,released,${field},1%,mu 0.01,0.01,,,,,,\r\n`);
  });
});

describe('csvName', () => {
  it.each([
    ['rand-hie', 'rand-hie-log.csv'],
    ['rand-hie (rehearsal)', 'rand-hie (rehearsal)-log.csv'],
    ['../a/b:c', '..-a-b-c-log.csv']
  ])('makes a file name of %s', (name, file) => {
    expect(csvName(name)).toBe(file);
  });
});

describe('exportLog', () => {
  const saved: { name: string; text: Promise<string> }[] = [];
  let url = '';

  beforeEach(() => {
    saved.length = 0;
    let blob = new Blob();
    URL.createObjectURL = vi.fn((object: Blob) => {
      blob = object;
      url = 'blob:log';
      return url;
    });
    URL.revokeObjectURL = vi.fn();
    vi.spyOn(HTMLAnchorElement.prototype, 'click').mockImplementation(function (this: HTMLAnchorElement) {
      saved.push({ name: this.download, text: read(blob) });
    });
  });

  /** jsdom's blobs have no text(). */
  const read = (blob: Blob): Promise<string> =>
    new Promise(resolve => {
      const reader = new FileReader();
      reader.onload = (): void => resolve(reader.result as string);
      reader.readAsText(blob);
    });

  it('downloads every row under the name of the session', async () => {
    const model = new FakeModel();
    model.logs.set('rand-hie.dpnb', releases(1, 120));
    await exportLog(model, sharedSession());
    expect(saved.map(file => file.name)).toEqual(['rand-hie-log.csv']);
    expect((await saved[0]?.text)?.trimEnd().split('\r\n')).toHaveLength(121);
    expect(document.querySelector('a[download]')).toBeNull();
  });

  it('downloads nothing when the kernel is gone, rather than a part', async () => {
    await exportLog(new FakeModel(), sharedSession());
    expect(saved).toEqual([]);
  });

  it('downloads one file for two impatient clicks', async () => {
    const model = new FakeModel();
    model.logs.set('rand-hie.dpnb', releases(1, 3));
    await Promise.all([exportLog(model, sharedSession()), exportLog(model, sharedSession())]);
    expect(saved).toHaveLength(1);
  });
});
