import { arrange, element, type IView, setText, Views } from '../dom/dom';
import { Fold } from '../dom/fold';
import { isOutOfDate } from '../dom/format';
import { LogView } from '../log/log';
import { type ISessionSnapshot, EXCLUDED_UNITS } from '../protocol/snapshot';
import { BUDGET_OVER_TIME, ODOMETERS_OVER_TIME } from '../timeline/contents';
import { TimelineView } from '../timeline/timeline';
import { AccountingDetails } from './accountingDetails';
import { BudgetRequestsView } from './budgetRequests';
import { ConnectionView } from './connection';
import { GuaranteeView, SpentView } from './facts';
import { GaugeView } from './gauge';
import { LossesView } from './losses';
import { MechanismsView } from './mechanisms';
import { NextSteps } from './nextSteps';
import { NoticeView } from './notice';
import type { ISessionActions, ISessionRequests } from './sessionActions';
import { trans } from '../translation';

/**
 * One session: what is left and spent, the guarantee, mechanisms, timeline, log and accounting details.
 *
 * Both the side panel and the widget below a cell use it.  It is updated in place, so that gauges are animated and the
 * reader's selection survives.
 */
export class SessionView implements IView<ISessionSnapshot> {
  readonly node = element('section', 'dpnb-session');
  private readonly _name = element('h3', 'dpnb-session-name');
  private readonly _notice = new NoticeView('dpnb-notice', 'alert');
  private readonly _connection: ConnectionView;
  private readonly _dials = element('div', 'dpnb-gauges');
  private readonly _dialViews = new Views(this._dials, () => new GaugeView());
  private readonly _spent = new SpentView();
  private readonly _guarantee = new GuaranteeView();
  private readonly _participation = new NoticeView('dpnb-participation', 'status');
  /** In the details; without a budget it is all that there is to show. */
  private readonly _losses = new LossesView();
  private readonly _lossesWithoutBudget = element('div', '');
  private readonly _next: NextSteps;
  private readonly _requests = new BudgetRequestsView();
  private readonly _mechanisms = new MechanismsView();
  private readonly _timeline = new TimelineView(BUDGET_OVER_TIME);
  private readonly _timelineFold = new Fold('dpnb-budget-over-time', BUDGET_OVER_TIME.title());
  /** Without a budget, in place of the budget over time. */
  private readonly _lossTimeline = new TimelineView(ODOMETERS_OVER_TIME);
  private readonly _lossFold = new Fold('dpnb-loss-over-time', ODOMETERS_OVER_TIME.title());
  private readonly _overTime = element('div', '');
  private readonly _log: LogView | null;
  private readonly _details = new AccountingDetails();
  private _isRequested = false;
  private _isCompared = false;

  /**
   * @param actions The actions of the panel; null below a cell, where the log is not shown.
   * @param _kernel What it requests from the kernel.
   */
  constructor(
    actions: ISessionActions | null,
    private readonly _kernel: ISessionRequests
  ) {
    this._connection = new ConnectionView(() => this._kernel.reconnect());
    this._next = new NextSteps(actions);
    this._log = actions && new LogView(actions);
    this._timelineFold.body.append(this._timeline.node);
    this._lossFold.body.append(this._lossTimeline.node);
    const overview = element('div', 'dpnb-overview', this._dials, this._spent.node);
    this.node.append(
      this._name,
      this._notice.node,
      this._connection.node,
      overview,
      this._participation.node,
      this._guarantee.node
    );
    this.node.append(this._lossesWithoutBudget, this._requests.node, this._next.node, this._mechanisms.node);
    this.node.append(this._overTime);
    if (this._log) {
      this.node.append(this._log.node);
    }
    this.node.append(this._details.node);
    for (const fold of [this._details.fold, this._lossFold]) {
      fold.node.addEventListener('toggle', () => this._compare());
    }
  }

  update(session: ISessionSnapshot): void {
    this.node.dataset.session = session.id;
    this.node.classList.toggle('dpnb-mod-not-private', session.notice !== null);
    const isOutdated = isOutOfDate(session.connection);
    this.node.classList.toggle('dpnb-mod-out-of-date', isOutdated);
    this.node.setAttribute(
      'aria-label',
      isOutdated ? trans.__('dpnb session %1, out of date', session.name) : trans.__('dpnb session %1', session.name)
    );
    setText(this._name, session.name);
    this._notice.update({ text: session.notice, explanation: session.notice_explanation });
    this._connection.update(session.connection);
    this._dialViews.update(session.gauges.filter(gauge => gauge.kind !== 'loss'));
    this._spent.update(session);
    this._guarantee.update(session);
    this._participation.update({ text: session.participation, explanation: EXCLUDED_UNITS });
    this._losses.update(session);
    this._requests.update(session.budget_requests);
    this._next.update(session.next_steps);
    this._mechanisms.update(session.mechanisms);
    this._timeline.update(session.timeline);
    this._lossTimeline.update(session.timeline);
    const hasBudget = session.gauges.every(gauge => gauge.kind !== 'no-budget');
    arrange(hasBudget ? this._details.losses : this._lossesWithoutBudget, [this._losses.node]);
    arrange(this._overTime, [(hasBudget ? this._timelineFold : this._lossFold).node]);
    this._log?.update(session);
    this._details.update(session);
    // Another page that shows the session no longer compares it.
    this._isRequested &&= session.is_compared || !this._isCompared;
    this._isCompared = session.is_compared;
    this._compare();
  }

  /** Request what is computed only to be compared, while the reader has it open. */
  private _compare(): void {
    const isShown =
      this._details.fold.node.open || (this._lossFold.node.open && this._lossFold.node.parentNode !== null);
    const session = this.node.dataset.session;
    if (session !== undefined && isShown !== this._isRequested) {
      this._isRequested = isShown;
      this._kernel.compare(session, isShown);
    }
  }

  /** Unfold what an analyst reads, except what the reader has closed; the accounting details stay folded. */
  unfold(): void {
    this._timelineFold.unfold();
    this._lossFold.unfold();
  }

  /** Show the log or the budget over time, and move the focus to it. */
  showPart(part: 'log' | 'timeline'): void {
    if (part === 'log') {
      this._log?.focus();
    } else {
      const isLoss = this._lossFold.node.isConnected;
      const [fold, timeline] = isLoss ? [this._lossFold, this._lossTimeline] : [this._timelineFold, this._timeline];
      fold.open();
      fold.node.scrollIntoView({ block: 'start' });
      timeline.focus();
    }
  }

  /** Show only the releases of one cell; returns the log, or null, without a change, if there are none. */
  showCell(cell: string): LogView | null {
    return this._log?.showCell(cell) ? this._log : null;
  }
}
