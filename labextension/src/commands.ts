import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { ICommandPalette } from '@jupyterlab/apputils';

import { exportLog } from './log/exportLog';
import { newestSession } from './dom/format';
import type { Notebooks } from './badges/notebooks';
import type { LedgerPanel } from './panel/panel';
import type { ILedgerModel } from './kernel/tokens';

/** Ids of the commands. */
export const COMMANDS = {
  open: 'dpnb:open-panel',
  exportLog: 'dpnb:export-log',
  goToLast: 'dpnb:go-to-last-release',
  explain: 'dpnb:explain',
  showCell: 'dpnb:show-cell',
  toggleBadges: 'dpnb:toggle-badges'
} as const;

/** Their category in the command palette. */
const CATEGORY = 'dpnb';

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
  palette?.addItem({ command: id, category: CATEGORY });
}

/** Add the commands of the panel. */
export function addPanelCommands(app: JupyterFrontEnd, palette: ICommandPalette | null, context: IPanelContext): void {
  const { model, panel, notebooks, open } = context;
  const openPanel = (): void => {
    open();
    panel.node.focus();
  };
  addCommand(app, palette, COMMANDS.open, {
    label: 'Show the Privacy Budget',
    caption: 'Open the side panel with the gauges of every dpnb session of the active kernel',
    execute: openPanel
  });
  addCommand(app, palette, COMMANDS.exportLog, {
    label: 'Export the Log of Releases as CSV',
    caption: 'Download every request in the ledger of the most recently used dpnb session',
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
    label: 'Go to the Cell of the Last Release',
    caption: 'Show the notebook cell of the last release of the most recently used dpnb session',
    execute: async () => {
      const cell = newestSession(model.view)?.log[0]?.cell_id ?? null;
      if (cell === null || !(await notebooks.goToCell(model.kernelId, cell))) {
        openPanel(); // its log shows the last release
      }
    }
  });
  addCommand(app, palette, COMMANDS.explain, {
    label: 'Explain Refusals and Warnings',
    caption: 'Open the side panel at the explanations of all refusals and warnings',
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
    label: 'Show the Releases of a Cell',
    describedBy: {
      args: {
        type: 'object',
        properties: { cell: { type: 'string', description: 'Id of the notebook cell' } },
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
