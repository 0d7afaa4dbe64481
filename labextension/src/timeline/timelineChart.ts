import { element, setText } from '../dom/dom';

const SVG = 'http://www.w3.org/2000/svg';
/** The drawing's own units; it is stretched to whatever room there is. */
const SIZE = 1000;
/** Free room above the highest line, as a share of it. */
const MARGIN = 0.08;
/** How far the lines go on after the last request, as a share of the way up to it, and at least as far as one request. */
const TAIL = 0.06;

/** One line of a chart: a value from each request up to the next; null where there is none. */
export interface ILine {
  id: string;
  className: string;
  values: (number | null)[];
}

export interface IChart {
  label: string;
  /** The promise in words. */
  text: string;
  /** Where the guarantee is drawn; null when it is off this scale. */
  limit: number | null;
  /** Number of each request, ascending. */
  requests: number[];
  lines: ILine[];
}

/** Lines over requests, from zero up to the highest of values and promise, so that nothing is ever cut off. */
export class Chart {
  readonly node: HTMLElement;
  private readonly _label = element('span', 'dpnb-timeline-label');
  private readonly _text = element('span', 'dpnb-timeline-text');
  private readonly _top = element('span', 'dpnb-timeline-top');
  private readonly _svg = document.createElementNS(SVG, 'svg');
  private readonly _lines = document.createElementNS(SVG, 'g');
  private readonly _guarantee = path('dpnb-timeline-guarantee');
  private readonly _cursor = path('dpnb-timeline-cursor');
  private readonly _plot = element('div', 'dpnb-timeline-plot');
  private _requests: number[] = [];

  constructor(
    className: string,
    private readonly _format: (value: number) => string
  ) {
    this._svg.setAttribute('viewBox', `0 0 ${SIZE} ${SIZE}`);
    this._svg.setAttribute('preserveAspectRatio', 'none'); // fills its room; the strokes keep their width
    this._svg.setAttribute('aria-hidden', 'true');
    this._svg.append(this._guarantee, this._lines, this._cursor);
    this._plot.append(this._svg, this._top, element('span', 'dpnb-timeline-bottom', '0'));
    const title = element('div', 'dpnb-timeline-title', this._label, ' ', this._text);
    this.node = element('div', `dpnb-timeline-chart ${className}`, title, this._plot);
    this.point(null);
  }

  update({ label, text, limit, requests, lines }: IChart): void {
    this._requests = requests;
    const values = lines.flatMap(line => line.values).filter(value => value !== null);
    const highest = Math.max(limit ?? 0, ...values);
    const range = highest > 0 ? highest * (1 + MARGIN) : 1;
    const y = (value: number): number => rounded(SIZE * (1 - value / range));
    setText(this._label, label);
    setText(this._text, text);
    setText(this._top, this._format(highest));
    this._top.style.top = `${(100 * y(highest)) / SIZE}%`;
    this._guarantee.setAttribute('d', limit === null ? '' : `M 0 ${y(limit)} H ${SIZE}`);
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

  /** The request that is drawn at a place of the window; between two of them, a number between theirs. */
  requestAt(clientX: number): number {
    const box = this._svg.getBoundingClientRect();
    const share = box.width > 0 ? Math.min(Math.max((clientX - box.left) / box.width, 0), 1) : 1;
    return this._first + share * this._span;
  }

  private get _first(): number {
    return this._requests[0] ?? 0;
  }

  private get _span(): number {
    const way = (this._requests[this._requests.length - 1] ?? 0) - this._first;
    return way + Math.max(TAIL * way, 1); // a step at the very edge would not be seen
  }

  private _x(request: number): number {
    return rounded((SIZE * (request - this._first)) / this._span);
  }

  /** Level until the next request, then straight to its value; a request without a value leaves a gap. */
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
