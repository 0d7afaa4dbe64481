import { element, setText } from '../dom/dom';
import { setTextWithTerms } from '../dom/terms';
import type { ICountStep } from '../protocol/messages';
import { confirmation, ConfirmedButton } from './confirmedButton';

/** One line and a button: the count to release first, after which the expected errors are known. */
export class CountStepView {
  readonly node: HTMLElement;
  private readonly _text = element('span', 'dpnb-picker-count-text');
  private readonly _loss = element('span', 'dpnb-picker-loss');
  private readonly _button: ConfirmedButton;
  private _step: ICountStep | null = null;

  constructor(onRelease: (target: Record<string, string>, isConfirmed: boolean) => void) {
    this._button = new ConfirmedButton('dpnb-picker-count-release', isConfirmed => {
      if (this._step) {
        onRelease(this._step.target, isConfirmed && this._step.confirm !== null);
      }
    });
    const action = element('div', 'dpnb-picker-count-action', this._button.node, this._loss);
    this.node = element('div', 'dpnb-picker-count', this._text, action);
  }

  /** @param isOutdated Whether the figures may lack charges, which must then be confirmed. */
  update(step: ICountStep | null, isOutdated: boolean): void {
    this._step = step;
    this.node.hidden = step === null;
    if (step) {
      setText(this._text, step.text);
      this._button.update(step.label, confirmation(step.confirm, isOutdated));
      setTextWithTerms(this._loss, step.loss === null ? '' : `(${step.loss})`);
    }
  }

  set disabled(isDisabled: boolean) {
    this._button.disabled = isDisabled;
  }
}
