import { describe, expect, it } from 'vitest';

import { isSession, readSnapshot } from '../snapshot';
import { sharedSession, sharedSnapshot } from './fixture';

describe('readSnapshot', () => {
  it('accepts the snapshot that the Python tests share', () => {
    expect(readSnapshot({ dpnb: sharedSnapshot() })).toEqual(sharedSnapshot());
  });

  it('ignores fields of a newer kernel', () => {
    const sessions = [{ ...sharedSession(), curve: [1, 2] }];
    expect(readSnapshot({ dpnb: { ...sharedSnapshot(), sessions, later: true } })).toMatchObject({ sessions });
  });

  it.each([null, 3, 'dpnb', [], {}, { method: 'update' }])('leaves %j to others', data => {
    expect(readSnapshot(data)).toBeNull();
  });

  it.each([
    ['another version', { v: 2 }],
    ['no process', { boot: undefined }],
    ['no order', { seq: '7' }],
    ['no sessions', { sessions: null }],
    ['half a session', { sessions: [{ id: 'a' }] }]
  ])('does not guess at a snapshot with %s', (_, changes) => {
    expect(readSnapshot({ dpnb: { ...sharedSnapshot(), ...changes } })).toBe('unreadable');
  });
});

describe('isSession', () => {
  const gauge = sharedSession().gauges[0];

  it.each([-0.01, 1.01, Number.NaN, '0.5', undefined])('refuses a gauge at %s', value => {
    expect(isSession({ ...sharedSession(), gauges: [{ ...gauge, value }] })).toBe(false);
  });

  it.each([0, 1])('accepts a gauge at %s', value => {
    expect(isSession({ ...sharedSession(), gauges: [{ ...gauge, value }] })).toBe(true);
  });

  it.each([-0.01, 1.01, Number.NaN, '0.5', undefined])('refuses a filter at %s', value => {
    const [filter] = sharedSession().filters;
    expect(isSession({ ...sharedSession(), filters: [{ ...filter, value }] })).toBe(false);
  });

  it.each([
    ['filters', { id: 7 }],
    ['filters', { text: undefined }],
    ['filters', { description: null }],
    ['filters', { enforced: 'true' }],
    ['odometers', { label: undefined }],
    ['odometers', { reading: undefined }],
    ['odometers', { text: 0.52 }],
    ['odometers', { description: null }]
  ] as const)('refuses %s with one of %j', (list, changes) => {
    const [first, ...others] = sharedSession()[list];
    expect(isSession({ ...sharedSession(), [list]: [...others, { ...first, ...changes }] })).toBe(false);
  });

  it.each(['filters', 'odometers'])('refuses a session without a list of %s, and accepts an empty one', list => {
    expect(isSession({ ...sharedSession(), [list]: undefined })).toBe(false);
    expect(isSession({ ...sharedSession(), [list]: [] })).toBe(true);
  });

  it('refuses a missing notice: silence must be said', () => {
    expect(isSession({ ...sharedSession(), notice: undefined })).toBe(false);
  });
});
