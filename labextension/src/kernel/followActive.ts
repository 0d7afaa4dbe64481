import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { ConsolePanel, IConsoleTracker } from '@jupyterlab/console';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';

import type { LedgerModel } from './ledgerModel';

/** Make the kernel of the most recently used notebook or console the active kernel of the model. */
export function followActive(
  app: JupyterFrontEnd,
  model: LedgerModel,
  notebooks: INotebookTracker | null,
  consoles: IConsoleTracker | null
): void {
  const choose = (): void => {
    const { currentWidget } = app.shell;
    const isTracked =
      currentWidget && (notebooks?.has(currentWidget) === true || consoles?.has(currentWidget) === true);
    // Other widgets, such as a text editor, have no kernel: the most recently used notebook remains active.
    const panel = isTracked
      ? (currentWidget as NotebookPanel | ConsolePanel)
      : (notebooks?.currentWidget ?? consoles?.currentWidget);
    model.activate(panel && !panel.isDisposed ? panel.sessionContext : null);
  };
  for (const tracker of [notebooks, consoles]) {
    tracker?.forEach((panel: NotebookPanel | ConsolePanel) => model.follow(panel.sessionContext));
    tracker?.widgetAdded.connect((_: unknown, panel: NotebookPanel | ConsolePanel) =>
      model.follow(panel.sessionContext)
    );
    tracker?.currentChanged.connect(choose);
  }
  app.shell.currentChanged?.connect(choose);
  choose();
}
