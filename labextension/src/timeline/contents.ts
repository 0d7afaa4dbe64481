import { percent, roundedUp } from '../dom/format';
import type { ICurve, ITimelineChart, ITimelinePoint } from '../protocol/snapshot';
import type { ILine } from './timelineChart';
import { trans } from '../translation';

/** A curve of the legend, and the class that defines its colour and its dashes. */
export type LegendEntry = [curve: ICurve, className: string];

/** What a timeline shows of the points. */
export interface IContents {
  /** In the reader's language. */
  title(): string;
  /** What is shown before the first charge, in the reader's language. */
  empty(): string;
  className: string;
  axis(timeline: ITimelineChart): { label: string; text: string };
  /** The least value at which the scale ends. */
  end(timeline: ITimelineChart): number;
  /** A value that is marked by a line; null for none. */
  limit: number | null;
  lines(timeline: ITimelineChart): ILine[];
  legend(timeline: ITimelineChart): LegendEntry[];
  /** The headings of the table's columns. */
  headings(timeline: ITimelineChart): string[];
  /** One text for each heading. */
  values(point: ITimelinePoint): string[];
  /** What a point shows, in words. */
  words(point: ITimelinePoint, timeline: ITimelineChart): string[];
  format(value: number): string;
}

/** The budget that is spent. */
export const BUDGET_OVER_TIME: IContents = {
  title: () => trans.__('Budget over time'),
  empty: () => trans.__('No budget has been spent yet.'),
  className: 'dpnb-timeline-spent',
  axis: ({ budget }) => budget,
  end: () => 1,
  limit: 1,
  lines: ({ points }) => [{ id: 'spent', className: 'dpnb-timeline-steps', values: points.map(point => point.spent) }],
  legend: () => [],
  headings: () => [trans.__('Spent')],
  values: ({ spent }) => [spent === null ? '–' : percent(spent)],
  words: ({ spent }) => (spent === null ? [] : [trans.__('%1 of the budget spent', percent(spent))]),
  format: value => (value === 1 ? '100%' : percent(value))
};

/** What the odometers reported, on a scale of their own. */
export const ODOMETERS_OVER_TIME: IContents = {
  title: () => trans.__('Odometers over time'),
  empty: () => trans.__('Nothing has been charged yet.'),
  className: 'dpnb-timeline-loss',
  axis: ({ odometers }) => odometers,
  end: ({ odometers }) => odometers.end ?? 0,
  limit: null,
  lines: ({ curves, points }) =>
    curves.map(({ id }, index) => ({
      id,
      className: `dpnb-timeline-curve ${hue(index)}`,
      values: points.map(point => point.bounds[index] ?? null)
    })),
  legend: ({ curves }) => curves.map((curve, index) => [curve, hue(index)]),
  headings: ({ curves }) => curves.map(({ label }) => label),
  values: ({ bounds }) => bounds.map(value => (value === null ? '–' : bound(value))),
  words: ({ bounds }, { curves }) =>
    curves.map(({ label }, index) => {
      const value = bounds[index] ?? null;
      return value === null ? trans.__('%1 reports nothing', label) : `${label} ${bound(value)}`;
    }),
  format: value => bound(value)
};

/** Colours and dashes repeat after six curves. */
const hue = (index: number): string => `dpnb-mod-curve-${(index % 6) + 1}`;

/** A bound as text, rounded up. */
const bound = (value: number): string => roundedUp(value, 4);
