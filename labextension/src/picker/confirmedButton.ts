import { button, element, setText } from '../dom/dom';
import { trans } from '../translation';

/**
 * A button for a release; a large cost is confirmed once, in place of the button.
 *
 * A double click, or a key that is held down, presses only the first button.
 */
export class ConfirmedButton {
  readonly node: HTMLElement;
  private readonly _button: HTMLButtonElement;
  private readonly _question = element('span', 'dpnb-picker-question');
  private readonly _confirm: HTMLButtonElement;
  private readonly _cancelButton: HTMLButtonElement;
  private readonly _row: HTMLElement;
  private _asked: string | null = null;

  /** @param onRelease Receives whether a large cost was confirmed. */
  constructor(
    className: string,
    private readonly _onRelease: (isConfirmed: boolean) => void
  ) {
    this._button = button(className, '');
    this._confirm = button('dpnb-picker-confirm', trans.__('Confirm'));
    this._cancelButton = button('dpnb-picker-cancel', trans.__('Cancel'));
    this._row = element('div', 'dpnb-picker-confirmation', this._question, this._confirm, this._cancelButton);
    this._row.setAttribute('role', 'group');
    this._row.hidden = true;
    this.node = element('div', 'dpnb-picker-action', this._button, this._row);
    onPress(this._button, () => this._onButton());
    onPress(this._confirm, () => {
      this.close();
      this._onRelease(true);
    });
    onPress(this._cancelButton, () => this._cancel());
    this.node.addEventListener('keydown', event => {
      if (event.repeat && [' ', 'Enter'].includes(event.key)) {
        event.preventDefault();
      } else if (event.key === 'Escape' && !this._row.hidden) {
        event.stopPropagation();
        this._cancel();
      }
    });
  }

  /** Show a text; a change of what must be confirmed closes the confirmation. */
  update(text: string, question: string | null): void {
    setText(this._button, text);
    if (question !== this._asked) {
      this.close();
      this._asked = question;
      setText(this._question, question ?? '');
      this._row.setAttribute('aria-label', question ?? '');
    }
  }

  set disabled(isDisabled: boolean) {
    this._button.disabled = this._confirm.disabled = isDisabled;
  }

  /** Show the button instead of the confirmation. */
  close(): void {
    const hadFocus = this._row.contains(document.activeElement);
    this._row.hidden = true;
    this._button.hidden = false;
    if (hadFocus) {
      this._button.focus({ preventScroll: true });
    }
  }

  private _onButton(): void {
    if (this._asked === null) {
      this._onRelease(false);
      return;
    }
    this._row.hidden = false;
    this._button.hidden = true;
    this._cancelButton.focus({ preventScroll: true }); // a key that is pressed twice releases nothing
  }

  private _cancel(): void {
    this.close();
    this._button.focus({ preventScroll: true });
  }
}

/** What must be confirmed before a release: a large cost, and that the figures are out of date; null for neither. */
export function confirmation(question: string | null, isOutdated: boolean): string | null {
  return isOutdated
    ? trans.__('The figures are out of date: cost and expected error may differ. %1', question ?? trans.__('Release?'))
    : question;
}

/** Call back for a click, except for the second of a double click. */
function onPress(node: HTMLButtonElement, callback: () => void): void {
  node.addEventListener('click', ({ detail }) => {
    if (detail <= 1) {
      callback();
    }
  });
}
