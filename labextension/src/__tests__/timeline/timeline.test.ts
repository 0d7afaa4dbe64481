import { beforeEach, describe, expect, it } from 'vitest';

import type { ITimelineChart } from '../../protocol/snapshot';
import { BUDGET_OVER_TIME, ODOMETERS_OVER_TIME } from '../../timeline/contents';
import { TimelineView } from '../../timeline/timeline';
import { indexForKey } from '../../timeline/timelineKeys';
import { found, press, texts } from '../fakeModel';
import { sharedSession } from '../fixture';

const { timeline } = sharedSession();

const host = document.createElement('div');
let budget: TimelineView;
let odometers: TimelineView;

beforeEach(() => {
  budget = new TimelineView(BUDGET_OVER_TIME);
  odometers = new TimelineView(ODOMETERS_OVER_TIME);
  host.replaceChildren(budget.node, odometers.node);
  document.body.replaceChildren(host);
});

function show(changes: Partial<ITimelineChart> = {}): HTMLElement {
  budget.update({ ...timeline, ...changes });
  odometers.update({ ...timeline, ...changes });
  return host;
}

const path = (selector: string): string | null => found<SVGElement>(host, selector).getAttribute('d');
const charts = (view = budget): HTMLElement => found(view.node, '[role=slider]');
const tip = (view = budget): string | null => found(view.node, '.dpnb-timeline-tip').textContent;

/** Every height of a path, in the drawing's units: 0 is the top, 1000 the bottom. */
const heights = (d: string | null): number[] =>
  [...(d ?? '').matchAll(/(?:M [\d.-]+|V) ([\d.-]+)/g)].map(match => Number(match[1]));

/** jsdom knows neither layout nor pointers. */
function pointAt(share: number, view = budget): void {
  for (const svg of host.querySelectorAll('.dpnb-timeline-plot svg')) {
    svg.getBoundingClientRect = (): DOMRect => new DOMRect(100, 0, 200, 90);
  }
  charts(view).dispatchEvent(new MouseEvent('pointermove', { clientX: 100 + 200 * share }));
}

if (!('DOMRect' in globalThis)) {
  class Rect {
    readonly left: number;
    constructor(
      x: number,
      readonly top: number,
      readonly width: number,
      readonly height: number
    ) {
      this.left = x;
    }
  }
  Object.assign(globalThis, { DOMRect: Rect });
}

