import type { JupyterFrontEnd } from '@jupyterlab/application';
import { PathExt } from '@jupyterlab/coreutils';
import type { Contents } from '@jupyterlab/services';

import { isText } from '../protocol/guards';
import { chooseFiles, firstCells, isDeclaration, type ITemplateFiles, notebook } from './template';

/** A declaration is some pages long; a larger file is another program's. */
const MAX_BYTES = 1_000_000;

/** Create a notebook with the first cells of a private analysis in a folder, and open it. */
export async function newAnalysis(app: JupyterFrontEnd, folder: string): Promise<void> {
  const { contents, kernelspecs } = app.serviceManager;
  await kernelspecs.ready;
  const specs = Object.values(kernelspecs.specs?.kernelspecs ?? {}).filter(spec => spec?.language === 'python');
  const spec = specs.find(one => one?.name === kernelspecs.specs?.default) ?? specs[0];
  const kernel = {
    name: spec?.name ?? 'python3',
    display_name: spec?.display_name ?? 'Python 3',
    language: 'python'
  };
  const content = notebook(firstCells(await filesOf(contents, folder)), kernel);
  const { path } = await contents.newUntitled({ path: folder, type: 'notebook' });
  await contents.save(path, { type: 'notebook', format: 'json', content });
  await app.commands.execute('docmanager:open', { path, factory: 'Notebook', kernel: { name: kernel.name } });
}

/** The declaration and the table in a folder. */
async function filesOf(contents: Contents.IManager, folder: string): Promise<ITemplateFiles> {
  const directory = await contents.get(folder, { content: true });
  const files = (directory.content as Contents.IModel[]).filter(({ type }) => type === 'file');
  const names = files.map(({ name }) => name).sort();
  const declarations: string[] = [];
  for (const { name, size } of [...files].sort((a, b) => (a.name < b.name ? -1 : 1))) {
    if (name.endsWith('.toml') && (size ?? 0) <= MAX_BYTES && (await reads(contents, PathExt.join(folder, name)))) {
      declarations.push(name);
    }
  }
  return chooseFiles(names, declarations);
}

async function reads(contents: Contents.IManager, path: string): Promise<boolean> {
  try {
    const file = await contents.get(path, { type: 'file', format: 'text', content: true });
    return isText(file.content) && isDeclaration(file.content);
  } catch {
    return false; // not a text, or it was deleted in the meantime
  }
}
