import { element, setText } from './dom';

/**
 * A collapsible part of a session.
 *
 * The reader controls whether it is open: no update closes it, or opens it after the reader has closed it.
 */
export class Fold {
  readonly node: HTMLDetailsElement;
  private readonly _title: HTMLElement;
  private readonly _body = element('div', 'dpnb-fold-body');
  private _wasTouched = false;

  constructor(className: string, title: string) {
    this._title = element('summary', 'dpnb-fold-title', title);
    this._title.addEventListener('click', () => (this._wasTouched = true)); // also emitted for the keyboard
    this.node = element('details', `dpnb-fold ${className}`, this._title, this._body);
  }

  /** The parent of its content. */
  get body(): HTMLElement {
    return this._body;
  }

  rename(title: string): void {
    setText(this._title, title);
  }

  /** Open it because the reader requested something inside. */
  open(): void {
    this._wasTouched = true;
    this.node.open = true;
  }

  /** Open it, unless the reader has opened or closed it before. */
  unfold(): void {
    if (!this._wasTouched) {
      this.node.open = true;
    }
  }
}
