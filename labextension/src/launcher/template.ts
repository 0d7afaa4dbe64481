import type { INotebookContent } from '@jupyterlab/nbformat';

import { trans } from '../translation';

/** The files that the first cells name, relative to the notebook. */
export interface ITemplateFiles {
  /** The curator's declaration; null if the folder has none. */
  readonly declaration: string | null;
  /** The table with the same name as the declaration; null if there is none. */
  readonly table: string | null;
}

const PLACEHOLDER = 'table.toml';

/** Choose the files of a folder: the first declaration, and a table with the same name. */
export function chooseFiles(names: readonly string[], declarations: readonly string[]): ITemplateFiles {
  const hasTable = (declaration: string): boolean => tableOf(names, declaration) !== null;
  const declaration = declarations.find(hasTable) ?? declarations[0] ?? null;
  return { declaration, table: declaration === null ? null : tableOf(names, declaration) };
}

/** Whether a TOML file is a declaration: it has a budget and a schema. */
export const isDeclaration = (text: string): boolean => /^\s*\[schema/m.test(text) && /^\s*\[?budget/m.test(text);

/**
 * The cells with which a private analysis begins.
 *
 * They run as they are if the folder has a declaration: on its table, or else on mock data.
 */
export function firstCells({ declaration, table }: ITemplateFiles): [type: 'code' | 'markdown', source: string][] {
  const path = quoted(declaration ?? PLACEHOLDER);
  const read =
    table === null ? [] : [`table = pd.${table.endsWith('.csv') ? 'read_csv' : 'read_parquet'}(${quoted(table)})`];
  const session =
    table === null
      ? [
          `# ${trans.__('Mock data: for real answers, pass the table, as in from_toml(%1, table)', path)}`,
          `session = dpnb.Session.from_toml(${path}, rehearse=True)`
        ]
      : [`session = dpnb.Session.from_toml(${path}, table)`];
  const introduction = [
    trans.__(
      'The curator’s file `%1` declares the privacy unit, the budget and the columns of the table.',
      declaration ?? PLACEHOLDER
    ),
    declaration === null ? trans.__('Put it in the folder of this notebook, or change its name below.') : '',
    trans.__(
      'Queries and their previews are free; a release is charged to the budget, which the panel on the right shows.'
    )
  ];
  return [
    ['markdown', `# ${trans.__('Private analysis')}\n\n${introduction.filter(text => text !== '').join(' ')}`],
    ['code', ['%load_ext dpnb', ...(table === null ? [] : ['import pandas as pd', '']), 'import dpnb'].join('\n')],
    ['code', [...read, ...session, 'session'].join('\n')],
    ['code', 'frame = session.frame\nframe.count()']
  ];
}

/** A notebook with these cells. */
export function notebook(
  cells: ReturnType<typeof firstCells>,
  kernel: { name: string; display_name: string; language: string }
): INotebookContent {
  return {
    cells: cells.map(([type, source]) => ({
      cell_type: type,
      id: crypto.getRandomValues(new Uint32Array(2)).join('-'),
      metadata: {},
      source,
      ...(type === 'code' ? { execution_count: null, outputs: [] } : {})
    })),
    metadata: { kernelspec: kernel },
    nbformat: 4,
    nbformat_minor: 5
  };
}

function tableOf(names: readonly string[], declaration: string): string | null {
  const stem = declaration.replace(/\.toml$/, '');
  return ['.parquet', '.csv'].map(ending => stem + ending).find(name => names.includes(name)) ?? null;
}

/** A Python string; JSON's escapes are Python's too. */
const quoted = (text: string): string => JSON.stringify(text);
