import type { Message } from '@lumino/messaging';
import { type ISignal, Signal } from '@lumino/signaling';
import { Widget } from '@lumino/widgets';

import { element, setText } from './dom';
import { message } from './format';
import { SessionView } from './sessionView';
import type { ISession } from './snapshot';
import type { ILedgerModel } from './tokens';

/** The side panel: every session of the active kernel. */
export class LedgerPanel extends Widget {
  private readonly _message = element('p', 'dpnb-message');
  private readonly _sessions = element('div', 'dpnb-sessions');
  /** Those of other kernels too: whoever comes back to a notebook finds folded what was folded. */
  private readonly _views = new Map<string, SessionView>();
  private readonly _visibilityChanged = new Signal<this, boolean>(this);

  constructor(private readonly _model: ILedgerModel) {
    super();
    this.addClass('dpnb-panel');
    this.node.tabIndex = -1; // so that the command which opens it can move the keyboard there
    this.node.setAttribute('aria-label', 'Privacy budget');
    this.node.setAttribute('role', 'region');
    this._message.setAttribute('role', 'status');
    this.node.append(this._message, this._sessions);
    _model.changed.connect(this._onChanged, this);
    this.update();
  }

  /** Emitted when the panel comes into sight (true) or goes out of it (false). */
  get visibilityChanged(): ISignal<this, boolean> {
    return this._visibilityChanged;
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
    const view = this._model.view;
    const text = message(view);
    setText(this._message, text ?? '');
    this._message.hidden = text === null;
    this.toggleClass('dpnb-mod-stale', view.kind === 'stale');
    this._drawSessions('snapshot' in view ? view.snapshot.sessions : []);
  }

  private _onChanged(): void {
    this.update(); // many changes within one frame are drawn once
  }

  private _drawSessions(sessions: ISession[]): void {
    const views = sessions.map(session => this._draw(session));
    views[0]?.unfold(); // the one that is being used
    const nodes = views.map(view => view.node);
    const isSame =
      nodes.length === this._sessions.children.length && nodes.every((n, i) => n === this._sessions.children[i]);
    if (!isSame) {
      this._sessions.replaceChildren(...nodes);
    }
  }

  private _draw(session: ISession): SessionView {
    const view = this._views.get(session.id) ?? new SessionView(true);
    this._views.set(session.id, view);
    view.update(session);
    return view;
  }
}
