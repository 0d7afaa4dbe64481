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
    ['an older version', { v: 2 }],
    ['a later version', { v: 5 }],
    ['no process', { boot: undefined }],
    ['no order', { seq: '7' }],
    ['no sessions', { sessions: null }],
    ['half a session', { sessions: [{ id: 'a' }] }],
    ['no explanations', { explanations: undefined }],
    ['an explanation without a name', { explanations: [{ title: 'Refused', text: 'Too dear.' }] }],
    ['an explanation without a title', { explanations: [{ id: 'refused', text: 'Too dear.' }] }],
    ['an explanation without a sentence', { explanations: [{ id: 'refused', title: 'Refused', text: null }] }]
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
    ['odometers', { description: null }],
    ['mechanisms', { id: 7 }],
    ['mechanisms', { name: undefined }],
    ['mechanisms', { kind: null }],
    ['mechanisms', { state: undefined }],
    ['mechanisms', { text: 0.2 }],
    ['mechanisms', { description: undefined }],
    ['mechanisms', { parts: undefined }],
    ['mechanisms', { parts: [{ name: 'site 1', value: 1.01, text: 'mu=0.2' }] }],
    ['mechanisms', { parts: [{ name: 'site 1', value: null, text: 'mu=0.2' }] }],
    ['mechanisms', { parts: [{ name: 1, value: 1, text: 'mu=0.2' }] }],
    ['mechanisms', { parts: [{ name: 'site 1', value: 1 }] }],
    ['headlines', { id: undefined }],
    ['headlines', { text: 12 }],
    ['releases', { id: -1 }],
    ['releases', { id: 1.5 }],
    ['releases', { question: undefined }],
    ['releases', { cost: 0.05 }],
    ['releases', { mu: '0.05' }],
    ['releases', { mu: null }],
    ['releases', { share: 0.0558 }],
    ['releases', { error: undefined }],
    ['releases', { error: 0.31 }],
    ['releases', { time: undefined }],
    ['releases', { status: undefined }],
    ['releases', { cell: undefined }],
    ['releases', { cell: 7 }],
    ['cells', { cell: null }],
    ['cells', { text: undefined }],
    ['cells', { description: undefined }],
    ['refusals', { id: '1' }],
    ['refusals', { question: undefined }],
    ['refusals', { message: undefined }],
    ['refusals', { explanation: null }],
    ['refusals', { time: undefined }],
    ['refusals', { cell: undefined }]
  ] as const)('refuses %s with one of %j', (list, changes) => {
    const [first, ...others] = sharedSession()[list];
    expect(isSession({ ...sharedSession(), [list]: [...others, { ...first, ...changes }] })).toBe(false);
  });

  const lists = ['headlines', 'gauges', 'filters', 'odometers', 'mechanisms', 'next', 'releases', 'cells', 'refusals'];

  it.each(lists)('refuses a session without a list of %s, and accepts an empty one', list => {
    expect(isSession({ ...sharedSession(), [list]: undefined })).toBe(false);
    expect(isSession({ ...sharedSession(), [list]: [] })).toBe(true);
  });

  it.each(['notice', 'warning', 'paused', 'individual'])('refuses a missing %s: silence must be said', name => {
    expect(isSession({ ...sharedSession(), [name]: undefined })).toBe(false);
  });

  it.each([undefined, null, -1, 2.5, '2'])('refuses a ledger with %s requests', count => {
    expect(isSession({ ...sharedSession(), count })).toBe(false);
  });

  it.each([{ text: undefined }, { code: undefined }, { code: 3 }])('refuses a next step with one of %j', changes => {
    const [first] = sharedSession(1).next;
    expect(isSession({ ...sharedSession(1), next: [{ ...first, ...changes }] })).toBe(false);
  });
});

describe('isSession, of a timeline,', () => {
  const { timeline } = sharedSession();
  const isGood = (changes: object): boolean => isSession({ ...sharedSession(), timeline: { ...timeline, ...changes } });
  const withPoint = (changes: object): boolean =>
    isGood({ points: [...timeline.points.slice(1), { ...timeline.points[0], ...changes }] });

  it('accepts one without a limit, without curves, or without points', () => {
    expect(isGood({ loss: { ...timeline.loss, limit: null } })).toBe(true);
    expect(isGood({ points: [] })).toBe(true);
    expect(isGood({ curves: [], points: timeline.points.map(point => ({ ...point, bounds: [] })) })).toBe(true);
  });

  it.each([
    { budget: undefined },
    { budget: { label: 'Share' } },
    { loss: null },
    { loss: { ...timeline.loss, limit: '1' } },
    { loss: { ...timeline.loss, limit: undefined } },
    { loss: { ...timeline.loss, label: 3 } },
    { curves: undefined },
    { curves: [{ id: 'mixture' }] },
    { points: undefined }
  ])('refuses %j', changes => {
    expect(isGood(changes)).toBe(false);
  });

  it.each([
    { id: -1 },
    { id: '0' },
    { spent: 1.01 },
    { spent: -0.01 },
    { spent: null },
    { bounds: null },
    { bounds: [0, '1', null] },
    { bounds: [0, undefined, null] },
    { text: undefined }
  ])('refuses a point with one of %j', changes => {
    expect(withPoint(changes)).toBe(false);
  });

  it('refuses bounds that are not parallel to the curves: one would be drawn as another', () => {
    expect(withPoint({ bounds: [0, 0.36] })).toBe(false);
    expect(withPoint({ bounds: [0, 0.36, null, 1] })).toBe(false);
  });
});
