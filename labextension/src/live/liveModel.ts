import type { Kernel } from '@jupyterlab/services';
import { JSONExt, type JSONObject, type ReadonlyPartialJSONValue } from '@lumino/coreutils';
import { Signal } from '@lumino/signaling';

import { sendToComm } from '../kernel/comm';
import type { Fields } from '../protocol/guards';

/**
 * The kernel side of one of our widgets, as far as its view needs it: the part of anywidget's model that we use.
 *
 * It knows nothing until the kernel has sent a whole state, and stays as it was when the kernel is gone.
 */
export class LiveModel {
  /** What becomes of the kernel, where anywidget has it. */
  readonly widget_manager = { kernel: { statusChanged: new Signal<object, string>(this) } };
  private readonly _listeners = new Map<string, Set<() => void>>();
  private _state: Fields = {};
  private _kernel: Kernel.IKernelConnection | null = null;

  constructor(readonly id: string) {}

  /** The connection that it was heard from; null until a whole state has come, and when that may be out of date. */
  get kernel(): Kernel.IKernelConnection | null {
    return this._kernel;
  }

  /** Whether anybody looks at it, or would if there were something to see. */
  get isWatched(): boolean {
    return this._listeners.size > 0;
  }

  get(name: string): unknown {
    return this._state[name];
  }

  /** Remember something for the next view; the kernel does not learn it. */
  set(name: string, value: unknown): void {
    this._state[name] = value;
  }

  /** Listen to `change:` and a name, or to `kernelAttached`: a whole state has come after there was no kernel. */
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

  /** Say something to the widget's kernel side; a kernel that is gone does not hear it. */
  send(content: JSONObject): void {
    if (this._kernel) {
      sendToComm(this._kernel, this.id, { method: 'custom', content });
    }
  }

  /** Take over what the kernel said. */
  hear(kernel: Kernel.IKernelConnection, state: Fields): void {
    const isFirst = this._kernel === null;
    this._kernel = kernel;
    const changed = Object.keys(state).filter(name => !isSame(this._state[name], state[name]));
    this._state = { ...this._state, ...state };
    changed.forEach(name => this._emit(`change:${name}`));
    if (isFirst) {
      this._emit('kernelAttached');
    }
  }

  /** Another connection to the same kernel goes on; or, given null, none does: it is gone, or what it said was lost. */
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
