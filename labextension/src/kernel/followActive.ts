import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { ConsolePanel, IConsoleTracker } from '@jupyterlab/console';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';

import type { LedgerModel } from './ledgerModel';

/** Keep the model on the kernel of the notebook or console that was used last. */
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
    // A text editor in front has no kernel of its own: the notebook that was used last stays on show.
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
