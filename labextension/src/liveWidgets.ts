import { type Kernel, KernelMessage } from '@jupyterlab/services';
import { Signal } from '@lumino/signaling';

import { sendToComm } from './comm';
import { type Fields, isFields, isText } from './guards';
import { LiveModel } from './liveModel';

/** The comm target of every Jupyter widget. */
const TARGET = 'jupyter.widget';

/** How the names of our widgets' classes begin, which anywidget sends with a whole state. */
const OURS = 'dpnb.notebook.';

/** After these the process that our widgets lived in is gone, and their ids with it. */
const GONE: ReadonlySet<string> = new Set(['restarting', 'autorestarting', 'terminating', 'dead']);

/**
 * The kernel sides of all our widgets, by id, as the kernels broadcast them.
 *
 * JupyterLab's widget manager would do the same, but it has each widget that it does not know looked for during two
 * seconds and then writes an error into the page and the console: when the kernel of a saved notebook is gone, and also
 * when a page is reloaded and a busy machine restores the widgets in the last moment of those two seconds.
 */
export class LiveWidgets {
  private readonly _models = new Map<string, LiveModel>();
  private readonly _kernels = new Set<Kernel.IKernelConnection>();
  /** Kernels whose question is about to be sent; it will ask for whatever is missing then. */
  private readonly _asking = new Set<Kernel.IKernelConnection>();

  /** Listen to a connection until it is closed. */
  follow(kernel: Kernel.IKernelConnection): void {
    if (this._kernels.has(kernel)) {
      return;
    }
    this._kernels.add(kernel);
    kernel.iopubMessage.connect(this._onMessage, this);
    kernel.statusChanged.connect(this._onStatus, this);
    kernel.connectionStatusChanged.connect(this._onConnection, this);
    kernel.disposed.connect(this._onDisposed, this);
    if (kernel.connectionStatus === 'connected') {
      void this._ask(kernel);
    }
  }

  /** The kernel side of a widget; without a kernel where no kernel has sent its state (yet). */
  model(id: string): LiveModel {
    const known = this._models.get(id);
    if (known) {
      return known;
    }
    const model = this._add(id);
    this._kernels.forEach(kernel => void this._ask(kernel));
    return model;
  }

  private _add(id: string): LiveModel {
    const model = new LiveModel(id);
    this._models.set(id, model);
    return model;
  }

  private _onMessage(kernel: Kernel.IKernelConnection, message: KernelMessage.IIOPubMessage): void {
    if (KernelMessage.isCommOpenMsg(message)) {
      const { comm_id: id, target_name: target, data } = message.content;
      if (target === TARGET && isOurs(data.state)) {
        this._hear(kernel, this._models.get(id) ?? this._add(id), data.state);
      }
    } else if (KernelMessage.isCommMsgMsg(message)) {
      const { comm_id: id, data } = message.content;
      const model = this._models.get(id);
      if (model && data.method === 'update' && isFields(data.state)) {
        this._hear(kernel, model, data.state);
      }
    }
  }

  private _hear(kernel: Kernel.IKernelConnection, model: LiveModel, state: Fields): void {
    // The first thing to hear is a whole state.  Of several connections to one kernel, one is enough: another may be
    // behind, and would set the view back for a moment.
    if (model.kernel === null ? isOurs(state) : model.kernel === kernel) {
      model.hear(kernel, state);
    }
  }

  private _onStatus(kernel: Kernel.IKernelConnection, status: Kernel.Status): void {
    if (GONE.has(status)) {
      this._forget(kernel, status);
    }
  }

  private _forget(kernel: Kernel.IKernelConnection, status: Kernel.Status): void {
    for (const model of this._modelsOf(kernel)) {
      this._models.delete(model.id);
      model.moveTo(null);
      model.widget_manager.kernel.statusChanged.emit(status);
    }
  }

  private _modelsOf(kernel: Kernel.IKernelConnection): LiveModel[] {
    return [...this._models.values()].filter(model => model.kernel === kernel);
  }

  private _onConnection(kernel: Kernel.IKernelConnection, status: Kernel.ConnectionStatus): void {
    if (status === 'connected') {
      // What the kernel said meanwhile was lost.
      this._modelsOf(kernel)
        .filter(model => model.isWatched)
        .forEach(model => sendToComm(kernel, model.id, { method: 'request_state' }));
      void this._ask(kernel);
    }
  }

  private _onDisposed(kernel: Kernel.IKernelConnection): void {
    this._kernels.delete(kernel);
    Signal.disconnectBetween(kernel, this);
    const successor = [...this._kernels].find(({ id }) => id === kernel.id);
    if (successor) {
      this._modelsOf(kernel).forEach(model => model.moveTo(successor));
    } else {
      this._forget(kernel, 'dead');
    }
  }

  /** Ask a kernel for the widgets that are to be shown and of which nothing is known. */
  private async _ask(kernel: Kernel.IKernelConnection): Promise<void> {
    if (this._asking.has(kernel) || this._missing().length === 0) {
      return;
    }
    this._asking.add(kernel);
    try {
      await kernel.info; // a kernel that is still starting answers nothing else
      this._asking.delete(kernel);
      const { content } = await kernel.requestCommInfo({ target_name: TARGET });
      const comms: Fields = content.status === 'ok' ? content.comms : {};
      this._missing()
        .filter(({ id }) => id in comms)
        .forEach(model => sendToComm(kernel, model.id, { method: 'request_state' }));
    } catch {
      // The connection was closed while it was being asked.  Its successor, if any, asks again.
    } finally {
      this._asking.delete(kernel);
    }
  }

  private _missing(): LiveModel[] {
    return [...this._models.values()].filter(model => model.kernel === null);
  }
}

const isOurs = (state: unknown): state is Fields =>
  isFields(state) && isText(state._anywidget_id) && state._anywidget_id.startsWith(OURS);
