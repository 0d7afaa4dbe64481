import { element, type IView, setText, Views } from '../dom/dom';
import { Fold } from '../dom/fold';
import { percent, roundedUp } from '../dom/format';
import type { ICurve, ITimeline, ITimelinePoint } from '../protocol/timeline';
import { Chart } from './timelineChart';
import { indexForKey } from './timelineKeys';
import { TimelineTable } from './timelineTable';

const TITLE = 'Budget over time';

/**
 * The budget from request to request: the spending relative to the guarantee, and the bounds of the odometers.
 *
 * Two charts share their horizontal axis.  The pointer or the arrow keys select a request; for a screen reader the
 * charts are one slider over the requests, and a table contains all numbers.
 */
export class TimelineView implements IView<ITimeline> {
  readonly fold = new Fold('dpnb-timeline', TITLE);
  private readonly _empty = element('p', 'dpnb-timeline-empty', 'No budget has been spent yet.');
  private readonly _spent = new Chart('dpnb-timeline-spent', percent);
  private readonly _odometers = new Chart('dpnb-timeline-loss', bound);
  private readonly _charts = element('div', 'dpnb-timeline-charts', this._spent.node, this._odometers.node);
  private readonly _tip = element('div', 'dpnb-timeline-tip');
  private readonly _legend = element('ul', 'dpnb-timeline-legend');
  private readonly _entries = new Views(this._legend, legendEntry);
  private readonly _table = new TimelineTable();
  private readonly _full = element(
    'div',
    'dpnb-timeline-full',
    this._charts,
    this._legend,
    this._tip,
    this._table.node
  );
  private _timeline: ITimeline | null = null;
  private _drawn = '';
  /** Number of the selected request; later requests do not change it. */
  private _chosen: number | null = null;

  constructor() {
    this._charts.tabIndex = 0;
    this._charts.setAttribute('role', 'slider');
    this._charts.setAttribute('data-lm-suppress-shortcuts', 'true'); // in a notebook, arrow keys move between cells
    this._charts.setAttribute('aria-label', `${TITLE}: one step for each request`);
    this._legend.setAttribute('aria-label', 'Curves');
    this._tip.setAttribute('aria-hidden', 'true'); // the slider states the same
    this._charts.addEventListener('keydown', event => this._onKey(event));
    this._charts.addEventListener('focus', () => this._choose(this._chosen ?? this._last?.id ?? null));
    this._charts.addEventListener('blur', () => this._clearChoice());
    for (const type of ['pointermove', 'pointerdown'] as const) {
      this._charts.addEventListener(type, event => this._onPointer(event));
    }
    this._charts.addEventListener('pointerleave', () => {
      if (document.activeElement !== this._charts) {
        this._clearChoice();
      }
    });
    this.fold.body.append(this._empty, this._full);
  }

  get node(): HTMLElement {
    return this.fold.node;
  }

  /** Unfold and scroll to the charts, and move the focus to them. */
  focus(): void {
    this.fold.open();
    this.fold.node.scrollIntoView({ block: 'start' });
    this._charts.focus({ preventScroll: true });
  }

  update(timeline: ITimeline): void {
    const drawn = JSON.stringify(timeline);
    if (drawn === this._drawn) {
      return;
    }
    this._drawn = drawn;
    this._timeline = timeline;
    const isEmpty = timeline.points.length < 2;
    this._empty.hidden = !isEmpty;
    this._full.hidden = isEmpty;
    if (!isEmpty) {
      this._draw(timeline);
    }
    this._drawChoice();
  }

