import { type Kernel, KernelMessage } from '@jupyterlab/services';
import type { IDisposable } from '@lumino/disposable';
import { type ISignal, Signal } from '@lumino/signaling';

import type { ISnapshotCache } from './cache';
import { type ISnapshot, readSnapshot } from './snapshot';
import type { LedgerView } from './tokens';

/** The comm target under which a kernel's dpnb can be found. */
export const TARGET = 'dpnb.state';

/**
 * What one kernel connection tells about dpnb.
 *
 * It listens to every broadcast instead of opening a comm: a comm belongs to one connection only, so a second tab or
 * a second notebook on the same kernel would see nothing, and each one costs the kernel a thread.
 */
export class KernelWatch implements IDisposable {
  private _view: LedgerView = { kind: 'waiting' };
  private _isDisposed = false;
  private readonly _changed = new Signal<this, void>(this);
  /** Processes that were replaced; what they still had under way must not come back. */
  private readonly _retired = new Set<string>();
  /** Grows whenever an answer to an earlier question has become worthless. */
  private _round = 0;

  constructor(
    readonly kernel: Kernel.IKernelConnection,
    private readonly _cache: ISnapshotCache
  ) {
    const snapshot = _cache.read(kernel.id);
    if (snapshot) {
      this._view = { kind: 'stale', snapshot };
    }
    kernel.iopubMessage.connect(this._onMessage, this);
    kernel.statusChanged.connect(this._onStatus, this);
    kernel.connectionStatusChanged.connect(this._onConnection, this);
    if (kernel.connectionStatus === 'connected') {
      void this._ask();
    }
  }

  get view(): LedgerView {
    return this._view;
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    this._round += 1;
    Signal.clearData(this); // both what it hears and who hears it
  }

  private _set(view: LedgerView): void {
    this._view = view;
    this._changed.emit();
  }

  private _onMessage(_: Kernel.IKernelConnection, message: KernelMessage.IIOPubMessage): void {
    if (!KernelMessage.isCommMsgMsg(message)) {
      return;
    }
    const snapshot = readSnapshot(message.content.data);
    if (snapshot === 'unreadable') {
      this._set({ kind: 'unreadable' });
    } else if (snapshot && this._isNews(snapshot)) {
      this._cache.write(this.kernel.id, snapshot);
      this._set({ kind: 'live', snapshot });
    }
  }

  private _isNews(snapshot: ISnapshot): boolean {
    if (this._retired.has(snapshot.boot)) {
      return false;
    }
    const known = 'snapshot' in this._view ? this._view.snapshot : null;
    return known?.boot !== snapshot.boot || known.seq < snapshot.seq;
  }

  private _onStatus(_: Kernel.IKernelConnection, status: Kernel.Status): void {
    if (status === 'restarting' || status === 'autorestarting') {
      this._forget({ kind: 'restarted' });
    } else if (status === 'dead') {
      this._forget({ kind: 'dead' });
    }
  }

  private _onConnection(_: Kernel.IKernelConnection, status: Kernel.ConnectionStatus): void {
    if (status === 'connected') {
      void this._ask();
    }
  }

  private _forget(view: LedgerView): void {
    this._round += 1;
    if ('snapshot' in this._view) {
      this._retired.add(this._view.snapshot.boot);
    }
    this._cache.clear(this.kernel.id);
    this._set(view);
  }

  /** Ask the kernel for its state; the answer comes as a broadcast. */
  private async _ask(): Promise<void> {
    const round = (this._round += 1);
    try {
      await this.kernel.info; // a kernel that is still starting answers nothing else
      const reply = await this.kernel.requestCommInfo({ target_name: TARGET });
      if (round !== this._round || reply.content.status !== 'ok') {
        return;
      }
      const commId = Object.keys(reply.content.comms)[0];
      if (commId === undefined) {
        this._onAbsent();
      } else {
        this._requestState(commId);
      }
    } catch {
      // The connection was closed while it was being asked.  Its successor, if any, asks again.
    }
  }

  private _onAbsent(): void {
    if (this._view.kind === 'stale') {
      this._forget({ kind: 'restarted' }); // the process that was remembered is gone
    } else if (this._view.kind === 'waiting') {
      this._set({ kind: 'no-dpnb' });
    }
  }

  private _requestState(commId: string): void {
    const message = KernelMessage.createMessage<KernelMessage.ICommMsgMsg<'shell'>>({
      msgType: 'comm_msg',
      channel: 'shell',
      username: this.kernel.username,
      session: this.kernel.clientId,
      content: { comm_id: commId, data: { method: 'request_state' } }
    });
    this.kernel.sendShellMessage(message, false, true);
  }
}
