import type { JupyterFrontEnd } from '@jupyterlab/application';
import { InputDialog } from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';
import type { Contents } from '@jupyterlab/services';

import { isText } from '../protocol/guards';
import { trans } from '../translation';
import {
  categoriesIn,
  describe,
  EXAMPLE,
  firstCells,
  isDeclaration,
  type ITemplate,
  notebook,
  templatesOf
} from './template';

/** A declaration is some pages long; a larger file is another program's. */
const MAX_BYTES = 1_000_000;

/**
 * Create a notebook with the first cells of a private analysis in a folder, and open it.
 *
 * Where the folder has declarations or tables, a dialog asks for one of them first, beside the example.
 */
export async function newAnalysis(app: JupyterFrontEnd, folder: string): Promise<void> {
  const { contents, kernelspecs } = app.serviceManager;
  const template = await chosen(await templatesIn(contents, folder));
  if (template === null) {
    return;
  }
  await kernelspecs.ready;
  const specs = Object.values(kernelspecs.specs?.kernelspecs ?? {}).filter(spec => spec?.language === 'python');
  const spec = specs.find(one => one?.name === kernelspecs.specs?.default) ?? specs[0];
  const kernel = {
    name: spec?.name ?? 'python3',
    display_name: spec?.display_name ?? 'Python 3',
    language: 'python'
  };
  const { declaration } = template;
  const text = declaration === null ? '' : await textOf(contents, PathExt.join(folder, declaration));
  const content = notebook(firstCells(template, categoriesIn(text)), kernel);
  const { path } = await contents.newUntitled({ path: folder, type: 'notebook' });
  await contents.save(path, { type: 'notebook', format: 'json', content });
  await app.commands.execute('docmanager:open', { path, factory: 'Notebook', kernel: { name: kernel.name } });
}

/** What the user chooses; null if nothing.  An only choice is not asked for. */
async function chosen(templates: ITemplate[]): Promise<ITemplate | null> {
  const [first = EXAMPLE, ...others] = templates;
  if (others.length === 0) {
    return first;
  }
  const items = templates.map(describe);
  const { button, value } = await InputDialog.getItem({
    title: trans.__('Private analysis'),
    label: trans.__('What is analysed?'),
    items,
    okLabel: trans.__('Create')
  });
  return button.accept ? (templates[items.indexOf(value ?? '')] ?? null) : null;
}

/** What can be analysed in a folder. */
async function templatesIn(contents: Contents.IManager, folder: string): Promise<ITemplate[]> {
  const directory = await contents.get(folder, { content: true });
  const files = (directory.content as Contents.IModel[]).filter(({ type }) => type === 'file');
  const names = files.map(({ name }) => name).sort();
  const declarations: string[] = [];
  for (const { name, size } of [...files].sort((a, b) => (a.name < b.name ? -1 : 1))) {
    if (name.endsWith('.toml') && (size ?? 0) <= MAX_BYTES) {
      if (isDeclaration(await textOf(contents, PathExt.join(folder, name)))) {
        declarations.push(name);
      }
    }
  }
  return templatesOf(names, declarations);
}

/** The text of a file; empty if it is none, or was deleted in the meantime. */
async function textOf(contents: Contents.IManager, path: string): Promise<string> {
  try {
    const file = await contents.get(path, { type: 'file', format: 'text', content: true });
    return isText(file.content) ? file.content : '';
  } catch {
    return '';
  }
}
