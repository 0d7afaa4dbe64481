import { element, type IView, setText } from '../dom/dom';
import { Fold } from '../dom/fold';
import { setTextWithTerms } from '../dom/terms';
import { ODOMETERS_OVER_TIME } from '../timeline/contents';
import { TimelineView } from '../timeline/timeline';
import type { ISessionSnapshot } from '../protocol/snapshot';
import { FiltersView } from './filters';
import { OdometersView } from './odometers';
import { trans } from '../translation';

/** What an expert looks up: the loss, the filters compared, every odometer, also over time, and the ledger's file. */
export class AccountingDetails implements IView<ISessionSnapshot> {
  readonly fold = new Fold('dpnb-accounting', trans.__('Accounting details'));
  /** Where the reading of the odometer is shown. */
  readonly losses = element('div', '');
  private readonly _guarantee = element('p', 'dpnb-exact-guarantee');
  private readonly _spent = element('p', 'dpnb-spent-loss');
  private readonly _filters = new FiltersView();
  private readonly _odometers = new OdometersView();
  private readonly _timeline = new TimelineView(ODOMETERS_OVER_TIME);
  private readonly _missing = element('p', 'dpnb-not-compared');
  private readonly _ledger = element('p', 'dpnb-ledger');

  constructor() {
    this.fold.body.append(this._guarantee, this.losses, this._spent, this._missing);
    this.fold.body.append(this._filters.node, this._odometers.node);
    this.fold.body.append(this._timeline.node, this._ledger);
  }

  get node(): HTMLElement {
    return this.fold.node;
  }

  update(session: ISessionSnapshot): void {
    setTextWithTerms(this._guarantee, trans.__('Guarantee: %1', session.guarantee));
    const missing = trans.__('The other filters and odometers are shown as soon as the kernel is idle.');
    setText(this._missing, session.is_compared ? '' : missing);
    this._missing.hidden = session.is_compared;
    this._filters.update(session.filters);
    this._odometers.update(session);
    this._timeline.update(session.timeline);
    this._timeline.node.hidden = session.timeline.curves.length === 0;
    const spent = trans.__('Spent: %1; a budget is rounded down, a guarantee up', session.spent_loss);
    setTextWithTerms(this._spent, spent);
    this._spent.hidden = session.gauges.some(gauge => gauge.kind === 'no-budget');
    setText(this._ledger, trans.__('Ledger: %1', session.ledger));
  }
}
