import { type Kernel, KernelMessage } from '@jupyterlab/services';
import type { JSONObject } from '@lumino/coreutils';
import type { IDisposable } from '@lumino/disposable';
import { type ISignal, Signal } from '@lumino/signaling';

import type { ISnapshotCache } from './cache';
import { sendToComm } from './comm';
import { type ILog, LogBook, readLogChunk } from './logBook';
import { type IRelease, type ISnapshot, readSnapshot } from './snapshot';
import type { LedgerView } from './tokens';

/** The comm target under which a kernel's dpnb can be found. */
const TARGET = 'dpnb.state';

/** Milliseconds after which a kernel that is at work counts as busy: every small request makes it so for an instant. */
export const BUSY_AFTER = 500;

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
  private _commId: string | null = null;
  private _isBusy = false;
  private _busyTimer: number | undefined;
  private readonly _book = new LogBook(session => this._send({ method: 'request_log', session }));

  constructor(
    readonly kernel: Kernel.IKernelConnection,
    private readonly _cache: ISnapshotCache
  ) {
    const snapshot = _cache.read(kernel.id);
    if (snapshot) {
      this._view = { kind: 'stale', snapshot };
      this._book.hear(snapshot);
    }
    kernel.iopubMessage.connect(this._onMessage, this);
    kernel.statusChanged.connect(this._onStatus, this);
    kernel.connectionStatusChanged.connect(this._onConnection, this);
    this._watchBusy(kernel.status);
    if (kernel.connectionStatus === 'connected') {
      void this._ask();
    }
  }

  get view(): LedgerView {
    return this._view;
  }

  /** Whether the kernel has been at work for a while. */
  get isBusy(): boolean {
    return this._isBusy;
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** What is known of a session's log. */
  log(session: string): ILog {
    return this._book.log(session);
  }

  /** Every row of a session's log, newest first; null when the kernel is gone for good before it told them. */
  requestLog(session: string): Promise<readonly IRelease[] | null> {
    const answer = this._book.request(session);
    this._changed.emit();
    return answer;
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
    window.clearTimeout(this._busyTimer);
    this._book.close();
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
    const { comm_id: commId, data } = message.content;
    const snapshot = readSnapshot(data);
    if (snapshot === 'unreadable') {
      this._set({ kind: 'unreadable' });
    } else if (snapshot && this._isNews(snapshot)) {
      this._commId = commId;
      this._cache.write(this.kernel.id, snapshot);
      this._book.hear(snapshot);
      this._set({ kind: 'live', snapshot });
    } else {
      this._onLog(data);
    }
  }

  private _onLog(data: unknown): void {
    const chunk = readLogChunk(data);
    if (chunk && this._book.hearChunk(chunk)) {
      this._changed.emit();
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
    this._watchBusy(status);
    if (status === 'restarting' || status === 'autorestarting') {
      this._forget({ kind: 'restarted' });
    } else if (status === 'dead') {
      this._forget({ kind: 'dead' });
    }
  }

  private _watchBusy(status: Kernel.Status): void {
    window.clearTimeout(this._busyTimer);
    if (status === 'busy') {
      this._busyTimer = window.setTimeout(() => this._setBusy(true), BUSY_AFTER);
    } else {
      this._setBusy(false);
    }
  }

  private _setBusy(isBusy: boolean): void {
    if (isBusy !== this._isBusy) {
      this._isBusy = isBusy;
      this._changed.emit();
    }
  }

  private _onConnection(_: Kernel.IKernelConnection, status: Kernel.ConnectionStatus): void {
    if (status === 'connected') {
      this._book.reconnect();
      void this._ask();
    }
  }

  private _forget(view: LedgerView): void {
    this._round += 1;
    if ('snapshot' in this._view) {
      this._retired.add(this._view.snapshot.boot);
    }
    this._cache.clear(this.kernel.id);
    this._commId = null;
    this._book.forget();
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
        this._commId = commId;
        this._send({ method: 'request_state' });
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

  /** Say something to dpnb; false if it is not found. */
  private _send(data: JSONObject): boolean {
    return this._commId !== null && sendToComm(this.kernel, this._commId, data);
  }
}
