import { type Kernel, KernelMessage } from '@jupyterlab/services';
import type { JSONObject } from '@lumino/coreutils';

/**
 * Send a message to a comm in a kernel, which hears it when it has done what it was told before.
 *
 * @returns false where nobody is there to hear it: a connection that was closed, or whose kernel died, must not make an
 * error of a click that came a moment too late.
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
