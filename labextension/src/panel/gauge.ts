import { arrange, element, type IView, setText } from '../dom/dom';
import { setTextWithTerms } from '../dom/terms';
import type { IGauge } from '../protocol/snapshot';

const SVG = 'http://www.w3.org/2000/svg';
/** Half a circle, open at the bottom. */
const ARC = 'M 8 56 A 48 48 0 0 1 104 56';

type Level = 'good' | 'low' | 'out';

/** A gauge: a dial, or for the reading of an odometer a bar with a scale of its own; without a scale, its text. */
export class GaugeView implements IView<IGauge> {
  readonly node = element('div', 'dpnb-gauge');
  private readonly _dial = new Dial();
  private readonly _bar = new LossBar();
  private readonly _words = new Words();

  update(gauge: IGauge): void {
    this.node.dataset.kind = gauge.kind;
    const { value } = gauge;
    const drawing = value === null ? this._words : gauge.kind === 'loss' ? this._bar : this._dial;
    arrange(this.node, [drawing.node]);
    drawing.update({ ...gauge, value: value ?? 0 });
  }
}

/** A gauge on a scale. */
type Scaled = IGauge & { value: number };

/** A part of a circle, with the value in its middle and the label below. */
class Dial implements IView<Scaled> {
  readonly node: HTMLElement;
  private readonly _fill = arc('dpnb-gauge-fill');
  private readonly _meter = meter();
  private readonly _text = element('div', 'dpnb-gauge-text');
  private readonly _label = element('div', 'dpnb-gauge-label');

  constructor() {
    const svg = document.createElementNS(SVG, 'svg');
    svg.setAttribute('viewBox', '0 0 112 64');
    svg.setAttribute('aria-hidden', 'true');
    svg.append(arc('dpnb-gauge-track'), this._fill);
    this._meter.append(svg, this._text);
    this.node = element('div', 'dpnb-dial', this._meter, this._label);
  }

  update(gauge: Scaled): void {
    describe(this._meter, gauge);
    this._meter.dataset.level = gauge.kind === 'remaining' ? levelOf(gauge.value) : 'plain';
    this._fill.setAttribute('stroke-dasharray', `${100 * gauge.value} 200`);
    // A stroke of length zero would show its round cap.
    this._fill.setAttribute('visibility', gauge.value > 0 ? 'visible' : 'hidden');
    setText(this._text, gauge.text);
    setTextWithTerms(this._label, gauge.label);
  }
}

/**
 * The reading of an odometer on its own scale, with a sentence that states what it means.
 *
 * It has one neutral colour: only the budget that is left can be low.
 */
class LossBar implements IView<Scaled> {
  readonly node: HTMLElement;
  private readonly _label = element('div', 'dpnb-gauge-label');
  private readonly _meter = meter();
  private readonly _text = element('div', 'dpnb-gauge-text');
  private readonly _fill = element('div', 'dpnb-bar-fill');
  private readonly _end = element('span', 'dpnb-loss-end');
  private readonly _scale = element('div', 'dpnb-loss-scale', element('span', '', '0'), ' ', this._end);
  private readonly _note = element('p', 'dpnb-loss-note');

  constructor() {
    this._meter.append(this._text, element('div', 'dpnb-bar', this._fill));
    this.node = element('div', 'dpnb-loss', this._label, this._meter, this._scale, this._note);
  }

  update(gauge: Scaled): void {
    describe(this._meter, gauge);
    this._meter.dataset.level = 'plain';
    setTextWithTerms(this._label, gauge.label);
    setText(this._text, gauge.text);
    this._fill.style.width = `${100 * gauge.value}%`;
    setTextWithTerms(this._end, gauge.end ?? '');
    this._scale.hidden = gauge.end === null;
    setTextWithTerms(this._note, gauge.note ?? '');
    this._note.hidden = gauge.note === null;
  }
}

/** A label, a text and a sentence: what a session without a budget shows, since there is no scale. */
class Words implements IView<IGauge> {
  readonly node: HTMLElement;
  private readonly _label = element('div', 'dpnb-gauge-label');
  private readonly _text = element('div', 'dpnb-gauge-text');
  private readonly _note = element('p', 'dpnb-loss-note');

  constructor() {
    this.node = element('div', 'dpnb-loss', this._label, this._text, this._note);
  }

  update(gauge: IGauge): void {
    this.node.dataset.gauge = gauge.id;
    this.node.title = gauge.description;
    setTextWithTerms(this._label, gauge.label);
    setText(this._text, gauge.text);
    setTextWithTerms(this._note, gauge.note ?? '');
    this._note.hidden = gauge.note === null;
  }
}

/** For a screen reader a gauge is one meter, whose children are presentational; label and note are outside. */
function meter(): HTMLElement {
  const node = element('div', 'dpnb-meter');
  node.setAttribute('role', 'meter');
  node.setAttribute('aria-valuemin', '0');
  node.setAttribute('aria-valuemax', '1');
  return node;
}

function describe(node: HTMLElement, { id, label, value, text, description }: Scaled): void {
  node.dataset.gauge = id;
  node.title = description;
  node.setAttribute('aria-label', label);
  node.setAttribute('aria-valuenow', String(value));
  node.setAttribute('aria-valuetext', text);
}

function arc(className: string): SVGPathElement {
  const path = document.createElementNS(SVG, 'path');
  path.setAttribute('class', className);
  path.setAttribute('d', ARC);
  path.setAttribute('pathLength', '100');
  return path;
}

/** Level of the remaining share, for its colour; the text next to it states the same without colour. */
export function levelOf(left: number): Level {
  return left > 0.25 ? 'good' : left > 0.05 ? 'low' : 'out';
}
