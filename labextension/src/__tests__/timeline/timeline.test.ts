import { beforeEach, describe, expect, it } from 'vitest';

import type { ITimeline } from '../../protocol/timeline';
import { TimelineView } from '../../timeline/timeline';
import { indexForKey } from '../../timeline/timelineKeys';
import { found, press, texts } from '../fakeModel';
import { sharedSession } from '../fixture';

const { timeline } = sharedSession();

let view: TimelineView;

beforeEach(() => {
  view = new TimelineView();
  document.body.replaceChildren(view.node);
});

function show(changes: Partial<ITimeline> = {}): HTMLElement {
  view.update({ ...timeline, ...changes });
  return view.node;
}

const path = (selector: string): string | null => found<SVGElement>(view.node, selector).getAttribute('d');
const charts = (): HTMLElement => found(view.node, '[role=slider]');
const tip = (): string | null => found(view.node, '.dpnb-timeline-tip').textContent;

/** Every height of a path, in the drawing's units: 0 is the top, 1000 the bottom. */
const heights = (d: string | null): number[] =>
  [...(d ?? '').matchAll(/(?:M [\d.-]+|V) ([\d.-]+)/g)].map(match => Number(match[1]));

/** jsdom knows neither layout nor pointers. */
function pointAt(share: number): void {
  for (const svg of view.node.querySelectorAll('.dpnb-timeline-plot svg')) {
    svg.getBoundingClientRect = (): DOMRect => new DOMRect(100, 0, 200, 90);
  }
  charts().dispatchEvent(new MouseEvent('pointermove', { clientX: 100 + 200 * share }));
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
    expect(found(view.node, '.dpnb-timeline-empty').hidden).toBe(false);
    expect(found(view.node, '.dpnb-timeline-full').hidden).toBe(true);
    show();
    expect(found(view.node, '.dpnb-timeline-empty').hidden).toBe(true);
    expect(found(view.node, '.dpnb-timeline-full').hidden).toBe(false);
  });

  it('draws what was spent as steps: level up to a request, then straight up, and on past the last', () => {
    show();
    expect(path('.dpnb-timeline-steps')).toMatch(/^M 0 1000 H 333.3 V [\d.]+ H 666.7 V [\d.]+ H 1000$/);
    const [start, first, second] = heights(path('.dpnb-timeline-steps'));
    expect(start).toBe(1000);
    expect((1000 - (first ?? 0)) / (1000 - (second ?? 0))).toBeCloseTo(0.1116 / 0.167, 3);
  });

  it('has the guarantee at one hundred per cent, below the upper edge', () => {
    show();
    const promise = Number(
      /^M 0 ([\d.]+) H 1000$/.exec(path('.dpnb-timeline-spent .dpnb-timeline-guarantee') ?? '')?.[1]
    );
    expect(promise).toBeGreaterThan(0);
    expect(promise).toBeLessThan(100);
    expect(found(view.node, '.dpnb-timeline-spent .dpnb-timeline-top').textContent).toBe('100.0%');
    expect(view.node.textContent).toContain('guarantee: mu 0.2117');
  });

  it('draws a curve for each odometer, told apart by more than colour', () => {
    show();
    const curves = [...view.node.querySelectorAll('.dpnb-timeline-curve')];
    expect(curves.map(curve => curve.getAttribute('data-curve'))).toEqual(['mixture', 'filter', 'stitched']);
    expect(new Set(curves.map(curve => curve.getAttribute('class'))).size).toBe(3);
    expect(texts(view.node, '.dpnb-timeline-entry')).toEqual(['Mixture', 'Filter (line)', 'Stitched', 'guarantee']);
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
    show({ odometers: { ...timeline.odometers, limit: null }, curves: timeline.curves.slice(0, 2), points });
    // Level up to the request with which the pause begins, then nothing up to the one with which it ends.
    const [up, later] = [2, 3].map(value => Math.round(10000 * (1 - value / (4 * 1.08))) / 10);
    expect(path('[data-curve=mixture].dpnb-timeline-curve')).toMatch(
      new RegExp(`^M 0 [\\d.]+ H 166.7 V ${up} H 333.3 M 666.7 ${later} H 833.3$`)
    );
    expect(path('[data-curve=filter].dpnb-timeline-curve')).toMatch(/ H 1000$/);
    expect(path('.dpnb-timeline-steps')).toMatch(/ H 1000$/);
    expect(tip()).toBe('5. · 50.0% of the budget spent · Mixture reports nothing · Filter (line) 4');
    expect(texts(view.node, 'tbody tr:nth-child(3) td')).toEqual(['20.0%', '–', '4']);
  });

  it('draws what it can when every odometer pauses from the beginning', () => {
    show({ points: timeline.points.map(point => ({ ...point, bounds: [null, null, null] })) });
    expect(path('.dpnb-timeline-curve')).toBe('');
    expect(path('.dpnb-timeline-steps')).toMatch(/ H 1000$/);
    expect(view.node.innerHTML).not.toMatch(/NaN|Infinity/);
  });

  it.each([0.4, 1, 7])('cuts no value off, whatever the limit: %s', limit => {
    const points = timeline.points.map(point => ({ ...point, bounds: [0.1, 2.5, 5] }));
    show({ odometers: { ...timeline.odometers, limit }, points });
    const drawn = [...view.node.querySelectorAll('.dpnb-timeline-loss path')].flatMap(line =>
      heights(line.getAttribute('d'))
    );
    expect(Math.min(...drawn)).toBeGreaterThan(0);
    expect(Math.max(...drawn)).toBeLessThanOrEqual(1000);
    expect(found(view.node, '.dpnb-timeline-loss .dpnb-timeline-top').textContent).toBe(String(Math.max(limit, 5)));
  });

  it('draws no promise on a scale where it has no place', () => {
    show({ odometers: { ...timeline.odometers, limit: null } });
    expect(path('.dpnb-timeline-loss .dpnb-timeline-guarantee')).toBe('');
  });

  it('places requests by their numbers, whichever of them the kernel left out', () => {
    const [zero, one, two] = timeline.points;
    show({ points: [zero, one, two && { ...two, id: 10 }].filter(point => point !== undefined) });
    expect(path('.dpnb-timeline-steps')).toMatch(/^M 0 1000 H 90.9 V /);
  });

  it('redraws only when something changed', () => {
    show();
    const before = found(view.node, '.dpnb-timeline-steps');
    show(structuredClone(timeline));
    expect(found(view.node, '.dpnb-timeline-steps')).toBe(before);
    show({ points: timeline.points.slice(0, 2) });
    expect(found(view.node, '.dpnb-timeline-steps')).not.toBe(before);
  });

  it('shows markup as text', () => {
    show({ points: timeline.points.map(point => ({ ...point, text: '<img src=x>' })) });
    charts().focus();
    expect(view.node.querySelector('img')).toBeNull();
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
      '2. mean of mdvis by coins: mu 0.05 · 16.7% of the budget spent · Mixture 0.5168 · Filter (line) 0.5712 · Stitched 0.8054'
    ]);
    expect(charts().getAttribute('aria-label')).toContain('Budget over time');
    expect([...view.node.querySelectorAll('svg')].every(svg => svg.getAttribute('aria-hidden') === 'true')).toBe(true);
  });

  it('is a table with every figure', () => {
    show();
    const table = found(view.node, '.dpnb-visually-hidden table');
    expect(texts(table, 'th[scope=col]')).toEqual(['Request', 'Spent', 'Mixture', 'Filter (line)', 'Stitched']);
    expect(texts(table, 'th[scope=row]')).toEqual(timeline.points.map(point => point.text));
    expect(texts(table, 'tbody tr:first-child td')).toEqual(['0%', '0', '0.36', '–']);
    expect(found(table, 'caption').textContent).toContain('guarantee: epsilon 1 at delta 1e-06');
  });
});

describe('TimelineView, followed by hand,', () => {
  it('shows the last request until the pointer is nearer to another', () => {
    show();
    expect(tip()).toContain('2. mean of mdvis');
    pointAt(0.3);
    expect(tip()).toContain('1. count of persons');
    expect(tip()).toContain('11.2% of the budget spent');
    expect(path('.dpnb-timeline-loss .dpnb-timeline-cursor')).toBe('M 333.3 0 V 1000');
  });

  it.each(['pointerleave', 'blur'])('moves nothing on %s, which may be half of a click; the next change does', type => {
    show();
    pointAt(0.3);
    const words = tip();
    charts().dispatchEvent(new FocusEvent(type));
    expect(tip()).toBe(words);
    expect(found<SVGElement>(view.node, '.dpnb-timeline-cursor').getAttribute('visibility')).toBe('hidden');
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
    expect(tip()).toContain('Stitched reports nothing');
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
