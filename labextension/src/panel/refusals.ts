import { element, type IView, setText, setTime, Views } from '../dom/dom';
import { CellButton } from '../log/logRow';
import type { IRefusal } from '../protocol/snapshot';
import type { ISessionActions } from './sessionActions';
import { ExplanationLink } from './explanationLink';
import { trans } from '../translation';

/** The refused requests, newest first. */
export class RefusalsView implements IView<IRefusal[]> {
  readonly node = element('section', 'dpnb-refusals');
  private readonly _list = element('ul', 'dpnb-refusal-list');
  private readonly _items: Views<IRefusal>;

  constructor(actions: ISessionActions) {
    const title = trans.__('Refused');
    this.node.setAttribute('aria-label', title);
    this.node.append(element('h4', 'dpnb-heading', title), this._list);
    this._items = new Views(this._list, () => refusalItem(actions));
  }

  update(refusals: IRefusal[]): void {
    this.node.hidden = refusals.length === 0;
    this._items.update(refusals);
  }
}

function refusalItem(actions: ISessionActions): IView<IRefusal> {
  const query = element('div', 'dpnb-refusal-query');
  const message = element('div', 'dpnb-refusal-message');
  const time = element('time', 'dpnb-refusal-time');
  const why = new ExplanationLink();
  const jump = new CellButton(actions);
  const facts = element('div', 'dpnb-refusal-facts', trans.__('nothing was charged'), ' · ', time, ' ', why.node);
  const node = element('li', 'dpnb-refusal', query, message, facts, jump.node);
  return {
    node,
    update: (refusal): void => {
      node.dataset.refusal = String(refusal.id);
      setText(query, refusal.query);
      setText(message, refusal.message);
      setTime(time, refusal.time);
      why.update(refusal.explanation, trans.__('was this refused: %1', refusal.query));
      jump.update(refusal.cell_id, trans.__('Go to cell of the refused query %1', refusal.query));
    }
  };
}
