import { element, setText } from '../dom/dom';
import { setTextWithTerms } from '../dom/terms';
import type { IOption } from '../protocol/messages';
import { trans } from '../translation';

/** What the selected option costs and gives, below the slider. */
export class OptionView {
  readonly label = element('label', 'dpnb-picker-slider-label');
  readonly bar = element('div', 'dpnb-picker-bar');
  readonly list = element('dl', 'dpnb-picker-list');
  readonly code = element('code', 'dpnb-picker-code');
  /** A value with which the reader compares the expected error. */
  readonly reference = element('input', 'dpnb-picker-reference');
  private readonly _cost = element('output', 'dpnb-picker-cost');
  private readonly _loss = element('span', 'dpnb-picker-loss');
  private readonly _barAfter = element('div', 'dpnb-picker-bar-after');
  private readonly _barCost = element('div', 'dpnb-picker-bar-cost');
  private readonly _error = new Fact('error', trans.__('Expected error'));
  private readonly _inOneRelease = new Fact('once', trans.__('In one release'));
  private readonly _relativeError = new Fact('share', trans.__('Relative error'));
  private readonly _compare = new Fact('compare', trans.__('Compare with'), this.reference);
  private readonly _after = new Fact('after', trans.__('Budget left after'));
  private readonly _times = new Fact('times', trans.__('Also affordable'));

  constructor(slider: HTMLInputElement) {
    this.label.htmlFor = slider.id;
    this._cost.htmlFor.add(slider.id);
    this.label.append(trans.__('Cost'), ' ', this._cost);
    this.bar.append(this._barAfter, this._barCost);
    this.bar.setAttribute('aria-hidden', 'true'); // the text below states the same
    const facts = [this._error, this._inOneRelease, this._relativeError, this._compare, this._after, this._times];
    this.list.append(...facts.map(({ node }) => node));
    this.reference.type = 'number';
    this.reference.step = 'any';
    this.reference.placeholder = trans.__('an expected value');
    this.reference.setAttribute('aria-label', trans.__('Compare the expected error with this value'));
  }

  /** The cost with the loss, which is explained. */
  get head(): HTMLElement {
    return element('div', 'dpnb-picker-head', this.label, ' ', this._loss);
  }

  /** @param now What remains before the release, as a fraction of the budget; null without a budget. */
  update(option: IOption, now: number | null): void {
    setText(this._cost, option.cost);
    setTextWithTerms(this._loss, option.loss === option.cost ? '' : `(${option.loss})`);
    this._error.show(option.error, option.errors === null ? [] : [errorTable(option.errors)]);
    this._inOneRelease.show(option.in_one_release);
    this._relativeError.show(this._relativeTo(option));
    this._compare.node.hidden = option.error_value === null;
    this._after.show(option.after);
    this._times.show(option.max_repetitions);
    const [target, value] = Object.entries(option.target)[0] ?? ['mu', ''];
    setText(this.code, `.release(${target}=${value})`);
    this.bar.hidden = option.remaining === null;
    if (option.remaining !== null && now !== null) {
      this._barAfter.style.width = `${100 * option.remaining}%`;
      this._barCost.style.width = `${100 * Math.max(now - option.remaining, 0)}%`;
    }
  }

  /** The expected error relative to the value that the reader entered, or else to the current answer. */
  private _relativeTo(option: IOption): string | null {
    const reference = this.reference.valueAsNumber;
    if (Number.isFinite(reference) && reference !== 0 && option.error_value !== null) {
      const percent = (100 * option.error_value) / Math.abs(reference);
      return trans.__('± %1% of %2', Number(percent.toPrecision(2)), reference);
    }
    return option.relative_error;
  }
}

/** The expected errors of many statistics, a number in a line; the first row is the head. */
function errorTable([head = [], ...rows]: string[][]): HTMLElement {
  const cells = (row: string[], name: 'th' | 'td'): HTMLElement =>
    element('tr', '', ...row.map((text, at) => element(at === 0 ? 'th' : name, '', text.replace(/± /g, '±\u00a0'))));
  const body = element('tbody', '', ...rows.map(row => cells(row, 'td')));
  return element('div', 'dpnb-picker-errors', element('table', '', element('thead', '', cells(head, 'th')), body));
}

/** A line of the list: a term and its description. */
class Fact {
  readonly node: HTMLElement;
  private readonly _value: HTMLElement;

  constructor(name: string, title: string, ...content: Node[]) {
    const term = element('dt', '');
    setTextWithTerms(term, title);
    this._value = element('dd', `dpnb-picker-${name}`, ...content);
    this.node = element('div', 'dpnb-picker-fact', term, this._value);
  }

  /** @param above What is shown above the text, which changes whenever it does. */
  show(text: string | null, above: Node[] = []): void {
    this.node.hidden = text === null;
    if (above.length > 0) {
      this._value.replaceChildren(...above, element('span', 'dpnb-picker-note', text ?? ''));
    } else {
      setText(this._value, text ?? '');
    }
  }
}
