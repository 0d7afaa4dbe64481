import type { Kernel, KernelMessage } from '@jupyterlab/services';
import { Signal } from '@lumino/signaling';

import type { IKernelHost } from '../kernel/ledgerModel';
import { type ILogEntry, type ISnapshot, VERSION } from '../protocol/snapshot';
import { sharedSnapshot } from './fixture';

/** As much of a kernel connection as the extension uses. */
export class FakeKernel {
  readonly username = '';
  readonly clientId = 'client';
  readonly info = Promise.resolve({});
  readonly iopubMessage = new Signal<this, KernelMessage.IIOPubMessage>(this);
  readonly statusChanged = new Signal<this, Kernel.Status>(this);
  readonly connectionStatusChanged = new Signal<this, Kernel.ConnectionStatus>(this);
  readonly disposed = new Signal<this, void>(this);
  isDisposed = false;
  connectionStatus: Kernel.ConnectionStatus = 'connected';
  status: Kernel.Status = 'idle';
  /** The comm of a kernel that has loaded dpnb. */
  commId: string | null = null;
  /** The comms of widgets. */
  widgets: string[] = [];
  /** Data of every message sent to a comm, and the comms' ids. */
  readonly sent: unknown[] = [];
  readonly sentTo: string[] = [];
  /** Whether the page was visible, as it announced it. */
  readonly announced: boolean[] = [];
  /** Answers a question later than it was asked, as a busy kernel does. */
  gate: Promise<void> = Promise.resolve();

  constructor(readonly id = 'kernel-1') {}

  async requestCommInfo({ target_name: target }: { target_name: string }): Promise<unknown> {
    await this.gate;
    const ids = target === 'jupyter.widget' ? this.widgets : this.commId === null ? [] : [this.commId];
    return { content: { status: 'ok', comms: Object.fromEntries(ids.map(id => [id, { target_name: target }])) } };
  }

  sendShellMessage(message: { content: { comm_id: string; data: { method?: string; is_visible?: boolean } } }): void {
    if (this.status === 'dead') {
      throw new Error('Kernel is dead'); // as JupyterLab's connection does
    }
    const { data } = message.content;
    if (data.method === 'follow_ledgers') {
      this.announced.push(data.is_visible === true);
      return;
    }
    this.sent.push(data);
    this.sentTo.push(message.content.comm_id);
  }

  become(status: Kernel.Status): void {
    this.status = status;
    this.statusChanged.emit(status);
  }

  /** Say that a request is being answered, as the process with that session id. */
  answer(session: string, request: object = { msg_id: '1', session: 'client' }, state = 'busy'): void {
    const content = { execution_state: state };
    const message = { header: { msg_type: 'status', session }, parent_header: request, content };
    this.iopubMessage.emit(message as unknown as KernelMessage.IIOPubMessage);
  }

  /** Begin to answer a request. */
  begin(requestId: string): void {
    this.answer('process', { msg_id: requestId, session: 'client' });
  }

  /** Complete the answer to a request. */
  end(requestId: string): void {
    this.answer('process', { msg_id: requestId, session: 'client' }, 'idle');
  }

  /** Begin to answer a request to run code, which a client has sent. */
  run(requestId: string, code: string, client: string): void {
    const header = { msg_type: 'execute_input', session: 'process' };
    const message = { header, parent_header: { msg_id: requestId, session: client }, content: { code } };
    this.iopubMessage.emit(message as unknown as KernelMessage.IIOPubMessage);
  }

  /** Close the connection. */
  dispose(): void {
    this.isDisposed = true;
    this.disposed.emit();
  }

  /** A widget is made in the kernel. */
  openWidget(id: string, state: object, target = 'jupyter.widget'): void {
    const content = { comm_id: id, target_name: target, data: { state } };
    this.iopubMessage.emit({
      header: { msg_type: 'comm_open' },
      parent_header: {},
      content
    } as unknown as KernelMessage.IIOPubMessage);
  }

  /** A widget's state, or a part of it, is sent. */
  updateWidget(id: string, state: object): void {
    this.broadcast({ method: 'update', state }, 'comm_msg', id);
  }

  /** Broadcast something under a comm. */
  broadcast(data: unknown, type = 'comm_msg', commId = 'x'): void {
    const message = { header: { msg_type: type }, parent_header: {}, content: { comm_id: commId, data } };
    this.iopubMessage.emit(message as unknown as KernelMessage.IIOPubMessage);
  }

  /** Broadcast a part of a log: `rows` are its rows, oldest first, `start` the number of those before them. */
  pushLog(
    session: string,
    start: number,
    rows: ILogEntry[],
    total: number,
    process_id = sharedSnapshot().process_id
  ): void {
    this.broadcast({ dpnb_log: { version: VERSION, process_id, session, start, total, rows } });
  }

  push(snapshot: ISnapshot): void {
    this.broadcast({ dpnb: snapshot });
  }

  get connection(): Kernel.IKernelConnection {
    return this as unknown as Kernel.IKernelConnection;
  }
}

/** A notebook, as far as the model looks. */
export class FakeHost implements IKernelHost {
  session: IKernelHost['session'] = null;
  readonly kernelChanged = new Signal<this, unknown>(this);
  readonly disposed = new Signal<this, void>(this);

  constructor(kernel?: FakeKernel) {
    this.use(kernel ?? null);
  }

  use(kernel: FakeKernel | null): void {
    this.session = { kernel: kernel?.connection ?? null };
    this.kernelChanged.emit(undefined);
  }
}

/** Let everything that was promised happen. */
export const settle = (): Promise<void> => new Promise(resolve => setTimeout(resolve));
