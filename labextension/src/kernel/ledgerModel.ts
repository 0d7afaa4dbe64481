import type { Kernel } from '@jupyterlab/services';
import type { IDisposable } from '@lumino/disposable';
import { type ISignal, Signal } from '@lumino/signaling';

import type { ISnapshotCache } from './cache';
import type { CellRuns } from './cellRuns';
import { KernelWatch } from './kernelWatch';
import type { ILog } from '../log/logStore';
import type { ILogEntry } from '../protocol/snapshot';
import type { ILedgerModel, LedgerView } from './tokens';

/** The part of the session context of a notebook or console that the model uses. */
export interface IKernelHost {
  readonly session: { readonly kernel: Kernel.IKernelConnection | null } | null;
  readonly kernelChanged: ISignal<IKernelHost, unknown>;
  readonly disposed: ISignal<IKernelHost, void>;
}

const NO_KERNEL: LedgerView = { kind: 'no-kernel' };

/**
 * Follows the kernels of all open notebooks and consoles, one of which is active.
 *
 * The others are followed too: a kernel may send its state while its notebook is in the background, and be too busy
 * to send it again when the user returns.
 */
export class LedgerModel implements ILedgerModel, IDisposable {
  private readonly _watches = new Map<IKernelHost, KernelWatch | null>();
  private readonly _changed = new Signal<this, void>(this);
  private readonly _kernelChanged = new Signal<this, string>(this);
  private readonly _connected = new Signal<this, Kernel.IKernelConnection>(this);
  private _active: IKernelHost | null = null;
  private _isDisposed = false;

  constructor(private readonly _cache: ISnapshotCache) {}

  get view(): LedgerView {
    return this._watch?.view ?? NO_KERNEL;
  }

  get kernelId(): string | null {
    return this._watch?.kernel.id ?? null;
  }

  get isBusy(): boolean {
    return this._watch?.isBusy ?? false;
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get kernelChanged(): ISignal<this, string> {
    return this._kernelChanged;
  }

  /** Emitted with each kernel connection when it is first followed. */
  get connected(): ISignal<this, Kernel.IKernelConnection> {
    return this._connected;
  }

  viewOf(kernelId: string): LedgerView {
    const views = [...this._watches.values()]
      .filter(watch => watch?.kernel.id === kernelId)
      .map(watch => watch?.view ?? NO_KERNEL);
    // Of several connections to one kernel, the newest may not have received a reply yet.
    return views.find(view => view.kind === 'live') ?? views[0] ?? NO_KERNEL;
  }

  /** The runs of cells in the kernel of a host; null if it has no kernel. */
  runs(host: IKernelHost): CellRuns | null {
    return this._watches.get(host)?.runs ?? null;
  }

  reconnect(): void {
    this._watch?.reconnect();
  }

  compare(sessionId: string, isShown: boolean): void {
    this._watch?.compare(sessionId, isShown);
  }

  log(sessionId: string): ILog {
    return this._watch?.log(sessionId) ?? { rows: [], isComplete: false, isPending: false };
  }

  requestLog(sessionId: string): Promise<readonly ILogEntry[] | null> {
    return this._watch?.requestLog(sessionId) ?? Promise.resolve(null);
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Follow the current kernel of a host until the host is closed. */
  follow(host: IKernelHost): void {
    if (this._watches.has(host)) {
      return;
    }
    this._watches.set(host, null);
    host.kernelChanged.connect(this._onKernelChanged, this);
    host.disposed.connect(this._onHostDisposed, this);
    this._onKernelChanged(host);
  }

  /** Make this host's kernel the active one; null for none. */
  activate(host: IKernelHost | null): void {
    if (host === this._active) {
      return;
    }
    if (host) {
      this.follow(host);
    }
    this._active = host;
    this._changed.emit();
  }

  dispose(): void {
    this._isDisposed = true;
    for (const watch of this._watches.values()) {
      watch?.dispose();
    }
    this._watches.clear();
    Signal.clearData(this);
  }

  private get _watch(): KernelWatch | null {
    return (this._active && this._watches.get(this._active)) ?? null;
  }

  private _onKernelChanged(host: IKernelHost): void {
    const kernel = host.session?.kernel ?? null;
    const old = this._watches.get(host) ?? null;
    if (old?.kernel === kernel) {
      return;
    }
    old?.dispose();
    // eslint-disable-next-line jupyter/require-disposable-ownership -- disposed through the map
    const watch = kernel && new KernelWatch(kernel, this._cache);
    if (watch) {
      watch.changed.connect(() => this._onWatchChanged(host, watch), this);
      this._connected.emit(watch.kernel);
    }
    this._watches.set(host, watch);
    this._onWatchChanged(host, old);
    this._onWatchChanged(host, watch);
  }

  private _onWatchChanged(host: IKernelHost, watch: KernelWatch | null): void {
    if (watch) {
      this._kernelChanged.emit(watch.kernel.id);
    }
    if (host === this._active && watch === this._watch) {
      this._changed.emit();
    }
  }

  private _onHostDisposed(host: IKernelHost): void {
    const watch = this._watches.get(host) ?? null;
    watch?.dispose();
    this._watches.delete(host);
    if (host === this._active) {
      this.activate(null);
    }
    this._onWatchChanged(host, watch);
  }
}
