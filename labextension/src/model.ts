import type { Kernel } from '@jupyterlab/services';
import type { IDisposable } from '@lumino/disposable';
import { type ISignal, Signal } from '@lumino/signaling';

import type { ISnapshotCache } from './cache';
import { KernelWatch } from './kernelWatch';
import type { ILedgerModel, LedgerView } from './tokens';

/** What the model needs of a notebook's or console's session context. */
export interface IKernelHost {
  readonly session: { readonly kernel: Kernel.IKernelConnection | null } | null;
  readonly kernelChanged: ISignal<IKernelHost, unknown>;
  readonly disposed: ISignal<IKernelHost, void>;
}

/**
 * Follows the kernels of everything that is open, and shows the one that is active.
 *
 * The others are followed too: a kernel may speak while its notebook is in the background, and be too busy to repeat
 * itself when the user comes back.
 */
export class LedgerModel implements ILedgerModel, IDisposable {
  private readonly _watches = new Map<IKernelHost, KernelWatch | null>();
  private readonly _changed = new Signal<this, void>(this);
  private _active: IKernelHost | null = null;
  private _isDisposed = false;

  constructor(private readonly _cache: ISnapshotCache) {}

  get view(): LedgerView {
    const watch = this._active && this._watches.get(this._active);
    return watch ? watch.view : { kind: 'no-kernel' };
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Listen to a host's kernel, whichever it is, until the host is closed. */
  follow(host: IKernelHost): void {
    if (this._watches.has(host)) {
      return;
    }
    this._watches.set(host, null);
    host.kernelChanged.connect(this._onKernelChanged, this);
    host.disposed.connect(this._onHostDisposed, this);
    this._onKernelChanged(host);
  }

  /** Show this host's kernel from now on; null shows none. */
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

  private _onKernelChanged(host: IKernelHost): void {
    const kernel = host.session?.kernel ?? null;
    const old = this._watches.get(host) ?? null;
    if (old?.kernel === kernel) {
      return;
    }
    old?.dispose();
    // eslint-disable-next-line jupyter/require-disposable-ownership -- the map owns it
    const watch = kernel && new KernelWatch(kernel, this._cache);
    if (watch) {
      watch.changed.connect(() => this._onWatchChanged(host), this);
    }
    this._watches.set(host, watch);
    this._onWatchChanged(host);
  }

  private _onWatchChanged(host: IKernelHost): void {
    if (host === this._active) {
      this._changed.emit();
    }
  }

  private _onHostDisposed(host: IKernelHost): void {
    this._watches.get(host)?.dispose();
    this._watches.delete(host);
    if (host === this._active) {
      this.activate(null);
    }
  }
}
