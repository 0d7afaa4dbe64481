import type { JupyterFrontEnd } from '@jupyterlab/application';
import { expect, it, vi } from 'vitest';

import { LedgerModel } from '../kernel/ledgerModel';
import { plugins } from '../plugins';

// Only their tokens are used; their modules need a browser, and take long to load.
vi.mock('@jupyterlab/application', () => ({ ILayoutRestorer: {} }));
vi.mock('@jupyterlab/apputils', () => ({ Clipboard: {}, ICommandPalette: {} }));
vi.mock('@jupyterlab/console', () => ({ IConsoleTracker: {} }));
vi.mock('@jupyterlab/notebook', () => ({ INotebookTracker: {} }));
vi.mock('@jupyterlab/filebrowser', () => ({ IDefaultFileBrowser: {} }));
vi.mock('@jupyterlab/launcher', () => ({ ILauncher: {} }));
vi.mock('@jupyterlab/translation', () => ({ ITranslator: {} }));
vi.mock('@jupyterlab/statusbar', () => ({ IStatusBar: {} }));
vi.mock('@jupyterlab/rendermime', () => ({ IRenderMimeRegistry: {} }));
vi.mock('../dom/icon', () => ({ gaugeIcon: {} }));

it('leaves widgets to the page where there are neither notebooks nor consoles', async () => {
  const app = {} as unknown as JupyterFrontEnd;
  const rendermime = { addFactory: vi.fn() };
  const panel = plugins.find(({ id }) => id === 'dpnb:ledger-panel');
  const model = await panel?.activate(app, null, null, null, null, rendermime, null);
  expect(model).toBeInstanceOf(LedgerModel);
  expect(rendermime.addFactory).not.toHaveBeenCalled();
});
