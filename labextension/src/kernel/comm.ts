import { type Kernel, KernelMessage } from '@jupyterlab/services';
import type { JSONObject } from '@lumino/coreutils';

/**
 * Send a message to a comm of a kernel, which handles it after the requests before it.
 *
 * @returns false if the connection was closed or its kernel has died: a click that comes too late is not an error.
 */
export function sendToComm(kernel: Kernel.IKernelConnection, commId: string, data: JSONObject): boolean {
  if (kernel.isDisposed || kernel.status === 'dead') {
    return false;
  }
  const message = KernelMessage.createMessage<KernelMessage.ICommMsgMsg<'shell'>>({
    msgType: 'comm_msg',
    channel: 'shell',
    username: kernel.username,
    session: kernel.clientId,
    content: { comm_id: commId, data }
  });
  kernel.sendShellMessage(message, false, true);
  return true;
}
