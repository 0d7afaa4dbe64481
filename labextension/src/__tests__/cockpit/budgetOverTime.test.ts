import { expect, it } from 'vitest';

import { timelineOf } from '../../cockpit/budgetOverTime';
import type { IMoment } from '../../protocol/curation';

const moment = (time: string, spent: number | null): IMoment => ({ id: 1, time, spent, text: 'a question' });

it('points are at their times, each after the one before', () => {
  const start = Date.parse('2026-11-21T01:20:00Z') / 1000;
  const times = ['2026-11-21T01:20:00.100Z', '2026-11-21T01:20:00.200Z', '2026-11-21T01:21:00.000Z'];
  const { points } = timelineOf(times.map((time, index) => moment(time, index / 10)));
  expect(points.map(({ id }) => id - start)).toEqual([0, 1, 60]);
  expect(points.map(({ spent }) => spent)).toEqual([0, 0.1, 0.2]);
});

it('has no points without a budget or a time', () => {
  expect(timelineOf([moment('2026-11-21T01:20:00Z', null)]).points).toEqual([]);
  expect(timelineOf([moment('', 0)]).points).toHaveLength(1);
  expect(timelineOf([]).budget.text).toBe('');
});
