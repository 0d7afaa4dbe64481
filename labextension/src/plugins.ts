import { ILayoutRestorer, type JupyterFrontEnd, type JupyterFrontEndPlugin } from '@jupyterlab/application';
import { Clipboard, ICommandPalette } from '@jupyterlab/apputils';
import { IConsoleTracker } from '@jupyterlab/console';
import { IDefaultFileBrowser } from '@jupyterlab/filebrowser';
import { ILauncher } from '@jupyterlab/launcher';
import { INotebookTracker, NotebookActions } from '@jupyterlab/notebook';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { IStatusBar } from '@jupyterlab/statusbar';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { TabCache } from './kernel/cache';
import { addBadges } from './badges/addBadges';
import { addPanelCommands, COMMANDS } from './commands';
import { addNewAnalysis } from './launcher/addNewAnalysis';
import { exportLog } from './log/exportLog';
import { followActive } from './kernel/followActive';
import { DEFAULT_HEADLINE, statusLine } from './dom/format';
import { followCells } from './kernel/followCells';
import { gaugeIcon } from './dom/icon';
import { addLiveOutputs } from './live/liveOutput';
import { LiveWidgets } from './live/liveWidgets';
import { LedgerModel } from './kernel/ledgerModel';
import { Notebooks } from './badges/notebooks';
import { RunningCells } from './badges/runningCells';
import { openOnFirstSession } from './panel/opening';
import { LedgerPanel } from './panel/panel';
import { Setting } from './setting';
import { StatusItem } from './panel/statusItem';
import { widen } from './panel/width';
import { ILedgerModel } from './kernel/tokens';
import type { ISessionActions } from './panel/sessionActions';
import { followExplanationLinks } from './panel/explanationLink';
import { setTranslator, trans } from './translation';

const PANEL_ID = 'dpnb:ledger-panel';
const STATUS_ID = 'dpnb:status';
const BADGES_ID = 'dpnb:badges';

// Everything is optional: a page of Notebook 7 lacks a console, a status bar or, in its file list, even notebooks.
const panelPlugin: JupyterFrontEndPlugin<ILedgerModel> = {
  id: PANEL_ID,
  description: 'Shows the privacy budget of the active kernel in a side panel.',
  autoStart: true,
  provides: ILedgerModel,
  optional: [INotebookTracker, IConsoleTracker, ILayoutRestorer, ICommandPalette, IRenderMimeRegistry, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    notebooks: INotebookTracker | null,
    consoles: IConsoleTracker | null,
    restorer: ILayoutRestorer | null,
    palette: ICommandPalette | null,
    rendermime: IRenderMimeRegistry | null,
    translator: ITranslator | null
  ): ILedgerModel => {
    setTranslator(translator); // first: the other plugins need this one's model, so they are activated later
    const model = new LedgerModel(new TabCache());
    if (notebooks || consoles) {
      // On other pages no kernel is followed, and widgets have the standard view.
      if (rendermime) {
        const widgets = new LiveWidgets();
        model.connected.connect((_, kernel) => widgets.follow(kernel));
        addLiveOutputs(rendermime, widgets);
      }
      followActive(app, model, notebooks, consoles);
      if (notebooks) {
        followCells(NotebookActions, model, notebooks);
      }
      addPanel(app, model, notebooks, restorer, palette);
    }
    return model;
  }
};

const statusPlugin: JupyterFrontEndPlugin<void> = {
  id: STATUS_ID,
  description: 'Shows the remaining privacy budget in the status bar.',
  autoStart: true,
  requires: [ILedgerModel],
  optional: [IStatusBar, ISettingRegistry],
  activate: (
    app: JupyterFrontEnd,
    model: ILedgerModel,
    statusBar: IStatusBar | null,
    settings: ISettingRegistry | null
  ): void => {
    if (!statusBar) {
      return;
    }
    const headline = new Setting<string>(settings, STATUS_ID, 'headline', DEFAULT_HEADLINE);
    statusBar.registerStatusItem(STATUS_ID, {
      item: new StatusItem(model, headline, () => void app.commands.execute(COMMANDS.open)),
      align: 'left',
      rank: 900,
      isActive: () => statusLine(model.view) !== null,
      activeStateChanged: model.changed
    });
  }
};

