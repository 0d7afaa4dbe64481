import { type Kernel, KernelMessage } from '@jupyterlab/services';
import type { IDisposable } from '@lumino/disposable';
import { type ISignal, Signal } from '@lumino/signaling';

import type { ISnapshotCache } from './cache';
import { sendToComm } from './comm';
import { type ILog, LogStore } from '../log/logStore';
import { type PanelRequest, TARGET } from '../protocol/messages';
import { readLogChunk, readSnapshot } from '../protocol/read';
import type { ILogEntry, ISnapshot } from '../protocol/snapshot';
import type { LedgerView } from './tokens';

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
  private readonly _replaced = new Set<string>();
  /** Grows whenever an answer to an earlier question has become worthless. */
  private _generation = 0;
  private _commId: string | null = null;
  private _isBusy = false;
  private _busyTimer: number | undefined;
  private readonly _logs = new LogStore(session => this._send({ method: 'request_log', session }));

  constructor(
    readonly kernel: Kernel.IKernelConnection,
    private readonly _cache: ISnapshotCache
  ) {
    const snapshot = _cache.read(kernel.id);
    if (snapshot) {
      this._view = { kind: 'stale', snapshot };
      this._logs.hear(snapshot);
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
    return this._logs.log(session);
  }

  /** Every row of a session's log, newest first; null when the kernel is gone for good before it told them. */
  requestLog(session: string): Promise<readonly ILogEntry[] | null> {
    const answer = this._logs.request(session);
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
    this._generation += 1;
    window.clearTimeout(this._busyTimer);
    this._logs.close();
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
    } else if (snapshot && this._isNewer(snapshot)) {
      this._commId = commId;
      this._cache.write(this.kernel.id, snapshot);
      this._logs.hear(snapshot);
      this._set({ kind: 'live', snapshot });
    } else {
      this._onLog(data);
    }
  }

  private _onLog(data: unknown): void {
    const chunk = readLogChunk(data);
    if (chunk && this._logs.hearChunk(chunk)) {
      this._changed.emit();
    }
  }

  private _isNewer(snapshot: ISnapshot): boolean {
    if (this._replaced.has(snapshot.process_id)) {
      return false;
    }
    const known = 'snapshot' in this._view ? this._view.snapshot : null;
    return known?.process_id !== snapshot.process_id || known.seq < snapshot.seq;
  }

  private _onStatus(_: Kernel.IKernelConnection, status: Kernel.Status): void {
    this._watchBusy(status);
    if (status === 'restarting' || status === 'autorestarting') {
      this._clear({ kind: 'restarted' });
    } else if (status === 'dead') {
      this._clear({ kind: 'dead' });
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
      this._logs.reconnect();
      void this._ask();
    }
  }

  private _clear(view: LedgerView): void {
    this._generation += 1;
    if ('snapshot' in this._view) {
      this._replaced.add(this._view.snapshot.process_id);
    }
    this._cache.clear(this.kernel.id);
    this._commId = null;
    this._logs.forget();
    this._set(view);
  }

  /** Ask the kernel for its state; the answer comes as a broadcast. */
  private async _ask(): Promise<void> {
    const generation = (this._generation += 1);
    try {
      await this.kernel.info; // a kernel that is still starting answers nothing else
      const reply = await this.kernel.requestCommInfo({ target_name: TARGET });
      if (generation !== this._generation || reply.content.status !== 'ok') {
        return;
      }
      const commId = Object.keys(reply.content.comms)[0];
      if (commId === undefined) {
        this._onAbsent();
      } else {
        this._commId = commId;
        this._send({ method: 'request_snapshot' });
      }
    } catch {
      // The connection was closed while it was being asked.  Its successor, if any, asks again.
    }
  }

  private _onAbsent(): void {
    if (this._view.kind === 'stale') {
      this._clear({ kind: 'restarted' }); // the process that was remembered is gone
    } else if (this._view.kind === 'waiting') {
      this._set({ kind: 'no-dpnb' });
    }
  }

  /** Say something to dpnb; false if it is not found. */
  private _send(request: PanelRequest): boolean {
    return this._commId !== null && sendToComm(this.kernel, this._commId, { ...request });
  }
}
