import { arrange, element, type IView, setText } from '../dom/dom';
import { trans } from '../translation';

/** Characters that are shown of a longer text until it is opened. */
export const SHOWN = 140;

/** A text that somebody else wrote, or chose names in; folded to its beginning if it is long. */
export class LongText implements IView<string> {
  readonly node: HTMLElement;
  private readonly _short = element('span', '');
  private readonly _cut = element('span', 'dpnb-long-cut');
  private readonly _whole = element('div', '');
  private readonly _fold: HTMLDetailsElement;

  constructor(className: string) {
    const less = element('span', 'dpnb-long-less', trans.__('Show less'));
    this._fold = element('details', 'dpnb-long', element('summary', '', this._cut, less), this._whole);
    this.node = element('div', `${className} dpnb-foreign`);
  }

  update(text: string): void {
    const characters = Array.from(text);
    const isLong = characters.length > SHOWN * 1.25;
    setText(this._short, isLong ? '' : text);
    setText(this._cut, isLong ? `${characters.slice(0, SHOWN).join('')}…` : '');
    setText(this._whole, isLong ? text : '');
    arrange(this.node, [isLong ? this._fold : this._short]);
  }
}
