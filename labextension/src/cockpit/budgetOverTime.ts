import { moment } from './tableParts';
import { percent } from '../dom/format';
import type { IMoment } from '../protocol/curation';
import type { ITimelineChart } from '../protocol/snapshot';
import { BUDGET_OVER_TIME, type IContents } from '../timeline/contents';
import { trans } from '../translation';

/** The share that is spent, at the times of the rows; the panel in the Lab shows it row by row. */
export const SPENT_OVER_TIME: IContents = {
  ...BUDGET_OVER_TIME,
  empty: () => trans.__('Nothing has been spent yet.'),
  words: ({ spent }) => (spent === null ? [] : [trans.__('%1 of the budget spent', percent(spent))])
};

/** A timeline whose points are at their times in seconds; rows of one second are a second apart, in their order. */
export function timelineOf(moments: readonly IMoment[]): ITimelineChart {
  let before = -1;
  const points = moments.map(({ time, spent, text }) => {
    const seconds = Math.floor(Date.parse(time) / 1000);
    before = Math.max(before + 1, Number.isNaN(seconds) ? 0 : seconds);
    const when = time === '' ? [] : [moment(time)];
    return { id: before, spent, bounds: [], text: [...when, text].join(' · ') };
  });
  const [first, last] = [moments[0], moments[moments.length - 1]];
  const span = first && last && first.time !== '' ? trans.__('%1 to %2', moment(first.time), moment(last.time)) : '';
  return {
    budget: { label: trans.__('Budget spent'), text: span },
    odometers: { label: '', end: null, text: '' },
    curves: [],
    points: moments.some(({ spent }) => spent === null) ? [] : points
  };
}
