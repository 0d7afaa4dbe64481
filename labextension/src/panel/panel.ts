import { type Message, MessageLoop } from '@lumino/messaging';
import { type ISignal, Signal } from '@lumino/signaling';
import { Widget } from '@lumino/widgets';

import { arrange, element, setText } from '../dom/dom';
import { ExplanationsView } from './explanations';
import { message, newestSession } from '../dom/format';
import { SessionView } from './sessionView';
import type { ISessionSnapshot } from '../protocol/snapshot';
import type { ILedgerModel } from '../kernel/tokens';
import type { ISessionActions } from './sessionActions';
import { trans } from '../translation';

/** The side panel: every session of the active kernel, and the explanations. */
export class LedgerPanel extends Widget {
  private readonly _busy = element('p', 'dpnb-busy', trans.__('kernel is busy'));
  private readonly _message = element('p', 'dpnb-message');
  private readonly _sessions = element('div', 'dpnb-sessions');
  private readonly _explanations = new ExplanationsView();
  /** Including those of other kernels, so that they are unchanged when the user returns to a notebook. */
  private readonly _views = new Map<string, SessionView>();
  private readonly _visibilityChanged = new Signal<this, boolean>(this);

  constructor(
    private readonly _model: ILedgerModel,
    private readonly _actions: ISessionActions
  ) {
    super();
    this.addClass('dpnb-panel');
    this.node.tabIndex = -1; // so that the command that opens it can move the focus to it
    this.node.setAttribute('aria-label', trans.__('Privacy budget'));
    this.node.setAttribute('role', 'region');
    this._message.setAttribute('role', 'status');
    this.node.append(this._busy, this._message, this._sessions, this._explanations.node);
    _model.changed.connect(this._onChanged, this);
    this.update();
  }

  /** Emitted when the panel is shown (true) or hidden (false). */
  get visibilityChanged(): ISignal<this, boolean> {
    return this._visibilityChanged;
  }

  /** Move the focus to an explanation; null for the list of all. */
  showExplanation(explanation: string | null): void {
    this._drawNow();
    this._explanations.show(explanation);
  }

  /** Move the focus to a part of the most recently used session; false if there is no session. */
  showPart(part: 'log' | 'timeline'): boolean {
    this._drawNow();
    const session = newestSession(this._model.view);
    const view = session && this._views.get(session.id);
    view?.showPart(part);
    return Boolean(view);
  }

  /** Show only the releases of one notebook cell. */
  showCell(cell: string): void {
    this._drawNow();
    const shown = this._shown.map(view => view.showCell(cell)).filter(log => log !== null);
    shown[0]?.focus();
  }

  protected onAfterShow(msg: Message): void {
    super.onAfterShow(msg);
    this._visibilityChanged.emit(true);
  }

  protected onAfterHide(msg: Message): void {
    super.onAfterHide(msg);
    this._visibilityChanged.emit(false);
  }

  protected onUpdateRequest(msg: Message): void {
    super.onUpdateRequest(msg);
    const { view, isBusy } = this._model;
    const text = message(view, isBusy);
    setText(this._message, text ?? '');
    this._message.hidden = text === null;
    this._busy.hidden = !(isBusy && view.kind === 'live');
    this.toggleClass('dpnb-mod-stale', view.kind === 'stale');
    const snapshot = 'snapshot' in view ? view.snapshot : null;
    const sessions = snapshot?.sessions ?? [];
    this._drawSessions(sessions);
    this._explanations.update(snapshot?.explanations ?? null, sessions);
  }

  /** Draw the current state at once: the model may have changed since the last frame. */
  private _drawNow(): void {
    MessageLoop.sendMessage(this, Widget.Msg.UpdateRequest);
  }

  private _onChanged(): void {
    this.update(); // changes within one frame are drawn together
  }

  private get _shown(): SessionView[] {
    return [...this._views.values()].filter(view => view.node.parentNode === this._sessions);
  }

  private _drawSessions(sessions: ISessionSnapshot[]): void {
    const views = sessions.map(session => this._draw(session));
    views[0]?.unfold(); // the most recently used one
    arrange(
      this._sessions,
      views.map(view => view.node)
    );
  }

  private _draw(session: ISessionSnapshot): SessionView {
    const view = this._views.get(session.id) ?? new SessionView(this._actions, this._actions);
    this._views.set(session.id, view);
    view.update(session);
    return view;
  }
}
