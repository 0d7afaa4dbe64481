import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { ICommandPalette } from '@jupyterlab/apputils';

import { COMMANDS } from '../commands';
import { gaugeIcon } from '../dom/icon';
import { trans } from '../translation';
import { newAnalysis } from './newAnalysis';

/**
 * Add the command that creates a notebook for a private analysis.
 *
 * @param currentFolder The folder that the file browser shows; the launcher passes its own.
 */
export function addNewAnalysis(
  app: JupyterFrontEnd,
  palette: ICommandPalette | null,
  currentFolder: () => string
): void {
  app.commands.addCommand(COMMANDS.newAnalysis, {
    label: args => (args.isPalette === true ? trans.__('New Private Analysis') : trans.__('Private analysis')),
    caption: trans.__('Create a notebook with the first cells of a private analysis'),
    icon: args => (args.isPalette === true ? undefined : gaugeIcon),
    describedBy: {
      args: {
        type: 'object',
        properties: {
          cwd: { type: 'string', description: trans.__('The folder of the notebook') },
          isPalette: { type: 'boolean', description: trans.__('Whether the command palette shows the command') }
        }
      }
    },
    execute: args => newAnalysis(app, typeof args.cwd === 'string' ? args.cwd : currentFolder())
  });
  palette?.addItem({
    command: COMMANDS.newAnalysis,
    category: trans.__('Private Analysis'),
    args: { isPalette: true }
  });
}
