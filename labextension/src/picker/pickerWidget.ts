import type { RenderProps } from '@anywidget/types';

import { DEAD_STATUSES } from '../kernel/status';
import { isConnectionSnapshot } from '../protocol/snapshot';
import { isFields } from '../protocol/guards';
import type { PickerRequest } from '../protocol/messages';
import { isPickerState } from '../protocol/messages';
import { keepInView } from './keepInView';
import { type IPickerMemory, PickerView } from './picker';
import { trans } from '../translation';

interface IState {
  /** The state that the kernel sent, see `protocol/picker.ts`. */
  state: unknown;
  /** Whether the budget has changed since then. */
  is_stale: boolean;
  /** Stage and elapsed time of a long release; empty if there is none. */
  progress: string;
  /** The connection of the query's session; null if the table is in the kernel. */
  connection: unknown;
  /** Time of the last request of this page, and state that it keeps; neither is sent to the kernel. */
  requested_at?: number;
  memory?: IPickerMemory;
}

/** An answer within this many milliseconds of the request receives the focus. */
const TIMEOUT = 30_000;

interface IKernel {
  statusChanged: {
    connect(slot: (sender: unknown, status: string) => void): unknown;
    disconnect(slot: (sender: unknown, status: string) => void): unknown;
  };
}

/** The kernel of a widget, if the front end provides it: JupyterLab and Notebook do, others may not. */
function kernelOf(manager: unknown): IKernel | null {
  const kernel = isFields(manager) ? manager.kernel : null;
  return isFields(kernel) && isFields(kernel.statusChanged) ? (kernel as unknown as IKernel) : null;
}

/** Show the budget picker of one query below its cell. */
export function renderPicker({ model, el }: RenderProps<IState>): () => void {
  const send = (request: PickerRequest): void => model.send(request);
  const refresh = (): void => send({ method: 'refresh' });
  const memory = model.get('memory') ?? { chosen: null, pending: null };
  model.set('memory', memory);
  const sendRelease = (request: PickerRequest): void => {
    model.set('requested_at', Date.now());
    send(request);
  };
  const view = new PickerView(
    {
      release: (target, id, confirmed): void => sendRelease({ method: 'release', target, id, confirmed }),
      releaseCount: (target, id, confirmed): void => sendRelease({ method: 'release_count', target, id, confirmed }),
      askCurator: (target, why, id): void => send({ method: 'ask_curator', target, why, id }),
      refresh,
      reconnect: (): void => send({ method: 'reconnect' })
    },
    memory
  );
  let stopKeeping = (): void => undefined;
  const update = (): void => {
    const state = model.get('state');
    if (!isPickerState(state)) {
      el.replaceChildren(trans.__('This picker was created by another version of dpnb: run the cell again.'));
      return;
    }
    view.update(state);
    if (view.node.parentNode !== el) {
      el.replaceChildren(view.node);
    }
    // The kernel also replaces the output, so that a closed notebook shows the answer; this view may be the new one.
    const isAnswer = state.completed_request !== null && state.refusal === null && memory.pending === null;
    if (isAnswer && Date.now() - (model.get('requested_at') ?? 0) < TIMEOUT) {
      requestAnimationFrame(() => {
        // If the reader has already pressed Refine, the slider has the focus.
        if (state.phase !== 'answered' || !view.isChoosing) {
          stopKeeping();
          stopKeeping = keepInView(view.focusAnswer());
        }
      });
    }
  };
  const renew = (): void => {
    if (model.get('is_stale') && (view.isChoosing || view.isAsking)) {
      refresh();
    }
  };
  // When the picker becomes visible, it must show the current budget.
  const observer = new IntersectionObserver(entries => {
    if (entries.some(entry => entry.isIntersecting)) {
      renew();
    }
  });
  const whenSeen = (): void => {
    observer.unobserve(el);
    observer.observe(el); // reports at once whether it is visible
  };
  const showConnection = (): void => {
    const connection = model.get('connection');
    view.showConnection(isConnectionSnapshot(connection) ? connection : null);
  };
  const showProgress = (): void => view.showProgress(model.get('progress'));
  const kernel = kernelOf(model.widget_manager);
  const whenKernel = (_: unknown, status: string): void => {
    if (DEAD_STATUSES.has(status)) {
      view.retire();
    }
  };
  kernel?.statusChanged.connect(whenKernel);
  showConnection();
  update();
  model.on('change:state', update);
  model.on('change:connection', showConnection);
  model.on('change:progress', showProgress);
  model.on('change:is_stale', whenSeen);
  observer.observe(el);
  return () => {
    model.off('change:state', update);
    model.off('change:connection', showConnection);
    model.off('change:progress', showProgress);
    model.off('change:is_stale', whenSeen);
    observer.disconnect();
    stopKeeping();
    kernel?.statusChanged.disconnect(whenKernel);
    view.dispose();
  };
}
