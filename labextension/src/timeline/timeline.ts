import { element, type IView, setText, Views } from '../dom/dom';
import type { ITimelineChart, ITimelinePoint } from '../protocol/snapshot';
import type { IContents, LegendEntry } from './contents';
import { Chart } from './timelineChart';
import { indexForKey } from './timelineKeys';
import { TimelineTable } from './timelineTable';
import { trans } from '../translation';

/** Characters of a text below the chart, and of its end, which has the cost. */
const MAX_TEXT = 140;
const END = 60;

/** A text without its middle, where that is long: the code of a query can be. */
const shortened = (text: string): string =>
  text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT - END)}… ${text.slice(-END)}` : text;

/**
 * Values from request to request.
 *
 * The pointer or the arrow keys select a request; for a screen reader the chart is one slider over the requests, and a
 * table contains all numbers.
 */
export class TimelineView implements IView<ITimelineChart> {
  readonly node = element('div', 'dpnb-timeline');
  private readonly _empty = element('p', 'dpnb-timeline-empty');
  private readonly _chart: Chart;
  private readonly _slider: HTMLElement;
  private readonly _tip = element('div', 'dpnb-timeline-tip');
  private readonly _legend = element('ul', 'dpnb-timeline-legend');
  private readonly _entries = new Views(this._legend, legendEntry);
  private readonly _table: TimelineTable;
  private readonly _full: HTMLElement;
  private _timeline: ITimelineChart | null = null;
  private _drawn = '';
  /** Number of the selected request; later requests do not change it. */
  private _chosen: number | null = null;

  constructor(private readonly _contents: IContents) {
    this._chart = new Chart(_contents.className, value => _contents.format(value));
    this._slider = element('div', 'dpnb-timeline-charts', this._chart.node);
    this._table = new TimelineTable(_contents);
    this._full = element('div', 'dpnb-timeline-full', this._slider, this._legend, this._tip, this._table.node);
    setText(this._empty, _contents.empty());
    this._slider.tabIndex = 0;
    this._slider.setAttribute('role', 'slider');
    this._slider.setAttribute('data-lm-suppress-shortcuts', 'true'); // in a notebook, arrow keys move between cells
    this._slider.setAttribute('aria-label', trans.__('%1: one step for each request', _contents.title()));
    this._legend.setAttribute('aria-label', trans.__('Curves'));
    this._tip.setAttribute('aria-hidden', 'true'); // the slider states the same
    this._slider.addEventListener('keydown', event => this._onKey(event));
    this._slider.addEventListener('focus', () => this._choose(this._chosen ?? this._last?.id ?? null));
    this._slider.addEventListener('blur', () => this._clearChoice());
    for (const type of ['pointermove', 'pointerdown'] as const) {
      this._slider.addEventListener(type, event => this._onPointer(event));
    }
    this._slider.addEventListener('pointerleave', () => {
      if (document.activeElement !== this._slider) {
        this._clearChoice();
      }
    });
    this.node.append(this._empty, this._full);
  }

  /** Move the focus to the chart, without scrolling. */
  focus(): void {
    this._slider.focus({ preventScroll: true });
  }

  update(timeline: ITimelineChart): void {
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

  private _draw(timeline: ITimelineChart): void {
    const { limit } = this._contents;
    this._chart.update({
      ...this._contents.axis(timeline),
      end: this._contents.end(timeline),
      limit,
      requests: timeline.points.map(point => point.id),
      lines: this._contents.lines(timeline)
    });
    const entries = this._contents.legend(timeline);
    this._legend.hidden = entries.length === 0;
    this._entries.update(entries);
    this._table.update(timeline);
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
    const request = this._chart.requestAt(event.clientX);
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
    this._chart.point(null);
  }

  private _drawChoice(): void {
    const chosen = this._points.find(point => point.id === this._chosen);
    this._chart.point(chosen?.id ?? null);
    const point = chosen ?? this._last;
    const words =
      point && this._timeline ? [point.text, ...this._contents.words(point, this._timeline)].join(' · ') : '';
    setText(this._tip, shortened(words));
    this._tip.title = words;
    const index = point ? this._points.indexOf(point) : 0;
    this._slider.setAttribute('aria-valuemin', '0');
    this._slider.setAttribute('aria-valuemax', String(Math.max(0, this._points.length - 1)));
    this._slider.setAttribute('aria-valuenow', String(index));
    this._slider.setAttribute('aria-valuetext', words);
  }
}

function legendEntry(): IView<LegendEntry> {
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
