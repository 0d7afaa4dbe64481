import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { ICommandPalette } from '@jupyterlab/apputils';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';

import { NotebookBadges } from './badges';
import { RunningCells } from './runningCells';
import { addCommand, COMMANDS } from '../commands';
import type { Setting } from '../setting';
import type { ILedgerModel } from '../kernel/tokens';
import { trans } from '../translation';

/** Show badges in every open notebook while they are enabled, and add the command that toggles them. */
export function addBadges(
  app: JupyterFrontEnd,
  model: ILedgerModel,
  notebooks: INotebookTracker,
  running: RunningCells,
  isEnabled: Setting<boolean>,
  palette: ICommandPalette | null
): void {
  const shown = new Map<NotebookPanel, NotebookBadges>();
  const showIn = (panel: NotebookPanel): void => {
    if (isEnabled.value && !panel.isDisposed && !shown.has(panel)) {
      const badges = new NotebookBadges(
        panel,
        model,
        running,
        cell => void app.commands.execute(COMMANDS.showCell, { cell })
      );
      shown.set(panel, badges);
      panel.disposed.connect(() => shown.delete(panel));
    }
  };
  const showOrHide = (): void => {
    if (isEnabled.value) {
      notebooks.forEach(showIn);
    } else {
      shown.forEach(badges => badges.dispose());
      shown.clear();
    }
  };
  notebooks.widgetAdded.connect((_, panel) => showIn(panel));
  isEnabled.changed.connect(() => {
    showOrHide();
    app.commands.notifyCommandChanged(COMMANDS.toggleBadges);
  });
  addCommand(app, palette, COMMANDS.toggleBadges, {
    label: trans.__('Show or Hide Cost Badges'),
    caption: trans.__('Show the cost of each cell in the margin of every notebook, and save it with the notebook'),
    isToggled: () => isEnabled.value,
    execute: () => isEnabled.set(!isEnabled.value)
  });
  showOrHide();
}
