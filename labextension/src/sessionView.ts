import { element, type IView, setText, Views } from './dom';
import { FiltersView } from './filters';
import { drawGauge } from './gauge';
import { LogView } from './log';
import { MechanismsView } from './mechanisms';
import { NextSteps } from './nextSteps';
import { NoticeView } from './notice';
import { OdometersView } from './odometers';
import { type IGauge, type ISession, LEFT_OUT, PAUSED } from './snapshot';
import { TimelineView } from './timeline';
import type { ISessionTools } from './tools';

/**
 * One session: its name, what it promises, its gauges, what was spent, what goes on asking, and how other filters and
 * odometers see it.
 *
 * The side panel and the widget in a cell both use it.  It is updated in place, so that a gauge moves instead of
 * being replaced and a reader's selection survives.
 */
export class SessionView implements IView<ISession> {
  readonly node = element('section', 'dpnb-session');
  private readonly _name = element('h3', 'dpnb-session-name');
  private readonly _notice = new NoticeView('dpnb-notice', 'alert');
  private readonly _promise = element('p', 'dpnb-promise');
  private readonly _dials = element('div', 'dpnb-gauges');
  private readonly _gauges = new Views(this._dials, gaugeHost);
  private readonly _who = new NoticeView('dpnb-who', 'status');
  private readonly _spent = element('p', 'dpnb-spent');
  private readonly _next: NextSteps;
  private readonly _mechanisms = new MechanismsView();
  private readonly _filters = new FiltersView();
  /** Not folded away with the odometers: their dial and their curves pause as well. */
  private readonly _paused = new NoticeView('dpnb-paused', 'status');
  private readonly _odometers = new OdometersView();
  private readonly _timeline = new TimelineView();
  private readonly _ledger = element('p', 'dpnb-ledger');
  private readonly _log: LogView | null;

  /** @param tools What the panel can do for it; null, below a cell, leaves the log to the panel. */
  constructor(tools: ISessionTools | null) {
    this._next = new NextSteps(tools);
    this._log = tools && new LogView(tools);
    this.node.append(this._name, this._notice.node, this._promise, this._dials, this._who.node);
    this.node.append(this._spent, this._next.node);
    this.node.append(this._mechanisms.node, this._timeline.node, this._filters.node);
    if (this._log) {
      this.node.append(this._log.node);
    }
    this.node.append(this._paused.node, this._odometers.node);
    if (this._log) {
      this.node.append(this._ledger);
    }
  }

  update(session: ISession): void {
    this.node.dataset.session = session.id;
    this.node.classList.toggle('dpnb-mod-unreal', session.notice !== null);
    this.node.setAttribute('aria-label', `dpnb session ${session.name}`);
    setText(this._name, session.name);
    this._notice.update({ text: session.notice, explanation: session.warning });
    setText(this._promise, session.promise);
    this._who.update({ text: session.individual, explanation: LEFT_OUT });
    setText(this._spent, `Spent: ${session.spent}`);
    setText(this._ledger, `Ledger: ${session.ledger}`);
    this._gauges.update(session.gauges);
    this._next.update(session.next);
    this._mechanisms.update(session.mechanisms);
    this._filters.update(session.filters);
    this._paused.update({ text: session.paused, explanation: PAUSED });
    this._odometers.update(session.odometers);
    this._timeline.update(session.timeline);
    this._log?.update(session);
  }

  /** Unfold everything, except for what the reader folded by hand. */
  unfold(): void {
    this._filters.fold.unfold();
    this._odometers.fold.unfold();
    this._timeline.fold.unfold();
  }

  /** Show only the releases of one cell; returns their log, or null, and nothing changes, when there are none. */
  showCell(cell: string): LogView | null {
    return this._log?.showCell(cell) ? this._log : null;
  }
}

function gaugeHost(): IView<IGauge> {
  const node = element('div', '');
  return { node, update: gauge => drawGauge(node, gauge) };
}
