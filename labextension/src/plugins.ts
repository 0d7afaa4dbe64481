import { ILayoutRestorer, type JupyterFrontEnd, type JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { type ConsolePanel, IConsoleTracker } from '@jupyterlab/console';
import { INotebookTracker, type NotebookPanel } from '@jupyterlab/notebook';
import { IStatusBar } from '@jupyterlab/statusbar';

import { TabCache } from './cache';
import { statusLine } from './format';
import { dialIcon } from './icon';
import { LedgerModel } from './model';
import { openOnFirstSession } from './opening';
import { LedgerPanel } from './panel';
import { StatusItem } from './statusItem';
import { ILedgerModel } from './tokens';

/** The command that opens the side panel and moves the keyboard there. */
export const OPEN_PANEL = 'dpnb:open-panel';
const PANEL_ID = 'dpnb:ledger-panel';

// Everything is optional: a page of Notebook 7 lacks a console, a status bar or, in its file list, even notebooks.
const panelPlugin: JupyterFrontEndPlugin<ILedgerModel> = {
  id: 'dpnb:ledger-panel',
  description: 'Shows the privacy budget of the active kernel in a side panel.',
  autoStart: true,
  provides: ILedgerModel,
  optional: [INotebookTracker, IConsoleTracker, ILayoutRestorer, ICommandPalette],
  activate: (
    app: JupyterFrontEnd,
    notebooks: INotebookTracker | null,
    consoles: IConsoleTracker | null,
    restorer: ILayoutRestorer | null,
    palette: ICommandPalette | null
  ): ILedgerModel => {
    const model = new LedgerModel(new TabCache());
    if (notebooks || consoles) {
      followActive(app, model, notebooks, consoles);
      addPanel(app, model, restorer, palette);
    }
    return model;
  }
};

const statusPlugin: JupyterFrontEndPlugin<void> = {
  id: 'dpnb:status',
  description: 'Shows what is left of the privacy budget in the status bar.',
  autoStart: true,
  requires: [ILedgerModel],
  optional: [IStatusBar],
  activate: (app: JupyterFrontEnd, model: ILedgerModel, statusBar: IStatusBar | null): void => {
    statusBar?.registerStatusItem('dpnb:status', {
      item: new StatusItem(model, () => void app.commands.execute(OPEN_PANEL)),
      align: 'left',
      rank: 900,
      isActive: () => statusLine(model.view) !== null,
      activeStateChanged: model.changed
    });
  }
};

/** Keep the model on the kernel of the notebook or console that was used last. */
function followActive(
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

/** Add the panel on the right, and the command that opens it. */
function addPanel(
  app: JupyterFrontEnd,
  model: LedgerModel,
  restorer: ILayoutRestorer | null,
  palette: ICommandPalette | null
): void {
  const panel = new LedgerPanel(model);
  panel.id = PANEL_ID;
  panel.title.icon = dialIcon;
  panel.title.caption = 'Privacy budget (dpnb)';
  app.shell.add(panel, 'right', { rank: 900, type: 'Privacy budget' });
  restorer?.add(panel, PANEL_ID);
  const open = (): void => app.shell.activateById(PANEL_ID);
  app.commands.addCommand(OPEN_PANEL, {
    label: 'Show the Privacy Budget',
    caption: 'Open the side panel with the gauges of every dpnb session of the active kernel',
    describedBy: { args: { type: 'object', properties: {} } },
    execute: () => {
      open();
      panel.node.focus();
    }
  });
  palette?.addItem({ command: OPEN_PANEL, category: 'dpnb' });
  void app.restored.then(() => openOnFirstSession(model, panel, open));
}

export const plugins: JupyterFrontEndPlugin<unknown>[] = [panelPlugin, statusPlugin];
