import { element, type IView, setText } from '../dom/dom';
import { ExplanationLink } from './explanationLink';

/** A notice about a session, shown above its numbers. */
export interface INotice {
  /** null if there is no notice. */
  text: string | null;
  /** Id of the explanation; null if there is none. */
  explanation: string | null;
}

/** A sentence in a box, with a link to its explanation; hidden if there is no notice. */
export class NoticeView implements IView<INotice> {
  readonly node: HTMLElement;
  private readonly _text = element('span', 'dpnb-notice-text');
  private readonly _why = new ExplanationLink();

  /** @param role "alert" interrupts a screen reader; "status" waits until it has finished its sentence. */
  constructor(className: string, role: 'alert' | 'status') {
    this._text.setAttribute('role', role);
    this.node = element('p', className, this._text, ' ', this._why.node);
  }

  update({ text, explanation }: INotice): void {
    setText(this._text, text ?? '');
    this.node.hidden = text === null;
    this._why.update(explanation, text ?? '');
  }
}
