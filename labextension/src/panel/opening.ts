import { newestSession } from '../dom/format';
import type { LedgerPanel } from './panel';
import type { ILedgerModel } from '../kernel/tokens';

const CLOSED = 'dpnb:panel-closed';

/**
 * Open the panel when the first session appears, once for each load of the page.
 *
 * After the user has closed the panel, or selected another one, it is not reopened until the browser tab is closed.
 */
export function openOnFirstSession(
  model: ILedgerModel,
  panel: LedgerPanel,
  open: () => void,
  storage: Storage = window.sessionStorage
): void {
  panel.visibilityChanged.connect((_, isVisible) => {
    if (isVisible) {
      storage.removeItem(CLOSED);
    } else {
      storage.setItem(CLOSED, 'true');
    }
  });
  const tryToOpen = (): void => {
    if (!newestSession(model.view)) {
      return;
    }
    model.changed.disconnect(tryToOpen);
    if (storage.getItem(CLOSED) === null && !panel.isVisible) {
      open();
    }
  };
  model.changed.connect(tryToOpen);
  tryToOpen();
}
