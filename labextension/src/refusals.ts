import { element, type IView, setText, setTime, Views } from './dom';
import { CellButton } from './logRow';
import type { IRefusal } from './snapshot';
import type { ISessionTools } from './tools';
import { WhyLink } from './why';

/** What the filter refused, newest first. */
export class RefusalsView implements IView<IRefusal[]> {
  readonly node = element('section', 'dpnb-refusals');
  private readonly _list = element('ul', 'dpnb-refusal-list');
  private readonly _items: Views<IRefusal>;

  constructor(tools: ISessionTools) {
    this.node.setAttribute('aria-label', 'Refused');
    this.node.append(element('h4', 'dpnb-heading', 'Refused'), this._list);
    this._items = new Views(this._list, () => refusalItem(tools));
  }

  update(refusals: IRefusal[]): void {
    this.node.hidden = refusals.length === 0;
    this._items.update(refusals);
  }
}

function refusalItem(tools: ISessionTools): IView<IRefusal> {
  const question = element('div', 'dpnb-refusal-question');
  const message = element('div', 'dpnb-refusal-message');
  const time = element('time', 'dpnb-refusal-time');
  const why = new WhyLink();
  const jump = new CellButton(tools);
  const facts = element('div', 'dpnb-refusal-facts', 'nothing was charged · ', time, ' ', why.node);
  const node = element('li', 'dpnb-refusal', question, message, facts, jump.node);
  return {
    node,
    update: (refusal): void => {
      node.dataset.refusal = String(refusal.id);
      setText(question, refusal.question);
      setText(message, refusal.message);
      setTime(time, refusal.time);
      why.update(refusal.explanation, `was this refused: ${refusal.question}`);
      jump.update(refusal.cell, `of the refused question ${refusal.question}`);
    }
  };
}
