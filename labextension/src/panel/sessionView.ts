import { element, type IView, setText, Views } from '../dom/dom';
import { FiltersView } from './filters';
import { drawGauge } from './gauge';
import { LogView } from '../log/log';
import { MechanismsView } from './mechanisms';
import { NextSteps } from './nextSteps';
import { NoticeView } from './notice';
import { OdometersView } from './odometers';
import { type IGauge, type ISession, EXCLUDED_UNITS, ODOMETERS_PAUSED } from '../protocol/snapshot';
import { TimelineView } from '../timeline/timeline';
import type { ISessionActions } from './sessionActions';

/**
 * One session: its name, guarantee, gauges, spending, mechanisms, timeline, filters, odometers and log.
 *
 * Both the side panel and the widget below a cell use it.  It is updated in place, so that gauges are animated and the
 * reader's selection survives.
 */
export class SessionView implements IView<ISession> {
  readonly node = element('section', 'dpnb-session');
  private readonly _name = element('h3', 'dpnb-session-name');
  private readonly _notice = new NoticeView('dpnb-notice', 'alert');
  private readonly _guarantee = element('p', 'dpnb-guarantee');
  private readonly _gaugeRow = element('div', 'dpnb-gauges');
  private readonly _gauges = new Views(this._gaugeRow, gaugeHost);
  private readonly _participation = new NoticeView('dpnb-participation', 'status');
  private readonly _spent = element('p', 'dpnb-spent');
  private readonly _next: NextSteps;
  private readonly _mechanisms = new MechanismsView();
  private readonly _filters = new FiltersView();
  /** Outside the fold of the odometers, since their gauge and their curves pause too. */
  private readonly _odometersPaused = new NoticeView('dpnb-paused', 'status');
  private readonly _odometers = new OdometersView();
  private readonly _timeline = new TimelineView();
  private readonly _ledger = element('p', 'dpnb-ledger');
  private readonly _log: LogView | null;

  /** @param actions The actions of the panel; null below a cell, where the log is not shown. */
  constructor(actions: ISessionActions | null) {
    this._next = new NextSteps(actions);
    this._log = actions && new LogView(actions);
    this.node.append(this._name, this._notice.node, this._guarantee, this._gaugeRow, this._participation.node);
    this.node.append(this._spent, this._next.node);
    this.node.append(this._mechanisms.node, this._timeline.node, this._filters.node);
    if (this._log) {
      this.node.append(this._log.node);
    }
    this.node.append(this._odometersPaused.node, this._odometers.node);
    if (this._log) {
      this.node.append(this._ledger);
    }
  }

  update(session: ISession): void {
    this.node.dataset.session = session.id;
    this.node.classList.toggle('dpnb-mod-not-private', session.notice !== null);
    this.node.setAttribute('aria-label', `dpnb session ${session.name}`);
    setText(this._name, session.name);
    this._notice.update({ text: session.notice, explanation: session.notice_explanation });
    setText(this._guarantee, session.guarantee);
    this._participation.update({ text: session.participation, explanation: EXCLUDED_UNITS });
    setText(this._spent, `Spent: ${session.spent}`);
    setText(this._ledger, `Ledger: ${session.ledger}`);
    this._gauges.update(session.gauges);
    this._next.update(session.next_steps);
    this._mechanisms.update(session.mechanisms);
    this._filters.update(session.filters);
    this._odometersPaused.update({ text: session.odometers_paused, explanation: ODOMETERS_PAUSED });
    this._odometers.update(session.odometers);
    this._timeline.update(session.timeline);
    this._log?.update(session);
  }

  /** Unfold all sections, except those that the reader has closed. */
  unfold(): void {
    this._filters.fold.unfold();
    this._odometers.fold.unfold();
    this._timeline.fold.unfold();
  }

  /** Move the focus to the log or to the timeline. */
  showPart(part: 'log' | 'timeline'): void {
    if (part === 'log') {
      this._log?.focus();
    } else {
      this._timeline.focus();
    }
  }

  /** Show only the releases of one cell; returns the log, or null, without a change, if there are none. */
  showCell(cell: string): LogView | null {
    return this._log?.showCell(cell) ? this._log : null;
  }
}

function gaugeHost(): IView<IGauge> {
  const node = element('div', '');
  return { node, update: gauge => drawGauge(node, gauge) };
}
