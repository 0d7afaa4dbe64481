import type { Kernel } from '@jupyterlab/services';
import { JSONExt, type JSONObject, type ReadonlyPartialJSONValue } from '@lumino/coreutils';
import { Signal } from '@lumino/signaling';

import { sendToComm } from '../kernel/comm';
import type { Fields } from '../protocol/guards';

/**
 * The state of one of dpnb's widgets, with the part of the interface of anywidget's model that its view uses.
 *
 * It is empty until the kernel has sent a full state, and keeps its last state when the kernel has ended.
 */
export class LiveModel {
  /** The status of the kernel, as anywidget provides it. */
  readonly widget_manager = { kernel: { statusChanged: new Signal<object, string>(this) } };
  private readonly _listeners = new Map<string, Set<() => void>>();
  private _state: Fields = {};
  private _kernel: Kernel.IKernelConnection | null = null;

  constructor(readonly id: string) {}

  /** The connection that sent the state; null before the first full state, and if the state may be outdated. */
  get kernel(): Kernel.IKernelConnection | null {
    return this._kernel;
  }

  /** Whether it has a view, or an output that waits for its state. */
  get isWatched(): boolean {
    return this._listeners.size > 0;
  }

  get(name: string): unknown {
    return this._state[name];
  }

  /** Store a value for the next view; it is not sent to the kernel. */
  set(name: string, value: unknown): void {
    this._state[name] = value;
  }

  /** Listen to `change:<name>`, or to `kernelAttached`, which is emitted with the first full state of a kernel. */
  on(event: string, listener: () => void): void {
    this._listeners.set(event, (this._listeners.get(event) ?? new Set()).add(listener));
  }

  off(event: string, listener: () => void): void {
    const listeners = this._listeners.get(event);
    listeners?.delete(listener);
    if (listeners?.size === 0) {
      this._listeners.delete(event);
    }
  }

  /** Send a message to the widget in the kernel, if there is a kernel. */
  send(content: JSONObject): void {
    if (this._kernel) {
      sendToComm(this._kernel, this.id, { method: 'custom', content });
    }
  }

  /** Update the state with what the kernel sent. */
  update(kernel: Kernel.IKernelConnection, state: Fields): void {
    const isFirst = this._kernel === null;
    this._kernel = kernel;
    const changed = Object.keys(state).filter(name => !isSame(this._state[name], state[name]));
    this._state = { ...this._state, ...state };
    changed.forEach(name => this._emit(`change:${name}`));
    if (isFirst) {
      this._emit('kernelAttached');
    }
  }

  /** Use another connection to the same kernel; null if the kernel has ended, or messages of it were lost. */
  moveTo(kernel: Kernel.IKernelConnection | null): void {
    this._kernel = kernel;
  }

  private _emit(event: string): void {
    this._listeners.get(event)?.forEach(listener => listener());
  }
}

const isSame = (a: unknown, b: unknown): boolean =>
  a === b ||
  (a !== undefined &&
    b !== undefined &&
    JSONExt.deepEqual(a as ReadonlyPartialJSONValue, b as ReadonlyPartialJSONValue));
