import { element, type IView, setText } from '../dom/dom';
import { ExplanationLink } from './explanationLink';

/** Something that a reader must know of a session before its figures. */
export interface INotice {
  /** null when there is nothing to know. */
  text: string | null;
  /** Id of the explanation; null when there is none. */
  explanation: string | null;
}

/** A sentence in a box, with a link to the reason; not there while there is nothing to say. */
export class NoticeView implements IView<INotice> {
  readonly node: HTMLElement;
  private readonly _text = element('span', 'dpnb-notice-text');
  private readonly _why = new ExplanationLink();

  /** @param role Whether a screen reader is interrupted ("alert") or finishes its sentence first ("status"). */
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
