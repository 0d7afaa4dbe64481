import { element, type IView, setText } from './dom';
import type { ISession } from './snapshot';
import { WhyLink } from './why';

/** Says loudly why the answers of a session must not be taken for real, or for private, and links to the reason. */
export class NoticeView implements IView<ISession> {
  private readonly _text = element('span', 'dpnb-notice-text');
  private readonly _why = new WhyLink();
  readonly node = element('p', 'dpnb-notice', this._text, ' ', this._why.node);

  constructor() {
    this._text.setAttribute('role', 'alert');
  }

  update({ notice, warning }: ISession): void {
    setText(this._text, notice ?? '');
    this.node.hidden = notice === null;
    this._why.update(warning, notice ?? '');
  }
}
