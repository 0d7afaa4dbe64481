import { type Kernel, KernelMessage } from '@jupyterlab/services';
import { Signal } from '@lumino/signaling';

import { sendToComm } from '../kernel/comm';
import { DEAD_STATUSES } from '../kernel/status';
import { type Fields, isFields, isText } from '../protocol/guards';
import { LiveModel } from './liveModel';

/** The comm target of every Jupyter widget. */
const TARGET = 'jupyter.widget';

/** How the names of our widgets' classes begin, which anywidget sends with a whole state. */
const MODULE_PREFIX = 'dpnb.notebook.';

/** Messages that come from the process itself, if they belong to a request. */
const FROM_KERNEL: ReadonlySet<string> = new Set(['status', 'comm_open', 'comm_msg']);

/**
 * The kernel sides of all our widgets, by id, as the kernels broadcast them.
 *
 * JupyterLab's widget manager would do the same, but it has each widget that it does not know looked for during two
 * seconds and then writes an error into the page and the console: when the kernel of a saved notebook is gone, and also
 * when a page is reloaded and a busy machine restores the widgets in the last moment of those two seconds.
 */
export class LiveWidgets {
  private readonly _models = new Map<string, LiveModel>();
  /** The connections, and the session of the process that was heard last over each; null before the first. */
  private readonly _kernels = new Map<Kernel.IKernelConnection, string | null>();
  /** Kernels whose question is about to be sent; it will ask for whatever is missing then. */
  private readonly _asking = new Set<Kernel.IKernelConnection>();

  /** Listen to a connection until it is closed. */
  follow(kernel: Kernel.IKernelConnection): void {
    if (this._kernels.has(kernel)) {
      return;
    }
    this._kernels.set(kernel, null);
    kernel.iopubMessage.connect(this._onMessage, this);
    kernel.statusChanged.connect(this._onStatus, this);
    kernel.connectionStatusChanged.connect(this._onConnection, this);
    kernel.disposed.connect(this._onDisposed, this);
    if (kernel.connectionStatus === 'connected') {
      void this._ask(kernel);
    }
  }

  /**
   * The kernel side of a widget; without a kernel where no kernel has sent its state (yet).
   *
   * Kernels are asked for it if it is listened to by the time they can answer.
   */
  model(id: string): LiveModel {
    const model = this._models.get(id) ?? this._add(id);
    if (model.kernel === null) {
      this._kernels.forEach((_, kernel) => void this._ask(kernel));
    }
    return model;
  }

  private _add(id: string): LiveModel {
    const model = new LiveModel(id);
    this._models.set(id, model);
    return model;
  }

  private _onMessage(kernel: Kernel.IKernelConnection, message: KernelMessage.IIOPubMessage): void {
    const process = processOf(message);
    if (process !== null) {
      this._onProcess(kernel, process);
    }
    if (KernelMessage.isCommOpenMsg(message)) {
      const { comm_id: id, target_name: target, data } = message.content;
      if (target === TARGET && isDpnbState(data.state)) {
        this._onState(kernel, this._models.get(id) ?? this._add(id), data.state);
      }
    } else if (KernelMessage.isCommMsgMsg(message)) {
      const { comm_id: id, data } = message.content;
      const model = this._models.get(id);
      if (model && data.method === 'update' && isFields(data.state)) {
        this._onState(kernel, model, data.state);
      }
    }
  }

  /** A restart is announced only to the connection that asked for it; the others hear another process answer. */
  private _onProcess(kernel: Kernel.IKernelConnection, process: string): void {
    const before = this._kernels.get(kernel);
    this._kernels.set(kernel, process);
    if (before && before !== process) {
      // Not those of other connections, which may have heard of the process, and of its widgets, before.
      this._clear(this._modelsOf(kernel), 'restarting');
    }
  }

  private _onState(kernel: Kernel.IKernelConnection, model: LiveModel, state: Fields): void {
    // The first thing to hear is a whole state.  Of several connections to one kernel, one is enough: another may be
    // behind, and would set the view back for a moment.
    if (model.kernel === null ? isDpnbState(state) : model.kernel === kernel) {
      model.hear(kernel, state);
    }
  }

  private _onStatus(kernel: Kernel.IKernelConnection, status: Kernel.Status): void {
    if (DEAD_STATUSES.has(status)) {
      const models = [...this._models.values()];
      this._clear(
        models.filter(model => model.kernel?.id === kernel.id),
        status
      ); // over any connection
    }
  }

  private _clear(models: LiveModel[], status: Kernel.Status): void {
    for (const model of models) {
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
      // What the kernel said meanwhile was lost; what nobody looks at is asked for when it is shown again.
      for (const model of this._modelsOf(kernel)) {
        if (model.isWatched) {
          sendToComm(kernel, model.id, { method: 'request_state' });
        } else {
          model.moveTo(null);
        }
      }
      void this._ask(kernel);
    }
  }

  private _onDisposed(kernel: Kernel.IKernelConnection): void {
    this._kernels.delete(kernel);
    Signal.disconnectBetween(kernel, this);
    const successor = [...this._kernels.keys()].find(({ id }) => id === kernel.id);
    if (successor) {
      this._modelsOf(kernel).forEach(model => model.moveTo(successor));
    } else {
      this._clear(this._modelsOf(kernel), 'dead');
    }
  }

  /** Ask a kernel for the widgets that are to be shown and of which nothing is known. */
  private async _ask(kernel: Kernel.IKernelConnection): Promise<void> {
    if (this._asking.has(kernel)) {
      return;
    }
    this._asking.add(kernel);
    try {
      await kernel.info; // a kernel that is still starting answers nothing else
      this._asking.delete(kernel);
      if (this._missing().length === 0) {
        return;
      }
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
    return [...this._models.values()].filter(model => model.kernel === null && model.isWatched);
  }
}

/**
 * The session id of the kernel process that sent a message, which is another after every restart; null if unknown.
 *
 * Every message of a process has it, but the server sends some of its own, with other ids: warnings, and statuses that
 * belong to no request.  Some kernels repeat the id of who asked.
 */
function processOf(message: KernelMessage.IIOPubMessage): string | null {
  const { header, parent_header: request } = message;
  const isKnown = FROM_KERNEL.has(header.msg_type) && 'session' in request && request.session !== header.session;
  return isKnown ? header.session : null;
}

const isDpnbState = (state: unknown): state is Fields =>
  isFields(state) && isText(state._anywidget_id) && state._anywidget_id.startsWith(MODULE_PREFIX);
