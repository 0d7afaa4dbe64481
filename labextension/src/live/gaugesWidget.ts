import type { RenderProps } from '@anywidget/types';

import { SessionView } from '../panel/sessionView';
import type { PanelRequest } from '../protocol/messages';
import { isSessionSnapshot } from '../protocol/read';
import { trans } from '../translation';

interface IState {
  /** One session of the snapshot. */
  state: unknown;
}

/** Show the gauges of one session below a cell, and update them until they are removed. */
export function renderGauges({ model, el }: RenderProps<IState>): () => void {
  const view = new SessionView(null, {
    reconnect: (): void => model.send({ method: 'reconnect' } satisfies PanelRequest),
    compare: (session, isShown): void =>
      model.send({ method: 'compare', session, is_shown: isShown } satisfies PanelRequest)
  });
  const update = (): void => {
    const session = model.get('state');
    if (isSessionSnapshot(session)) {
      view.update(session);
      if (view.node.parentNode !== el) {
        el.replaceChildren(view.node); // only once: an element that is inserted again loses the focus
      }
    } else {
      el.replaceChildren(trans.__('These gauges were created by another version of dpnb: run the cell again.'));
    }
  };
  update();
  model.on('change:state', update);
  return () => model.off('change:state', update);
}
