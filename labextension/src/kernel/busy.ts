import { type Kernel, KernelMessage } from '@jupyterlab/services';
import { type ISignal, Signal } from '@lumino/signaling';

/** Milliseconds after which a kernel counts as busy: every short request makes it busy for an instant. */
export const BUSY_AFTER = 500;

/** A request that was being answered before anybody listened. */
const UNKNOWN = '';

/**
 * Whether a kernel has been busy for longer than `BUSY_AFTER`.
 *
 * A kernel answers the debugger and the comms of a subshell while a cell runs, and announces each time that it is idle
 * again.  The status of JupyterLab's connection is the last announcement; here a request is over only when its own
 * reply is complete.
 */
export class Busy {
  private _isBusy = false;
  private _timer: number | undefined;
  private readonly _answering = new Set<string>();
  private readonly _changed = new Signal<this, void>(this);

  constructor(status: Kernel.Status) {
    if (status === 'busy') {
      this._begin(UNKNOWN);
    }
  }

  get isBusy(): boolean {
    return this._isBusy;
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  onMessage(message: KernelMessage.IIOPubMessage): void {
    if (!KernelMessage.isStatusMsg(message)) {
      return;
    }
    const { parent_header: request } = message;
    const id = 'msg_id' in request ? request.msg_id : UNKNOWN;
    if (message.content.execution_state === 'busy') {
      this._begin(id);
    } else if (message.content.execution_state === 'idle') {
      this._end(this._answering.has(id) ? id : UNKNOWN);
    }
  }

  /** Forget the requests of a kernel that is neither busy nor idle: it has ended, or the connection is lost. */
  onStatus(status: Kernel.Status): void {
    if (status !== 'busy' && status !== 'idle') {
      this._answering.clear();
      this._set(false);
    }
  }

  dispose(): void {
    window.clearTimeout(this._timer);
    Signal.clearData(this);
  }

  private _begin(request: string): void {
    this._answering.add(request);
    if (this._answering.size === 1) {
      window.clearTimeout(this._timer);
      this._timer = window.setTimeout(() => this._set(true), BUSY_AFTER);
    }
  }

  private _end(request: string): void {
    this._answering.delete(request);
    if (this._answering.size === 0) {
      this._set(false);
    }
  }

  private _set(isBusy: boolean): void {
    window.clearTimeout(this._timer);
    if (isBusy !== this._isBusy) {
      this._isBusy = isBusy;
      this._changed.emit();
    }
  }
}
