import type { Actions } from './actions';
import { amountFields, amountOf } from './amounts';
import type { IField } from './dialog';
import { LongText } from './longText';
import { PlanView } from './planView';
import type { Service } from './service';
import { cellFor, heading, moment } from './tableParts';
import { button, element, type IView, setText, Views } from '../dom/dom';
import { Fold } from '../dom/fold';
import type { IRequestState, IRequestedQueryState, ITableState } from '../protocol/curation';
import { trans } from '../translation';

/** What analysts want: the pending requests, and folded below them those that are decided. */
export class RequestsView implements IView<ITableState> {
  readonly node: HTMLElement;
  private readonly _title = element('h2', 'dpnb-title');
  private readonly _pending: Views<IRequestState>;
  private readonly _decided: Views<IRequestState>;
  private readonly _fold = new Fold('dpnb-decided', '');
  private readonly _empty = element('p', 'dpnb-quiet', trans.__('No request is pending.'));
  private _name = '';

  constructor(service: Service, actions: Actions | null, fail: (error: unknown) => void) {
    this._title.id = 'dpnb-requests-title';
    const list = element('div', 'dpnb-requests');
    const make = (): IView<IRequestState> => requestView(actions, () => this._name, new PlanView(service, fail));
    this._pending = new Views(list, make);
    this._decided = new Views(this._fold.body, make);
    this.node = element('section', 'dpnb-block', this._title, this._empty, list, this._fold.node);
    this.node.setAttribute('aria-labelledby', this._title.id);
  }

  update({ name, requests }: ITableState): void {
    this._name = name;
    const pending = requests.filter(one => one.status === 'pending');
    const decided = requests.filter(one => one.status !== 'pending');
    setText(this._title, pending.length > 0 ? trans.__('Requests (%1)', pending.length) : trans.__('Requests'));
    this._pending.update(pending);
    this._decided.update(decided);
    this._empty.hidden = pending.length > 0;
    this._fold.rename(trans.__('Decided (%1)', decided.length));
    this._fold.node.hidden = decided.length === 0;
  }
}

function requestView(actions: Actions | null, table: () => string, plan: PlanView): IView<IRequestState> {
  let request: IRequestState | null = null;
  const who = element('h3', 'dpnb-request-who dpnb-foreign');
  const when = element('p', 'dpnb-quiet');
  const why = element('blockquote', 'dpnb-request-why dpnb-foreign');
  const body = element('tbody', '');
  const queries = new Views(body, queryRow);
  const headings = [trans.__('Query'), trans.__('Wanted'), trans.__('Cost'), trans.__('Expected error')];
  const caption = element('caption', 'dpnb-visually-hidden', trans.__('Queries of the request'));
  const head = element('thead', '', element('tr', '', ...headings.map(heading)));
  const list = element('table', 'dpnb-request-queries', caption, head, body);
  const total = element('p', 'dpnb-request-total');
  const after = element('p', 'dpnb-quiet');
  const decision = element('p', 'dpnb-request-decision');
  const withRequest = (act: (actions: Actions, table: string, request: IRequestState) => void) => (): void => {
    if (request && actions) {
      act(actions, table(), request);
    }
  };
  const buttons = element(
    'div',
    'dpnb-request-acts',
    button('dpnb-button dpnb-mod-primary', trans.__('Approve…'), withRequest(approve)),
    button('dpnb-button', trans.__('Approve in part…'), withRequest(approveInPart)),
    button('dpnb-button', trans.__('Decline…'), withRequest(decline))
  );
  const node = element('article', 'dpnb-request', who, when, why, list, plan.node, total, after, decision, buttons);
  return {
    node,
    update: (new_): void => {
      request = new_;
      node.dataset.request = String(request.number);
      node.dataset.state = request.status;
      setText(who, request.analyst);
      setText(when, trans.__('request %1 of %2', request.number, moment(request.time)));
      setText(why, request.why);
      queries.update(request.queries);
      plan.update({ table: table(), row: request.number });
      setText(total, trans.__('Together: %1', request.total.words));
      setText(after, afterwards(request));
      after.hidden = request.spent === null;
      setText(decision, decisionOf(request));
      decision.hidden = request.decided_by === null;
      buttons.hidden = actions === null || request.status !== 'pending';
    }
  };
}

