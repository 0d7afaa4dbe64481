import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { ICommandPalette } from '@jupyterlab/apputils';

import { exportLog } from './log/exportLog';
import { newestSession } from './dom/format';
import type { Notebooks } from './badges/notebooks';
import type { LedgerPanel } from './panel/panel';
import type { ILedgerModel } from './kernel/tokens';
import { trans } from './translation';

/** Ids of the commands. */
export const COMMANDS = {
  open: 'dpnb:open-panel',
  showLog: 'dpnb:show-log',
  showTimeline: 'dpnb:show-timeline',
  newAnalysis: 'dpnb:new-analysis',
  exportLog: 'dpnb:export-log',
  goToLast: 'dpnb:go-to-last-release',
  explain: 'dpnb:explain',
  showCell: 'dpnb:show-cell',
  toggleBadges: 'dpnb:toggle-badges'
} as const;

const NO_ARGUMENTS = { args: { type: 'object', properties: {} } };

interface IPanelContext {
  model: ILedgerModel;
  panel: LedgerPanel;
  notebooks: Notebooks;
  /** Shows the panel. */
  open: () => void;
}

type CommandOptions = Parameters<JupyterFrontEnd['commands']['addCommand']>[1];

/** Add a command without arguments, also to the palette. */
export function addCommand(
  app: JupyterFrontEnd,
  palette: ICommandPalette | null,
  id: string,
  options: Omit<CommandOptions, 'describedBy'>
): void {
  app.commands.addCommand(id, { describedBy: NO_ARGUMENTS, ...options });
  palette?.addItem({ command: id, category: trans.__('Private Analysis') });
}

/** Add the commands of the panel. */
export function addPanelCommands(app: JupyterFrontEnd, palette: ICommandPalette | null, context: IPanelContext): void {
  const { model, panel, notebooks, open } = context;
  const openPanel = (): void => {
    open();
    panel.node.focus();
  };
  addCommand(app, palette, COMMANDS.open, {
    label: trans.__('Show the Privacy Budget'),
    caption: trans.__('Open the side panel with the gauges of every dpnb session of the active kernel'),
    execute: openPanel
  });
  const show = (part: 'log' | 'timeline'): void => {
    open();
    if (!panel.showPart(part)) {
      panel.node.focus(); // it shows why there is nothing to see
    }
  };
  addCommand(app, palette, COMMANDS.showTimeline, {
    label: trans.__('Show the Budget over Time'),
    caption: trans.__('Open the side panel at the charts of the most recently used dpnb session'),
    execute: () => show('timeline')
  });
  addCommand(app, palette, COMMANDS.showLog, {
    label: trans.__('Show the Log of Releases'),
    caption: trans.__('Open the side panel at the releases of the most recently used dpnb session'),
    execute: () => show('log')
  });
  addCommand(app, palette, COMMANDS.exportLog, {
    label: trans.__('Export the Log of Releases as CSV'),
    caption: trans.__('Download every request in the ledger of the most recently used dpnb session'),
    execute: async () => {
      const session = newestSession(model.view);
      if (session) {
        await exportLog(model, session);
      } else {
        openPanel(); // it shows why there is nothing to export
      }
    }
  });
  addCommand(app, palette, COMMANDS.goToLast, {
    label: trans.__('Go to the Cell of the Last Release'),
    caption: trans.__('Show the notebook cell of the last release of the most recently used dpnb session'),
    execute: async () => {
      const cell = newestSession(model.view)?.log[0]?.cell_id ?? null;
      if (cell === null || !(await notebooks.goToCell(model.kernelId, cell))) {
        openPanel(); // its log shows the last release
      }
    }
  });
  addCommand(app, palette, COMMANDS.explain, {
    label: trans.__('Explain Refusals and Warnings'),
    caption: trans.__('Open the side panel at the explanations of all refusals and warnings'),
    execute: () => {
      open();
      panel.showExplanation(null);
    }
  });
  addShowCell(app, context);
}

/** Add the command that needs the id of a cell, and is therefore not in the palette. */
function addShowCell(app: JupyterFrontEnd, { panel, open }: IPanelContext): void {
  app.commands.addCommand(COMMANDS.showCell, {
    label: trans.__('Show the Releases of a Cell'),
    describedBy: {
      args: {
        type: 'object',
        properties: { cell: { type: 'string', description: trans.__('Id of the notebook cell') } },
        required: ['cell']
      }
    },
    execute: args => {
      open();
      if (typeof args.cell === 'string') {
        panel.showCell(args.cell);
      }
    }
  });
}
