import { type Kernel, KernelMessage } from '@jupyterlab/services';
import { Signal } from '@lumino/signaling';

import { sendToComm } from '../kernel/comm';
import { DEAD_STATUSES } from '../kernel/status';
import { type Fields, isFields, isText } from '../protocol/guards';
import { LiveModel } from './liveModel';

/** The comm target of every Jupyter widget. */
const TARGET = 'jupyter.widget';

/** Prefix of the class names of dpnb's widgets, which anywidget sends with a full state. */
const MODULE_PREFIX = 'dpnb.notebook.';

/** Types of messages that are sent by the kernel process itself, if they belong to a request. */
const FROM_KERNEL: ReadonlySet<string> = new Set(['status', 'comm_open', 'comm_msg']);

/**
 * The models of all widgets of dpnb, by id, as the kernels broadcast their states.
 *
 * JupyterLab's widget manager does the same, but for each unknown widget it waits two seconds and then writes an error
 * to the page and the console: if the kernel of a saved notebook has ended, and also if a page is reloaded on a busy
 * machine that restores the widgets too late.
 */
export class LiveWidgets {
  private readonly _models = new Map<string, LiveModel>();
  /** The connections, each with the session id of the process that sent its last message; null before the first. */
  private readonly _kernels = new Map<Kernel.IKernelConnection, string | null>();
  /** Connections with a pending request, which will include all states that are missing when it is sent. */
  private readonly _requesting = new Set<Kernel.IKernelConnection>();

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
      void this._requestStates(kernel);
    }
  }

  /**
   * The model of a widget; its `kernel` is null until a kernel has sent its state.
   *
   * The state is requested from the kernels if the model has a listener by the time they can reply.
   */
  model(id: string): LiveModel {
    const model = this._models.get(id) ?? this._add(id);
    if (model.kernel === null) {
      this._kernels.forEach((_, kernel) => void this._requestStates(kernel));
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

  /** A restart is announced only to the connection that requested it; others receive messages of a new process. */
  private _onProcess(kernel: Kernel.IKernelConnection, process: string): void {
    const before = this._kernels.get(kernel);
    this._kernels.set(kernel, process);
    if (before && before !== process) {
      // Not those of other connections, which may already have received states of the new process.
      this._clear(this._modelsOf(kernel), 'restarting');
    }
  }

  private _onState(kernel: Kernel.IKernelConnection, model: LiveModel, state: Fields): void {
    // The first update must be a full state.  Of several connections to one kernel, only one is used: another may be
    // delayed, and would briefly restore an older state.
    if (model.kernel === null ? isDpnbState(state) : model.kernel === kernel) {
      model.update(kernel, state);
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
      // Messages of the kernel were lost; the state of a model without a view is requested when it is shown again.
      for (const model of this._modelsOf(kernel)) {
        if (model.isWatched) {
          sendToComm(kernel, model.id, { method: 'request_state' });
        } else {
          model.moveTo(null);
        }
      }
      void this._requestStates(kernel);
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

  /** Request the missing states of displayed widgets from a kernel. */
  private async _requestStates(kernel: Kernel.IKernelConnection): Promise<void> {
    if (this._requesting.has(kernel)) {
      return;
    }
    this._requesting.add(kernel);
    try {
      await kernel.info; // a kernel that is starting replies to nothing else
      this._requesting.delete(kernel);
      if (this._missing().length === 0) {
        return;
      }
      const { content } = await kernel.requestCommInfo({ target_name: TARGET });
      const comms: Fields = content.status === 'ok' ? content.comms : {};
      this._missing()
        .filter(({ id }) => id in comms)
        .forEach(model => sendToComm(kernel, model.id, { method: 'request_state' }));
    } catch {
      // The connection was closed during the request; its successor, if any, sends a new one.
    } finally {
      this._requesting.delete(kernel);
    }
  }

  private _missing(): LiveModel[] {
    return [...this._models.values()].filter(model => model.kernel === null && model.isWatched);
  }
}

/**
 * The session id of the kernel process that sent a message, which changes with every restart; null if unknown.
 *
 * Every message of a process has it, but the server also sends messages with other ids: warnings, and statuses that
 * belong to no request.  Some kernels repeat the id of the client.
 */
function processOf(message: KernelMessage.IIOPubMessage): string | null {
  const { header, parent_header: request } = message;
  const isKnown = FROM_KERNEL.has(header.msg_type) && 'session' in request && request.session !== header.session;
  return isKnown ? header.session : null;
}

const isDpnbState = (state: unknown): state is Fields =>
  isFields(state) && isText(state._anywidget_id) && state._anywidget_id.startsWith(MODULE_PREFIX);