const badgesPlugin: JupyterFrontEndPlugin<void> = {
  id: BADGES_ID,
  description: 'Shows the cost of each cell in the margin of every notebook.',
  autoStart: true,
  requires: [ILedgerModel],
  optional: [INotebookTracker, ISettingRegistry, ICommandPalette],
  activate: (
    app: JupyterFrontEnd,
    model: ILedgerModel,
    notebooks: INotebookTracker | null,
    settings: ISettingRegistry | null,
    palette: ICommandPalette | null
  ): void => {
    if (notebooks) {
      const running = new RunningCells(NotebookActions);
      addBadges(app, model, notebooks, running, new Setting<boolean>(settings, BADGES_ID, 'showBadges', true), palette);
    }
  }
};

const launcherPlugin: JupyterFrontEndPlugin<void> = {
  id: 'dpnb:launcher',
  description: 'Creates notebooks with the first cells of a private analysis.',
  autoStart: true,
  requires: [ILedgerModel],
  optional: [ILauncher, ICommandPalette, IDefaultFileBrowser, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    _: ILedgerModel,
    launcher: ILauncher | null,
    palette: ICommandPalette | null,
    files: IDefaultFileBrowser | null,
    translator: ITranslator | null
  ): void => {
    addNewAnalysis(app, palette, () => files?.model.path ?? '');
    // The launcher groups its tiles by the name of the category in its own translation.
    const category = (translator ?? nullTranslator).load('jupyterlab').__('Other');
    launcher?.add({ command: COMMANDS.newAnalysis, category, rank: 10 });
  }
};

/** Add the panel on the right, its commands, and the links to its explanations. */
function addPanel(
  app: JupyterFrontEnd,
  model: LedgerModel,
  tracker: INotebookTracker | null,
  restorer: ILayoutRestorer | null,
  palette: ICommandPalette | null
): void {
  const notebooks = new Notebooks(tracker, id => app.shell.activateById(id));
  const panel = new LedgerPanel(model, sessionActions(model, notebooks));
  panel.id = PANEL_ID;
  panel.title.icon = gaugeIcon;
  panel.title.caption = trans.__('Privacy budget (dpnb)');
  app.shell.add(panel, 'right', { rank: 900, type: trans.__('Privacy budget') });
  restorer?.add(panel, PANEL_ID);
  notebooks.changed.connect(() => panel.update());
  const open = (): void => app.shell.activateById(PANEL_ID);
  addPanelCommands(app, palette, { model, panel, notebooks, open });
  followExplanationLinks(explanation => {
    open();
    panel.showExplanation(explanation);
  });
  const openWide = (): void => {
    open();
    requestAnimationFrame(() => widen(panel)); // the Lab lays out what has been opened before
  };
  void app.restored.then(() => openOnFirstSession(model, panel, openWide));
}

/** The actions of the panel for its sessions, which all belong to the active kernel. */
function sessionActions(model: ILedgerModel, notebooks: Notebooks): ISessionActions {
  return {
    log: session => model.log(session),
    requestLog: session => void model.requestLog(session),
    exportLog: session => void exportLog(model, session),
    hasCell: cell => notebooks.hasCell(model.kernelId, cell),
    goToCell: cell => void notebooks.goToCell(model.kernelId, cell),
    reconnect: () => model.reconnect(),
    compare: (session, isShown) => model.compare(session, isShown),
    copy: text => Clipboard.copyToSystem(text)
  };
}

export const plugins: JupyterFrontEndPlugin<unknown>[] = [panelPlugin, statusPlugin, badgesPlugin, launcherPlugin];
