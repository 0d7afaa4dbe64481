import type { RenderProps } from '@anywidget/types';

import { DEAD_STATUSES } from '../kernel/status';
import { isFields } from '../protocol/guards';
import type { PickerRequest } from '../protocol/messages';
import { isPickerState } from '../protocol/picker';
import { type IPickerMemory, PickerView } from './picker';

interface IState {
  /** What the kernel says, see `protocol/picker.ts`. */
  state: unknown;
  /** The budget has changed since. */
  is_stale: boolean;
  /** What a release that lasts is doing, and for how long; empty for nothing. */
  progress: string;
  /** When this page asked for a release, and what it must remember; neither is sent to the kernel. */
  asked_at?: number;
  memory?: IPickerMemory;
}

/** An answer that comes within this many milliseconds is the one that the reader waits for. */
const TIMEOUT = 30_000;

interface IKernel {
  statusChanged: {
    connect(slot: (sender: unknown, status: string) => void): unknown;
    disconnect(slot: (sender: unknown, status: string) => void): unknown;
  };
}

/** The kernel behind a widget, where the front end has one to show: JupyterLab and Notebook have, others may not. */
function kernelOf(manager: unknown): IKernel | null {
  const kernel = isFields(manager) ? manager.kernel : null;
  return isFields(kernel) && isFields(kernel.statusChanged) ? (kernel as unknown as IKernel) : null;
}

/** Show the budget picker of one question below its cell. */
export function renderPicker({ model, el }: RenderProps<IState>): () => void {
  const send = (request: PickerRequest): void => model.send(request);
  const refresh = (): void => send({ method: 'refresh' });
  const memory = model.get('memory') ?? { chosen: null, pending: null };
  model.set('memory', memory);
  const release = (target: Record<string, string>, id: string): void => {
    model.set('asked_at', Date.now());
    send({ method: 'release', target, id });
  };
  const view = new PickerView({ release, refresh }, memory);
  const update = (): void => {
    const state = model.get('state');
    if (!isPickerState(state)) {
      el.replaceChildren('This picker was made by another version of dpnb: run the cell again.');
      return;
    }
    view.update(state);
    if (view.node.parentNode !== el) {
      el.replaceChildren(view.node);
    }
    // The kernel also replaces the output, so that a closed notebook shows the answer; this view may be the new one.
    if (state.phase === 'answered' && Date.now() - (model.get('asked_at') ?? 0) < TIMEOUT) {
      requestAnimationFrame(() => {
        // If the reader has pressed Refine already, the keyboard is at the slider.
        if (!view.isAsking) {
          view.focusAnswer();
        }
      });
    }
  };
  const renew = (): void => {
    if (model.get('is_stale') && view.isAsking) {
      refresh();
    }
  };
  // Somebody looks: what other questions have spent since must show.
  const observer = new IntersectionObserver(entries => {
    if (entries.some(entry => entry.isIntersecting)) {
      renew();
    }
  });
  const whenSeen = (): void => {
    observer.unobserve(el);
    observer.observe(el); // tells at once whether it is in sight
  };
  const tell = (): void => view.tell(model.get('progress'));
  const kernel = kernelOf(model.widget_manager);
  const whenKernel = (_: unknown, status: string): void => {
    if (DEAD_STATUSES.has(status)) {
      view.retire();
    }
  };
  kernel?.statusChanged.connect(whenKernel);
  update();
  model.on('change:state', update);
  model.on('change:progress', tell);
  model.on('change:is_stale', whenSeen);
  observer.observe(el);
  return () => {
    model.off('change:state', update);
    model.off('change:progress', tell);
    model.off('change:is_stale', whenSeen);
    observer.disconnect();
    kernel?.statusChanged.disconnect(whenKernel);
    view.dispose();
  };
}
