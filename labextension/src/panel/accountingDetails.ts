import { element, type IView, setText } from '../dom/dom';
import { Fold } from '../dom/fold';
import { ODOMETERS_OVER_TIME } from '../timeline/contents';
import { TimelineView } from '../timeline/timeline';
import type { ISessionSnapshot } from '../protocol/snapshot';
import { FiltersView } from './filters';
import { OdometersView } from './odometers';
import { trans } from '../translation';

/** What an expert looks up: the filters compared, every odometer, the odometers over time, and the ledger's file. */
export class AccountingDetails implements IView<ISessionSnapshot> {
  readonly fold = new Fold('dpnb-accounting', trans.__('Accounting details'));
  private readonly _filters = new FiltersView();
  private readonly _odometers = new OdometersView();
  private readonly _timeline = new TimelineView(ODOMETERS_OVER_TIME);
  private readonly _missing = element('p', 'dpnb-not-compared');
  private readonly _ledger = element('p', 'dpnb-ledger');

  constructor() {
    this.fold.body.append(this._missing, this._filters.node, this._odometers.node, this._timeline.node, this._ledger);
  }

  get node(): HTMLElement {
    return this.fold.node;
  }

  update(session: ISessionSnapshot): void {
    const missing = trans.__('The other filters and odometers are shown as soon as the kernel is idle.');
    setText(this._missing, session.is_compared ? '' : missing);
    this._missing.hidden = session.is_compared;
    this._filters.update(session.filters);
    this._odometers.update(session);
    this._timeline.update(session.timeline);
    this._timeline.node.hidden = session.timeline.curves.length === 0;
    setText(this._ledger, trans.__('Ledger: %1', session.ledger));
  }
}