  private _draw({ budget, odometers, curves, points }: ITimeline): void {
    const requests = points.map(point => point.id);
    const spent = { id: 'spent', className: 'dpnb-timeline-steps', values: points.map(point => point.spent) };
    this._spent.update({ ...budget, requests, limit: 1, lines: [spent] });
    const lines = curves.map(({ id }, index) => ({
      id,
      className: `dpnb-timeline-curve ${hue(index)}`,
      values: points.map(point => point.bounds[index] ?? null)
    }));
    this._odometers.update({ ...odometers, requests, lines });
    this._odometers.node.hidden = curves.length === 0;
    this._entries.update([...curves.map((curve, index): Entry => [curve, hue(index)]), GUARANTEE]);
    this._table.update({ budget, odometers, curves, points });
  }

  private get _points(): ITimelinePoint[] {
    return this._timeline?.points ?? [];
  }

  private get _last(): ITimelinePoint | undefined {
    return this._points[this._points.length - 1];
  }

  private _onKey(event: KeyboardEvent): void {
    const now = this._points.findIndex(point => point.id === this._chosen);
    const next = indexForKey(event.key, now, this._points.length);
    if (next !== null) {
      event.preventDefault();
      event.stopPropagation(); // the page would scroll
      this._choose(this._points[next]?.id ?? null);
    }
  }

  private _onPointer(event: PointerEvent): void {
    const request = this._spent.requestAt(event.clientX);
    const near = this._points.reduce<ITimelinePoint | null>(
      (best, point) => (best && Math.abs(best.id - request) <= Math.abs(point.id - request) ? best : point),
      null
    );
    this._choose(near?.id ?? null);
  }

  private _choose(request: number | null): void {
    if (request !== this._chosen) {
      this._chosen = request;
      this._drawChoice();
    }
  }

  /** The text remains until something changes: if it became shorter, elements below would move during a click. */
  private _clearChoice(): void {
    this._chosen = null;
    this._spent.point(null);
    this._odometers.point(null);
  }

  private _drawChoice(): void {
    const chosen = this._points.find(point => point.id === this._chosen);
    this._spent.point(chosen?.id ?? null);
    this._odometers.point(chosen?.id ?? null);
    const point = chosen ?? this._last;
    const words = point && this._timeline ? sentence(point, this._timeline.curves) : '';
    setText(this._tip, words);
    const index = point ? this._points.indexOf(point) : 0;
    this._charts.setAttribute('aria-valuemin', '0');
    this._charts.setAttribute('aria-valuemax', String(Math.max(0, this._points.length - 1)));
    this._charts.setAttribute('aria-valuenow', String(index));
    this._charts.setAttribute('aria-valuetext', words);
  }
}

/** A curve and the class that defines its colour and its dashes. */
type Entry = [curve: ICurve, className: string];

const GUARANTEE: Entry = [{ id: 'guarantee', label: 'guarantee' }, 'dpnb-mod-guarantee'];

/** Colours and dashes repeat after six curves. */
const hue = (index: number): string => `dpnb-mod-curve-${(index % 6) + 1}`;

/** A bound as text, rounded up. */
const bound = (value: number): string => roundedUp(value, 4);

function sentence(point: ITimelinePoint, curves: ICurve[]): string {
  const bounds = curves.map(({ label }, index) => {
    const value = point.bounds[index] ?? null;
    return `${label} ${value === null ? 'reports nothing' : bound(value)}`;
  });
  return [point.text, `${percent(point.spent)} of the budget spent`, ...bounds].join(' · ');
}

function legendEntry(): IView<Entry> {
  const swatch = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  swatch.setAttribute('class', 'dpnb-timeline-swatch');
  swatch.setAttribute('viewBox', '0 0 28 8');
  swatch.setAttribute('aria-hidden', 'true');
  const line = document.createElementNS('http://www.w3.org/2000/svg', 'path');
  line.setAttribute('d', 'M 0 4 H 28');
  swatch.append(line);
  const label = element('span', '');
  const node = element('li', 'dpnb-timeline-entry', swatch, label);
  return {
    node,
    update: ([curve, className]): void => {
      node.dataset.curve = curve.id;
      line.setAttribute('class', className);
      setText(label, curve.label);
    }
  };
}
