import { type Kernel, KernelMessage } from '@jupyterlab/services';
import type { IDisposable } from '@lumino/disposable';
import { type ISignal, Signal } from '@lumino/signaling';

import { Attention } from './attention';
import { Busy } from './busy';
import type { ISnapshotCache } from './cache';
import { CellRuns } from './cellRuns';
import { sendToComm } from './comm';
import { type ILog, LogStore } from '../log/logStore';
import { type PanelRequest, TARGET } from '../protocol/messages';
import { readLogChunk, readSnapshot } from '../protocol/read';
import type { ILogEntry, ISnapshot } from '../protocol/snapshot';
import type { LedgerView } from './tokens';

/**
 * The state of dpnb in the kernel of one connection.
 *
 * It listens to all broadcasts instead of opening a comm: a comm belongs to one connection only, so a second tab or
 * a second notebook on the same kernel would receive nothing, and each comm costs the kernel a thread.
 */
export class KernelWatch implements IDisposable {
  private _view: LedgerView = { kind: 'waiting' };
  private _isDisposed = false;
  private readonly _changed = new Signal<this, void>(this);
  /** Ids of processes that were replaced, whose late messages are ignored. */
  private readonly _replaced = new Set<string>();
  /** Incremented when the reply to an earlier request must be ignored. */
  private _generation = 0;
  private _commId: string | null = null;
  private readonly _busy: Busy;
  private readonly _logs = new LogStore(session => this._send({ method: 'request_log', session }));
  /** Ids of the sessions whose filters and odometers are shown. */
  private readonly _compared = new Set<string>();
  /** The runs of cells, where the server sends the requests. */
  readonly runs: CellRuns;
  private readonly _attention: Attention;

  constructor(
    readonly kernel: Kernel.IKernelConnection,
    private readonly _cache: ISnapshotCache
  ) {
    const send = (request: PanelRequest): boolean => this._send(request);
    this.runs = new CellRuns(kernel.clientId, send);
    this._attention = new Attention(kernel.clientId, send);
    const snapshot = _cache.read(kernel.id);
    if (snapshot) {
      this._view = { kind: 'stale', snapshot };
      this._logs.update(snapshot);
    }
    this._busy = new Busy(kernel.status);
    this._busy.changed.connect(() => this._changed.emit());
    kernel.iopubMessage.connect(this._onMessage, this);
    kernel.statusChanged.connect(this._onStatus, this);
    kernel.connectionStatusChanged.connect(this._onConnection, this);
    if (kernel.connectionStatus === 'connected') {
      void this._requestSnapshot();
    }
  }

  get view(): LedgerView {
    return this._view;
  }

  /** Whether the kernel has been busy for longer than `BUSY_AFTER`. */
  get isBusy(): boolean {
    return this._busy.isBusy;
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** Let the sessions that are out of date reconnect now; a busy kernel does so when it is idle. */
  reconnect(): void {
    this._send({ method: 'reconnect' });
  }

  /** Let the kernel send all filters and odometers of a session, or no longer; also after it has restarted. */
  compare(session: string, isShown: boolean): void {
    if (isShown) {
      this._compared.add(session);
    } else {
      this._compared.delete(session);
    }
    this._send({ method: 'compare', session, is_shown: isShown });
  }

  /** The known part of a session's log. */
  log(session: string): ILog {
    return this._logs.log(session);
  }

  /** Every row of a session's log, newest first; null if the connection is closed before the kernel sends them. */
  requestLog(session: string): Promise<readonly ILogEntry[] | null> {
    const rows = this._logs.request(session);
    this._changed.emit();
    return rows;
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
    this._busy.dispose();
    this._logs.close();
    this._attention.dispose();
    Signal.clearData(this); // the signals that it emits, and those that it is connected to
  }

  private _set(view: LedgerView): void {
    this._view = view;
    this._changed.emit();
  }

  private _onMessage(_: Kernel.IKernelConnection, message: KernelMessage.IIOPubMessage): void {
    this._busy.onMessage(message);
    const { parent_header: request } = message;
    if (KernelMessage.isExecuteInputMsg(message) && 'msg_id' in request) {
      this.runs.onRequest(request.msg_id, request.session, message.content.code);
    }
    if (!KernelMessage.isCommMsgMsg(message)) {
      return;
    }
    const { comm_id: commId, data } = message.content;
    const snapshot = readSnapshot(data);
    if (snapshot === 'unreadable') {
      this._set({ kind: 'unreadable' });
    } else if (snapshot && this._isNewer(snapshot)) {
      this._useComm(commId);
      this._cache.write(this.kernel.id, snapshot);
      this._logs.update(snapshot);
      this._set({ kind: 'live', snapshot });
    } else {
      this._onLog(data);
    }
  }

  private _onLog(data: unknown): void {
    const chunk = readLogChunk(data);
    if (chunk && this._logs.addChunk(chunk)) {
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
    this._busy.onStatus(status);
    if (status === 'restarting' || status === 'autorestarting') {
      this._clear({ kind: 'restarted' });
    } else if (status === 'dead') {
      this._clear({ kind: 'dead' });
    }
  }

  private _onConnection(_: Kernel.IKernelConnection, status: Kernel.ConnectionStatus): void {
    if (status === 'connected') {
      this._logs.reconnect();
      void this._requestSnapshot();
    }
  }

  private _clear(view: { kind: 'restarted' | 'dead' }): void {
    this._generation += 1;
    const hadSession = hasSession(this._view);
    if ('snapshot' in this._view) {
      this._replaced.add(this._view.snapshot.process_id);
    }
    this._cache.clear(this.kernel.id);
    this._commId = null;
    this.runs.clear();
    this._logs.forget();
    this._set(hadSession ? view : without[view.kind]);
  }

  /** Request the state of the kernel; the reply is a broadcast. */
  private async _requestSnapshot(): Promise<void> {
    const generation = (this._generation += 1);
    try {
      await this.kernel.info; // a kernel that is starting replies to nothing else
      const reply = await this.kernel.requestCommInfo({ target_name: TARGET });
      if (generation !== this._generation || reply.content.status !== 'ok') {
        return;
      }
      const commId = Object.keys(reply.content.comms)[0];
      if (commId === undefined) {
        this._onAbsent();
      } else {
        this._commId = null; // the connection may be new
        this._useComm(commId);
        this._send({ method: 'request_snapshot' });
      }
    } catch {
      // The connection was closed during the request; its successor, if any, sends a new one.
    }
  }

  /** Use the comm of dpnb; a new one belongs to a process that does not know this page yet. */
  private _useComm(commId: string): void {
    if (commId !== this._commId) {
      this._commId = commId;
      this._attention.announce();
      this.runs.flush();
      this._compared.forEach(session => this.compare(session, true));
    }
  }

  private _onAbsent(): void {
    if (this._view.kind === 'stale') {
      this._clear({ kind: 'restarted' }); // the process of the cached state has ended
    } else if (this._view.kind === 'waiting') {
      this._set({ kind: 'no-dpnb' });
    }
  }

  /** Send a request to dpnb; false if its comm is not known. */
  private _send(request: PanelRequest): boolean {
    return this._commId !== null && sendToComm(this.kernel, this._commId, { ...request });
  }
}

/** Whether a session was shown, whose spent budget a reader may ask for when its kernel has ended. */
const hasSession = (view: LedgerView): boolean =>
  'snapshot' in view ? view.snapshot.sessions.length > 0 : view.kind === 'restarted' || view.kind === 'dead';

/** What is shown instead where there was no session: nothing about budgets. */
const without = { restarted: { kind: 'no-dpnb' }, dead: { kind: 'no-kernel' } } as const;
