import { button, element, setText } from '../dom/dom';
import type { IAsk } from '../protocol/messages';
import { trans } from '../translation';

type Target = Record<string, string>;

let nAsks = 0;

/** A request to the curator for a larger cap: what for, and why; it opens where a release is refused. */
export class AskView {
  readonly node = element('details', 'dpnb-picker-ask');
  private readonly _select = element('select', 'dpnb-picker-ask-option');
  private readonly _why = element('input', 'dpnb-picker-ask-why');
  private readonly _button: HTMLButtonElement;
  private readonly _asked = element('p', 'dpnb-picker-asked');
  private readonly _form: HTMLElement;
  private _ask: IAsk | null = null;
  private _isDisabled = false;

  constructor(onAsk: (target: Target, why: string) => void) {
    const id = `dpnb-picker-ask-${(nAsks += 1)}`;
    this._select.id = `${id}-option`;
    this._why.id = `${id}-why`;
    this._why.type = 'text';
    this._why.dataset.lmSuppressShortcuts = this._select.dataset.lmSuppressShortcuts = 'true';
    this._why.addEventListener('input', () => this._draw());
    this._asked.setAttribute('role', 'status');
    const ask = (): void => {
      const option = this._ask?.options[this._select.selectedIndex];
      if (option && !this._button.disabled) {
        onAsk(option.target, this._why.value.trim());
      }
    };
    this._button = button('dpnb-picker-ask-button', trans.__('Ask the curator'), ask);
    this._why.addEventListener('keydown', event => {
      if (event.key === 'Enter' && !event.repeat) {
        ask();
      }
    });
    this._form = element(
      'div',
      'dpnb-picker-ask-form',
      label(this._select, trans.__('For')),
      this._select,
      label(this._why, trans.__('Reason, which the curator reads')),
      this._why,
      this._button
    );
    this.node.append(element('summary', '', trans.__('Ask the curator for more')), this._form, this._asked);
  }

  /**
   * @param ask What can be asked for; null for nothing.
   * @param asked The request that was made, in words.
   * @param isRefused Whether a release was refused, or nothing is left.
   */
  update(ask: IAsk | null, asked: string | null, isRefused: boolean): void {
    const labels = ask?.options.map(option => option.label) ?? [];
    if (labels.join('\n') !== this._ask?.options.map(option => option.label).join('\n')) {
      this._select.replaceChildren(...labels.map(text => element('option', '', text)));
      this._select.selectedIndex = ask?.start ?? -1;
    }
    if (asked !== null && asked !== this._asked.textContent) {
      this._why.value = '';
    }
    if (isRefused || asked !== null) {
      this.node.open = true;
    }
    this._ask = ask;
    this._why.maxLength = ask?.max_characters ?? 0;
    this.node.hidden = ask === null && asked === null;
    this._form.hidden = ask === null;
    setText(this._asked, asked ?? '');
    this._draw();
  }

  set disabled(isDisabled: boolean) {
    this._isDisabled = isDisabled;
    this._draw();
  }

  private _draw(): void {
    this._button.disabled = this._isDisabled || this._why.value.trim() === '';
  }
}

function label(control: HTMLElement, text: string): HTMLLabelElement {
  const node = element('label', 'dpnb-picker-ask-label', text);
  node.htmlFor = control.id;
  return node;
}
