import { element, setText } from './dom';

/**
 * A part of a session that can be folded away.
 *
 * Whether it is open belongs to the reader: no update closes it, and none opens what the reader closed.
 */
export class Fold {
  readonly node: HTMLDetailsElement;
  private readonly _title: HTMLElement;
  private readonly _body = element('div', 'dpnb-fold-body');
  private _wasTouched = false;

  constructor(className: string, title: string) {
    this._title = element('summary', 'dpnb-fold-title', title);
    this._title.addEventListener('click', () => (this._wasTouched = true)); // the keyboard clicks too
    this.node = element('details', `dpnb-fold ${className}`, this._title, this._body);
  }

  /** Where its content belongs. */
  get body(): HTMLElement {
    return this._body;
  }

  rename(title: string): void {
    setText(this._title, title);
  }

  /** Open it because the reader asked for something inside. */
  open(): void {
    this._wasTouched = true;
    this.node.open = true;
  }

  /** Open it, unless the reader has decided by hand. */
  unfold(): void {
    if (!this._wasTouched) {
      this.node.open = true;
    }
  }
}
