import type { INotebookContent } from '@jupyterlab/nbformat';

import { trans } from '../translation';

/** What a new notebook analyses; files are relative to it. */
export interface ITemplate {
  /** The curator's declaration; null for the example. */
  readonly declaration: string | null;
  /** The table: of the declaration, or one without a declaration; null if there is none. */
  readonly table: string | null;
}

/** The example on a public table, which needs no file. */
export const EXAMPLE: ITemplate = { declaration: null, table: null };

/**
 * What can be analysed in a folder: each declaration, with the table that has its name, first those that have one; the
 * example; and the tables without a declaration, which cannot be analysed yet.  The dialog proposes the first.
 */
export function templatesOf(names: readonly string[], declarations: readonly string[]): ITemplate[] {
  const declared = declarations.map(declaration => ({ declaration, table: tableOf(names, declaration) }));
  const tables = names.filter(name => /\.(csv|parquet)$/.test(name) && !declared.some(({ table }) => table === name));
  return [
    ...declared.filter(({ table }) => table !== null),
    ...declared.filter(({ table }) => table === null),
    EXAMPLE,
    ...tables.map(table => ({ declaration: null, table }))
  ];
}

/** A template in the words of the dialog. */
export function describe({ declaration, table }: ITemplate): string {
  if (declaration === null) {
    return table === null
      ? trans.__('An example: life expectancy in the countries, a public table')
      : trans.__('%1: not declared yet; how to, and the example', table);
  }
  return table === null
    ? trans.__('%1: a rehearsal on mock data', declaration)
    : trans.__('%1, declared in %2', table, declaration);
}

/** Whether a TOML file is a declaration: it has a budget and a schema. */
export const isDeclaration = (text: string): boolean => /^\s*\[schema/m.test(text) && /^\s*\[?budget/m.test(text);

/** The first column of categories in a declaration, for a query by group; null if none is found. */
export function categoriesIn(text: string): string | null {
  const section = /^\s*\[schema\.("[^"]+"|[\w-]+)\].*\n(?:\s*[^[\s].*\n|\s*\n)*?\s*type\s*=\s*"categories"/m;
  const line = /^\s*("[^"]+"|[\w-]+)\s*=\s*\{\s*type\s*=\s*"categories"/m;
  const name = (section.exec(text) ?? line.exec(text))?.[1];
  return name === undefined ? null : name.replace(/"/g, '');
}

type Cells = [type: 'code' | 'markdown', source: string][];

/**
 * The cells with which a private analysis begins.  They run as they are.
 *
 * @param groups A column of categories of the declaration, by which the query is grouped.
 */
export function firstCells({ declaration, table }: ITemplate, groups: string | null = null): Cells {
  return declaration === null ? exampleCells(table) : declaredCells(declaration, table, groups);
}

function declaredCells(declaration: string, table: string | null, groups: string | null): Cells {
  const path = quoted(declaration);
  const session =
    table === null
      ? [
          `# ${trans.__('Mock data: for real answers, pass the table, as in from_toml(%1, table)', path)}`,
          `session = dpnb.Session.from_toml(${path}, rehearse=True)`
        ]
      : [`table = ${reading(table)}`, `session = dpnb.Session.from_toml(${path}, table)`];
  const introduction = [
    trans.__(
      'The curator’s file `%1` declares the privacy unit, the budget and the columns of the table.',
      declaration
    ),
    free()
  ];
  return [
    ['markdown', `# ${trans.__('Private analysis')}\n\n${introduction.join(' ')}`],
    ['code', ['%load_ext dpnb', ...(table === null ? [] : ['import pandas as pd', '']), 'import dpnb'].join('\n')],
    ['code', [...session, 'session'].join('\n')],
    ['code', 'df = session.frame\ndf'],
    ['code', `query = ${groups === null ? 'df.count()' : `df.groupby(${quoted(groups)}).size()`}\nquery`],
    ...afterwards()
  ];
}

function exampleCells(table: string | null): Cells {
  const name = table ?? 'table.csv';
  const declaration = name.replace(/\.\w+$/, '.toml');
  const introduction = trans.__(
    'This example runs as it is, on a public table of countries: each row, a country in a year, counts as if it were a person.'
  );
  const own = [
    trans.__(
      'For `%1`, in a terminal, `python -m dpnb draft %1` writes the declaration `%2`; complete it.',
      name,
      declaration
    ),
    trans.__('Then choose *Private analysis* again, which asks for the file, or open it by'),
    `\`session = dpnb.Session.from_toml(${quoted(declaration)}, ${reading(name)})\`.`
  ];
  return [
    ['markdown', `# ${trans.__('Private analysis')}\n\n${introduction} ${free()}\n\n${own.join(' ')}`],
    ['code', ['%load_ext dpnb', 'import dpnb', 'import pandas as pd', 'import plotly.data'].join('\n')],
    ['code', SESSION],
    ['code', 'df = session.frame\ndf'],
    ['code', 'query = df[df["lifeExp"] > 70].groupby("continent").size()\nquery'],
    ...afterwards()
  ];
}

const free = (): string =>
  trans.__(
    'Queries and their previews are free; a release is charged to the budget, of which `session` shows what is left.'
  );

/** The answer and its figure, after a release by the button; before it, what to click. */
const afterwards = (): Cells => [
  [
    'markdown',
    trans.__(
      'Choose a budget with the slider above, and click **Release**. Then `query.answer` is the answer; run the next cell to draw it.'
    )
  ],
  [
    'code',
    `${quoted(trans.__('Click Release above, then run this cell again.'))} if query.best is None else query.answer.plot()`
  ]
];

const SESSION = `session = dpnb.Session(
    plotly.data.gapminder(),
    name="gapminder",
    budget=dpnb.Budget(epsilon=2.0, delta=1e-6),
    public_size=1704,
    public_rows=1704,
    schema={
        "lifeExp": dpnb.Bounded(20, 90),
        "gdpPercap": dpnb.Bounded(0, 50_000),
        "year": dpnb.Bounded(1952, 2007, integer=True),
        "continent": dpnb.Categories(["Africa", "Americas", "Asia", "Europe", "Oceania"]),
    },
)
session`;

/** A notebook with these cells. */
export function notebook(
  cells: Cells,
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

/** The expression that reads a table. */
const reading = (table: string): string =>
  `pd.${table.endsWith('.csv') ? 'read_csv' : 'read_parquet'}(${quoted(table)})`;

/** A Python string; JSON's escapes are Python's too. */
const quoted = (text: string): string => JSON.stringify(text);