describe('TimelineView', () => {
  it('says that nothing was spent instead of drawing', () => {
    show({ points: timeline.points.slice(0, 1) });
    expect(found(host, '.dpnb-timeline-empty').hidden).toBe(false);
    expect(found(host, '.dpnb-timeline-full').hidden).toBe(true);
    show();
    expect(found(host, '.dpnb-timeline-empty').hidden).toBe(true);
    expect(found(host, '.dpnb-timeline-full').hidden).toBe(false);
  });

  it('draws what was spent as steps: level up to a request, then straight up, and on past the last', () => {
    show();
    expect(path('.dpnb-timeline-steps')).toMatch(/^M 0 1000 H 333.3 V [\d.]+ H 666.7 V [\d.]+ H 1000$/);
    const [start, first, second] = heights(path('.dpnb-timeline-steps'));
    expect(start).toBe(1000);
    expect((1000 - (first ?? 0)) / (1000 - (second ?? 0))).toBeCloseTo(0.1116 / 0.167, 3);
  });

  it('marks the whole budget at one hundred per cent, below the upper edge', () => {
    show();
    const limit = Number(/^M 0 ([\d.]+) H 1000$/.exec(path('.dpnb-timeline-spent .dpnb-timeline-limit') ?? '')?.[1]);
    expect(limit).toBeGreaterThan(0);
    expect(limit).toBeLessThan(100);
    expect(found(host, '.dpnb-timeline-spent .dpnb-timeline-top').textContent).toBe('100%');
  });

  it('compares the odometers with nothing: their scale ends where they end when the budget is spent', () => {
    show();
    expect(path('.dpnb-timeline-loss .dpnb-timeline-limit')).toBe('');
    expect(found(host, '.dpnb-timeline-loss .dpnb-timeline-top').textContent).toBe('1.311');
    expect(odometers.node.textContent).toContain('up to 1.311, the mixture odometer when the budget is spent');
  });

  it('draws a curve for each odometer, told apart by more than colour', () => {
    show();
    const curves = [...host.querySelectorAll('.dpnb-timeline-curve')];
    expect(curves.map(curve => curve.getAttribute('data-curve'))).toEqual(['mixture', 'filter', 'stitched']);
    expect(new Set(curves.map(curve => curve.getAttribute('class'))).size).toBe(3);
    expect(texts(host, '.dpnb-timeline-entry')).toEqual(['Mixture', 'Filter (line)', 'Stitched']);
  });

  it('leaves a gap where a curve reports nothing', () => {
    show();
    expect(path('[data-curve=stitched].dpnb-timeline-curve')).toMatch(/^M 333.3 [\d.]+ H 666.7 V [\d.]+ H 1000$/);
    show({ points: timeline.points.map((point, i) => ({ ...point, bounds: [i === 1 ? null : 1, null, null] })) });
    expect(path('[data-curve=mixture].dpnb-timeline-curve')).toMatch(/^M 0 [\d.]+ H 333.3 M 666.7 [\d.]+ H 1000$/);
    expect(path('[data-curve=filter].dpnb-timeline-curve')).toBe('');
  });

  it('interrupts a curve while its odometer pauses, and draws no line from before to after', () => {
    const said = [1, 2, null, null, 3, null];
    const points = said.map((value, id) => ({ id, spent: id / 10, bounds: [value, 4], text: `${id}.` }));
    show({ odometers: { ...timeline.odometers, end: null }, curves: timeline.curves.slice(0, 2), points });
    // Level up to the request with which the pause begins, then nothing up to the one with which it ends.
    const [up, later] = [2, 3].map(value => Math.round(10000 * (1 - value / (4 * 1.08))) / 10);
    expect(path('[data-curve=mixture].dpnb-timeline-curve')).toMatch(
      new RegExp(`^M 0 [\\d.]+ H 166.7 V ${up} H 333.3 M 666.7 ${later} H 833.3$`)
    );
    expect(path('[data-curve=filter].dpnb-timeline-curve')).toMatch(/ H 1000$/);
    expect(path('.dpnb-timeline-steps')).toMatch(/ H 1000$/);
    expect(tip()).toBe('5. · 50.0% of the budget spent');
    expect(tip(odometers)).toBe('5. · Mixture reports nothing · Filter (line) 4');
    expect(texts(host, 'tbody tr:nth-child(3) td')).toEqual(['20.0%', '–', '4']);
  });

  it('draws what it can when every odometer pauses from the beginning', () => {
    show({ points: timeline.points.map(point => ({ ...point, bounds: [null, null, null] })) });
    expect(path('.dpnb-timeline-curve')).toBe('');
    expect(path('.dpnb-timeline-steps')).toMatch(/ H 1000$/);
    expect(host.innerHTML).not.toMatch(/NaN|Infinity/);
  });

  it.each([0.4, 1, 7])('cuts no value off, wherever the scale ends: %s', end => {
    const points = timeline.points.map(point => ({ ...point, bounds: [0.1, 2.5, 5] }));
    show({ odometers: { ...timeline.odometers, end }, points });
    const drawn = [...host.querySelectorAll('.dpnb-timeline-loss path')].flatMap(line =>
      heights(line.getAttribute('d'))
    );
    expect(Math.min(...drawn)).toBeGreaterThan(0);
    expect(Math.max(...drawn)).toBeLessThanOrEqual(1000);
    expect(found(host, '.dpnb-timeline-loss .dpnb-timeline-top').textContent).toBe(String(Math.max(end, 5)));
  });

  it('places requests by their numbers, whichever of them the kernel left out', () => {
    const [zero, one, two] = timeline.points;
    show({ points: [zero, one, two && { ...two, id: 10 }].filter(point => point !== undefined) });
    expect(path('.dpnb-timeline-steps')).toMatch(/^M 0 1000 H 90.9 V /);
  });

  it('redraws only when something changed', () => {
    show();
    const before = found(host, '.dpnb-timeline-steps');
    show(structuredClone(timeline));
    expect(found(host, '.dpnb-timeline-steps')).toBe(before);
    show({ points: timeline.points.slice(0, 2) });
    expect(found(host, '.dpnb-timeline-steps')).not.toBe(before);
  });

  it('shows markup as text', () => {
    show({ points: timeline.points.map(point => ({ ...point, text: '<img src=x>' })) });
    charts().focus();
    expect(host.querySelector('img')).toBeNull();
  });
});

