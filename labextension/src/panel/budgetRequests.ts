import { element, type IView, setText, setTime, Views } from '../dom/dom';
import { setTextWithTerms } from '../dom/terms';
import type { IBudgetRequestEntry } from '../protocol/snapshot';
import { trans } from '../translation';

/** The requests to the curator for a larger cap, newest first, with their answers. */
export class BudgetRequestsView implements IView<IBudgetRequestEntry[]> {
  readonly node = element('section', 'dpnb-budget-requests');
  private readonly _list = element('ul', 'dpnb-budget-request-list');
  private readonly _items = new Views(this._list, budgetRequestItem);

  constructor() {
    const title = trans.__('Requests for budget');
    this.node.setAttribute('aria-label', title);
    // An answer arrives without an action of the reader: a screen reader reads what has changed.
    this._list.setAttribute('aria-live', 'polite');
    this.node.append(element('h4', 'dpnb-heading', title), this._list);
  }

  update(requests: IBudgetRequestEntry[]): void {
    this.node.hidden = requests.length === 0;
    this._items.update(requests);
  }
}

const STATUS = {
  pending: (): string => trans.__('pending'),
  approved: (): string => trans.__('approved'),
  'approved-in-part': (): string => trans.__('approved in part'),
  declined: (): string => trans.__('declined'),
  lapsed: (): string => trans.__('lapsed')
};

function budgetRequestItem(): IView<IBudgetRequestEntry> {
  const status = element('strong', 'dpnb-budget-request-status');
  const queries = element('ul', 'dpnb-budget-request-queries');
  const why = element('div', 'dpnb-budget-request-why');
  const decision = element('div', 'dpnb-budget-request-decision');
  const time = element('time', 'dpnb-budget-request-time');
  const cost = element('span', 'dpnb-budget-request-cost');
  const facts = element('div', 'dpnb-budget-request-facts', cost, ' · ', time);
  const node = element('li', 'dpnb-budget-request', status, queries, why, decision, facts);
  return {
    node,
    update: (request): void => {
      node.dataset.request = String(request.id);
      node.dataset.status = request.status;
      const words = STATUS[request.status]();
      const title = request.analyst === null ? words : trans.__('%1, of %2', words, request.analyst);
      setText(status, title);
      if (queries.dataset.shown !== request.queries.join('\n')) {
        queries.dataset.shown = request.queries.join('\n');
        queries.replaceChildren(...request.queries.map(text => element('li', '', text)));
      }
      setText(why, trans.__('Reason: %1', request.why));
      setText(decision, request.decision === null ? '' : trans.__('Curator: %1', request.decision));
      decision.hidden = request.decision === null;
      setTextWithTerms(cost, request.cost);
      setTime(time, request.time);
    }
  };
}
