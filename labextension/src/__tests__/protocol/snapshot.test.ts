import { describe, expect, it } from 'vitest';

import { isSessionSnapshot, readSnapshot } from '../../protocol/read';
import { VERSION } from '../../protocol/snapshot';
import { sharedSession, sharedSnapshot } from '../fixture';

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
    ['an older version', { version: VERSION - 1 }],
    ['a later version', { version: VERSION + 1 }],
    ['no process', { process_id: undefined }],
    ['no order', { seq: '7' }],
    ['no sessions', { sessions: null }],
    ['half a session', { sessions: [{ id: 'a' }] }],
    ['no explanations', { explanations: undefined }],
    ['an explanation without a name', { explanations: [{ title: 'Refused', text: 'Too expensive.' }] }],
    ['an explanation without a title', { explanations: [{ id: 'refused', text: 'Too expensive.' }] }],
    ['an explanation without a sentence', { explanations: [{ id: 'refused', title: 'Refused', text: null }] }]
  ])('does not guess at a snapshot with %s', (_, changes) => {
    expect(readSnapshot({ dpnb: { ...sharedSnapshot(), ...changes } })).toBe('unreadable');
  });
});

describe('isSessionSnapshot', () => {
  const gauge = sharedSession().gauges[0];

  it.each([-0.01, 1.01, Number.NaN, '0.5', undefined])('refuses a gauge at %s', value => {
    expect(isSessionSnapshot({ ...sharedSession(), gauges: [{ ...gauge, value }] })).toBe(false);
  });

  it.each([0, 1])('accepts a gauge at %s', value => {
    expect(isSessionSnapshot({ ...sharedSession(), gauges: [{ ...gauge, value }] })).toBe(true);
  });

  it.each([-0.01, 1.01, Number.NaN, '0.5', undefined])('refuses a filter at %s', value => {
    const [filter] = sharedSession().filters;
    expect(isSessionSnapshot({ ...sharedSession(), filters: [{ ...filter, value }] })).toBe(false);
  });

  it.each([
    ['filters', { id: 7 }],
    ['filters', { text: undefined }],
    ['filters', { description: null }],
    ['filters', { enforced: 'true' }],
    ['odometers', { label: undefined }],
    ['odometers', { kind: undefined }],
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
    ['log', { id: -1 }],
    ['log', { id: 1.5 }],
    ['log', { query: undefined }],
    ['log', { cost: 0.05 }],
    ['log', { mu: '0.05' }],
    ['log', { mu: null }],
    ['log', { cost_fraction: 0.0558 }],
    ['log', { error: undefined }],
    ['log', { error: 0.31 }],
    ['log', { time: undefined }],
    ['log', { status: undefined }],
    ['log', { cell_id: undefined }],
    ['log', { cell_id: 7 }],
    ['cell_costs', { cell_id: null }],
    ['cell_costs', { text: undefined }],
    ['cell_costs', { description: undefined }],
    ['refusals', { id: '1' }],
    ['refusals', { query: undefined }],
    ['refusals', { message: undefined }],
    ['refusals', { explanation: null }],
    ['refusals', { time: undefined }],
    ['refusals', { cell_id: undefined }]
  ] as const)('refuses %s with one of %j', (list, changes) => {
    const [first, ...others] = sharedSession()[list];
    expect(isSessionSnapshot({ ...sharedSession(), [list]: [...others, { ...first, ...changes }] })).toBe(false);
  });

  const lists = [
    'headlines',
    'gauges',
    'filters',
    'odometers',
    'mechanisms',
    'next_steps',
    'log',
    'cell_costs',
    'refusals'
  ];

  it.each(lists)('refuses a session without a list of %s, and accepts an empty one', list => {
    expect(isSessionSnapshot({ ...sharedSession(), [list]: undefined })).toBe(false);
    expect(isSessionSnapshot({ ...sharedSession(), [list]: [] })).toBe(true);
  });

  it.each(['notice', 'notice_explanation', 'odometers_paused', 'participation'])(
    'refuses a missing %s: silence must be said',
    name => {
      expect(isSessionSnapshot({ ...sharedSession(), [name]: undefined })).toBe(false);
    }
  );

  it.each([undefined, null, -1, 2.5, '2'])('refuses a ledger with %s requests', n_requests => {
    expect(isSessionSnapshot({ ...sharedSession(), n_requests })).toBe(false);
  });

  it.each([{ text: undefined }, { code: undefined }, { code: 3 }])('refuses a next step with one of %j', changes => {
    const [first] = sharedSession(1).next_steps;
    expect(isSessionSnapshot({ ...sharedSession(1), next_steps: [{ ...first, ...changes }] })).toBe(false);
  });
});

describe('isSessionSnapshot, of a timeline,', () => {
  const { timeline } = sharedSession();
  const isGood = (changes: object): boolean =>
    isSessionSnapshot({ ...sharedSession(), timeline: { ...timeline, ...changes } });
  const withPoint = (changes: object): boolean =>
    isGood({ points: [...timeline.points.slice(1), { ...timeline.points[0], ...changes }] });

  it('accepts one without an end, without curves, or without points', () => {
    expect(isGood({ odometers: { ...timeline.odometers, end: null } })).toBe(true);
    expect(isGood({ points: [] })).toBe(true);
    expect(isGood({ curves: [], points: timeline.points.map(point => ({ ...point, bounds: [] })) })).toBe(true);
  });

  it.each([
    { budget: undefined },
    { budget: { label: 'Share' } },
    { odometers: null },
    { odometers: { ...timeline.odometers, end: '1' } },
    { odometers: { ...timeline.odometers, end: undefined } },
    { odometers: { ...timeline.odometers, label: 3 } },
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
    { spent: undefined },
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