describe('TimelineView, to a screen reader,', () => {
  it('is a slider over the requests', () => {
    show();
    const attributes = ['aria-valuemin', 'aria-valuemax', 'aria-valuenow', 'aria-valuetext'];
    expect(attributes.map(name => charts().getAttribute(name))).toEqual([
      '0',
      '2',
      '2',
      '2. mean of mdvis by coins: 5.6% of the budget (mu 0.05) · 16.7% of the budget spent'
    ]);
    expect(charts().getAttribute('aria-label')).toContain('Budget over time');
    expect(charts(odometers).getAttribute('aria-label')).toContain('Odometers over time');
    expect(charts(odometers).getAttribute('aria-valuetext')).toBe(
      '2. mean of mdvis by coins: 5.6% of the budget (mu 0.05) · Mixture 0.5168 · Filter (line) 0.5712 · Stitched 0.8054'
    );
    expect([...host.querySelectorAll('svg')].every(svg => svg.getAttribute('aria-hidden') === 'true')).toBe(true);
  });

  it('is a table with every figure', () => {
    show();
    const [spent, bounds] = [budget, odometers].map(view => found(view.node, '.dpnb-visually-hidden table'));
    expect(spent && texts(spent, 'th[scope=col]')).toEqual(['Request', 'Spent']);
    expect(spent && texts(spent, 'tbody tr:first-child td')).toEqual(['0%']);
    expect(bounds && texts(bounds, 'th[scope=col]')).toEqual(['Request', 'Mixture', 'Filter (line)', 'Stitched']);
    expect(bounds && texts(bounds, 'th[scope=row]')).toEqual(timeline.points.map(point => point.text));
    expect(bounds && texts(bounds, 'tbody tr:first-child td')).toEqual(['0', '0.36', '–']);
    expect(bounds && found(bounds, 'caption').textContent).toContain('up to 1.311');
  });
});

describe('TimelineView, followed by hand,', () => {
  it('shows the last request until the pointer is nearer to another', () => {
    show();
    expect(tip()).toContain('2. mean of mdvis');
    pointAt(0.3);
    expect(tip()).toContain('1. count of persons');
    expect(tip()).toContain('11.2% of the budget spent');
    expect(path('.dpnb-timeline-spent .dpnb-timeline-cursor')).toBe('M 333.3 0 V 1000');
    expect(path('.dpnb-timeline-loss .dpnb-timeline-cursor')).toBe('');
    pointAt(0.3, odometers);
    expect(path('.dpnb-timeline-loss .dpnb-timeline-cursor')).toBe('M 333.3 0 V 1000');
  });

  it.each(['pointerleave', 'blur'])('moves nothing on %s, which may be half of a click; the next change does', type => {
    show();
    pointAt(0.3);
    const words = tip();
    charts().dispatchEvent(new FocusEvent(type));
    expect(tip()).toBe(words);
    expect(found<SVGElement>(host, '.dpnb-timeline-cursor').getAttribute('visibility')).toBe('hidden');
    show({ budget: { ...timeline.budget, text: 'changed' } });
    expect(tip()).toContain('2. mean of mdvis');
  });

  it('goes from request to request with the arrow keys, and nowhere past the ends', () => {
    show();
    charts().focus();
    expect(tip()).toContain('2. mean of mdvis');
    expect(press(charts(), 'ArrowLeft').defaultPrevented).toBe(true);
    expect(tip()).toContain('1. count of persons');
    press(charts(), 'Home');
    press(charts(), 'ArrowLeft');
    expect(tip()).toContain('before the first query');
    expect(charts().getAttribute('aria-valuenow')).toBe('0');
    press(charts(), 'End');
    expect(tip()).toContain('2. mean of mdvis');
  });

  it('leaves other keys to the page', () => {
    show();
    charts().focus();
    expect(press(charts(), 'a').defaultPrevented).toBe(false);
    expect(press(charts(), 'Tab').defaultPrevented).toBe(false);
  });

  it('stays at a request while others come', () => {
    show();
    charts().focus();
    press(charts(), 'ArrowLeft');
    const last = { id: 3, spent: 0.5, bounds: [1, 1, 1], text: '3. later' };
    show({ points: [...timeline.points, last] });
    expect(tip()).toContain('1. count of persons');
    expect(document.activeElement).toBe(charts());
  });
});

describe('indexForKey', () => {
  it.each([
    ['ArrowRight', 5, 6],
    ['ArrowUp', 5, 6],
    ['ArrowDown', 5, 4],
    ['PageUp', 5, 15],
    ['PageDown', 5, 0],
    ['ArrowLeft', -1, 18],
    ['ArrowRight', 19, 19]
  ])('moves with %s from %s to %s of twenty', (key, now, next) => {
    expect(indexForKey(key, now, 20)).toBe(next);
  });

  it('moves nowhere where there is nothing', () => {
    expect(indexForKey('Home', -1, 0)).toBeNull();
  });
});
