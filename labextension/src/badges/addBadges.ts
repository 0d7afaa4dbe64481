import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { ICommandPalette } from '@jupyterlab/apputils';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';

import { NotebookBadges } from './badges';
import { addCommand, COMMANDS } from '../commands';
import type { Setting } from '../setting';
import type { ILedgerModel } from '../kernel/tokens';

/** Show badges in every open notebook for as long as the user wants them, and add the command that decides. */
export function addBadges(
  app: JupyterFrontEnd,
  model: ILedgerModel,
  notebooks: INotebookTracker,
  isWanted: Setting<boolean>,
  palette: ICommandPalette | null
): void {
  const shown = new Map<NotebookPanel, NotebookBadges>();
  const showIn = (panel: NotebookPanel): void => {
    if (isWanted.value && !panel.isDisposed && !shown.has(panel)) {
      const badges = new NotebookBadges(panel, model, cell => void app.commands.execute(COMMANDS.showCell, { cell }));
      shown.set(panel, badges);
      panel.disposed.connect(() => shown.delete(panel));
    }
  };
  const showOrHide = (): void => {
    if (isWanted.value) {
      notebooks.forEach(showIn);
    } else {
      shown.forEach(badges => badges.dispose());
      shown.clear();
    }
  };
  notebooks.widgetAdded.connect((_, panel) => showIn(panel));
  isWanted.changed.connect(() => {
    showOrHide();
    app.commands.notifyCommandChanged(COMMANDS.toggleBadges);
  });
  addCommand(app, palette, COMMANDS.toggleBadges, {
    label: 'Show or Hide Cost Badges',
    caption: 'Show in the margin of every notebook what each cell cost, and save it with the notebook',
    isToggled: () => isWanted.value,
    execute: () => isWanted.set(!isWanted.value)
  });
  showOrHide();
}
