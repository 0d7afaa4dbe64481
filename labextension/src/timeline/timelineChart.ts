import { element, setText } from '../dom/dom';

const SVG = 'http://www.w3.org/2000/svg';
/** Size in drawing units, which are scaled to the available space. */
const SIZE = 1000;
/** Space above the highest line, relative to its height. */
const MARGIN = 0.08;
/** Length of the lines after the last request, relative to the length before it; at least that of one request. */
const TAIL = 0.06;

/** One line of a chart: a value from each request to the next; null if there is none. */
export interface ILine {
  id: string;
  className: string;
  values: (number | null)[];
}

export interface IChart {
  label: string;
  /** What the chart shows, in words. */
  text: string;
  /** The scale ends here, unless a value is larger. */
  end: number;
  /** A value that is marked by a line across the chart; null for none. */
  limit: number | null;
  /** Number of each request, ascending. */
  requests: number[];
  lines: ILine[];
}

/** Lines over requests, on an axis from zero to the end of the scale. */
export class Chart {
  readonly node: HTMLElement;
  private readonly _label = element('span', 'dpnb-timeline-label');
  private readonly _text = element('span', 'dpnb-timeline-text');
  private readonly _top = element('span', 'dpnb-timeline-top');
  private readonly _svg = document.createElementNS(SVG, 'svg');
  private readonly _lines = document.createElementNS(SVG, 'g');
  private readonly _limit = path('dpnb-timeline-limit');
  private readonly _cursor = path('dpnb-timeline-cursor');
  private readonly _plot = element('div', 'dpnb-timeline-plot');
  private _requests: number[] = [];

  constructor(
    className: string,
    private readonly _format: (value: number) => string
  ) {
    this._svg.setAttribute('viewBox', `0 0 ${SIZE} ${SIZE}`);
    this._svg.setAttribute('preserveAspectRatio', 'none'); // the drawing fills its space; strokes keep their width
    this._svg.setAttribute('aria-hidden', 'true');
    this._svg.append(this._limit, this._lines, this._cursor);
    this._plot.append(this._svg, this._top, element('span', 'dpnb-timeline-bottom', '0'));
    const title = element('div', 'dpnb-timeline-title', this._label, ' ', this._text);
    this.node = element('div', `dpnb-timeline-chart ${className}`, title, this._plot);
    this.point(null);
  }

  update({ label, text, end, limit, requests, lines }: IChart): void {
    this._requests = requests;
    const values = lines.flatMap(line => line.values).filter(value => value !== null);
    const highest = Math.max(end, ...values);
    const range = highest > 0 ? highest * (1 + MARGIN) : 1;
    const y = (value: number): number => rounded(SIZE * (1 - value / range));
    setText(this._label, label);
    setText(this._text, text);
    this._text.hidden = text === '';
    setText(this._top, this._format(highest));
    this._top.style.top = `${(100 * y(highest)) / SIZE}%`;
    this._limit.setAttribute('d', limit === null ? '' : `M 0 ${y(limit)} H ${SIZE}`);
    this._lines.replaceChildren(
      ...lines.map(line => {
        const drawn = path(line.className);
        drawn.setAttribute('data-curve', line.id);
        drawn.setAttribute('d', this._steps(line.values.map(value => (value === null ? null : y(value)))));
        return drawn;
      })
    );
  }

  /** Mark one request; null marks none. */
  point(request: number | null): void {
    this._cursor.setAttribute('visibility', request === null ? 'hidden' : 'visible');
    this._cursor.setAttribute('d', request === null ? '' : `M ${this._x(request)} 0 V ${SIZE}`);
  }

  /** The request at a horizontal position in the window; between two requests, a number between theirs. */
  requestAt(clientX: number): number {
    const box = this._svg.getBoundingClientRect();
    const share = box.width > 0 ? Math.min(Math.max((clientX - box.left) / box.width, 0), 1) : 1;
    return this._first + share * this._span;
  }

  private get _first(): number {
    return this._requests[0] ?? 0;
  }

  private get _span(): number {
    const length = (this._requests[this._requests.length - 1] ?? 0) - this._first;
    return length + Math.max(TAIL * length, 1); // a step at the edge would not be visible
  }

  private _x(request: number): number {
    return rounded((SIZE * (request - this._first)) / this._span);
  }

  /** A step function: constant until the next request; a request without a value leaves a gap. */
  private _steps(heights: (number | null)[]): string {
    const parts: string[] = [];
    heights.forEach((height, index) => {
      const x = this._x(this._requests[index] ?? 0);
      const before = index > 0 ? (heights[index - 1] ?? null) : null;
      if (before !== null) {
        parts.push(`H ${x}`);
      }
      if (height !== null) {
        parts.push(before === null ? `M ${x} ${height}` : `V ${height}`);
      }
    });
    if (heights.length > 0 && heights[heights.length - 1] !== null) {
      parts.push(`H ${SIZE}`);
    }
    return parts.join(' ');
  }
}

/** A tenth of a drawing unit is finer than any screen. */
const rounded = (value: number): number => Math.round(10 * value) / 10;

function path(className: string): SVGPathElement {
  const node = document.createElementNS(SVG, 'path');
  node.setAttribute('class', className);
  node.setAttribute('vector-effect', 'non-scaling-stroke');
  return node;
}