function queryRow(): IView<IRequestedQueryState> {
  const words = new LongText('dpnb-request-words');
  const what = element('th', '', words.node);
  what.scope = 'row';
  const target = cellFor(trans.__('Wanted'));
  const cost = cellFor(trans.__('Cost'));
  const error = cellFor(trans.__('Expected error'));
  return {
    node: element('tr', '', what, target, cost, error),
    update: (query): void => {
      words.update(query.words);
      setText(target, query.target);
      setText(cost, query.cost.words);
      setText(error, query.error || '–');
    }
  };
}

const until = (): IField => ({
  name: 'until',
  label: trans.__('Until'),
  kind: 'time',
  hint: trans.__('Your local time; empty for no end. Afterwards the cap is what it would be without the approval.')
});
const reason = (isRequired: boolean): IField => ({
  name: 'why',
  label: isRequired ? trans.__('Reason') : trans.__('Remark'),
  kind: 'long',
  hint: trans.__('The analyst reads it.'),
  isRequired
});

/** What an approval does, in words; the analyst's own text is quoted as a text. */
const consequences = (request: IRequestState): string[] => [
  trans.__(
    'The cap of %1 is raised by the amount, up to the ceiling if there is one. It is written into the ledger with your name.',
    request.analyst
  ),
  trans.__('The request is for %1.', request.total.words),
  ...(request.spent === null ? [] : [afterwards(request)])
];

/** What an approval of all that is requested makes of the analyst's part. */
const afterwards = ({ spent, cap, cap_after: raised }: IRequestState): string =>
  trans.__(
    'Spent so far: %1. Cap now: %2; after an approval: %3.',
    spent?.words ?? '',
    cap?.words ?? trans.__('none'),
    raised?.words ?? trans.__('none')
  );

/** Who decided what, and when. */
function decisionOf({ status, decided_by: curator, decided, granted, until: end, reason: why }: IRequestState): string {
  const by = trans.__('%1 by %2, %3', status, curator ?? '', moment(decided ?? ''));
  const amount = granted === null ? '' : `: ${granted.words}`;
  const lapses = end === null ? '' : ` ${trans.__('until %1', moment(end))}`;
  return `${by}${amount}${lapses}${why === '' ? '' : ` (${why})`}`;
}

/** The instant that a field of local time names, in UTC; null if it is empty. */
export function instant(local: string): string | null {
  return local === '' ? null : new Date(local).toISOString().replace(/\.\d+Z$/, 'Z');
}

function approve(actions: Actions, table: string, request: IRequestState): void {
  void actions.table(table, {
    title: trans.__('Approve the request of %1', request.analyst),
    what: consequences(request),
    fields: [until(), reason(false)],
    confirm: trans.__('Approve %1', request.total.words),
    act: values => ({
      act: 'approve',
      request: request.number,
      digest: request.digest,
      amount: null,
      until: instant(values.until ?? ''),
      why: values.why ?? ''
    }),
    done: trans.__('The request of %1 is approved.', request.analyst)
  });
}

function approveInPart(actions: Actions, table: string, request: IRequestState): void {
  void actions.table(table, {
    title: trans.__('Approve the request of %1 in part', request.analyst),
    what: consequences(request),
    fields: [...amountFields(request.largest, true), until(), reason(false)],
    confirm: trans.__('Approve this amount'),
    act: values => ({
      act: 'approve',
      request: request.number,
      digest: request.digest,
      amount: amountOf(values),
      until: instant(values.until ?? ''),
      why: values.why ?? ''
    }),
    done: trans.__('The request of %1 is approved in part.', request.analyst)
  });
}

function decline(actions: Actions, table: string, request: IRequestState): void {
  void actions.table(table, {
    title: trans.__('Decline the request of %1', request.analyst),
    what: [trans.__('The cap of %1 stays as it is. It is written into the ledger with your name.', request.analyst)],
    fields: [reason(true)],
    confirm: trans.__('Decline'),
    isSevere: true,
    act: values => ({ act: 'decline', request: request.number, digest: request.digest, why: values.why ?? '' }),
    done: trans.__('The request of %1 is declined.', request.analyst)
  });
}
