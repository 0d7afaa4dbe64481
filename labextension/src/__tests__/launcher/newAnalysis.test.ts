import type { JupyterFrontEnd } from '@jupyterlab/application';
import { beforeEach, describe, expect, it, vi } from 'vitest';

import { newAnalysis } from '../../launcher/newAnalysis';
import { categoriesIn, EXAMPLE, firstCells, isDeclaration, templatesOf } from '../../launcher/template';

const getItem = vi.hoisted(() => vi.fn<(options: { items: string[] }) => Promise<object>>());
vi.mock('@jupyterlab/apputils', () => ({ InputDialog: { getItem } }));

const DECLARATION = '# of a table\nname = "a"\n[budget]\nepsilon = 1\n[schema.x]\ntype = "bounded"\n';

describe('the first cells', () => {
  const source = (declaration: string | null, table: string | null): string =>
    firstCells({ declaration, table })
      .map(([, cell]) => cell)
      .join('\n');

  it('read the table beside the declaration', () => {
    expect(source('a.toml', 'a.csv')).toContain(
      'table = pd.read_csv("a.csv")\nsession = dpnb.Session.from_toml("a.toml", table)\nsession'
    );
    expect(source('a.toml', 'a.parquet')).toContain('pd.read_parquet("a.parquet")');
  });

  it('rehearse a declaration without a table', () => {
    expect(source('a.toml', null)).toContain('dpnb.Session.from_toml("a.toml", rehearse=True)');
    expect(source('a.toml', null)).not.toContain('pandas');
  });

  it('are an example that reads no file in a folder without a declaration', () => {
    const code = firstCells(EXAMPLE)
      .filter(([type]) => type === 'code')
      .map(([, cell]) => cell)
      .join('\n');
    expect(code).toContain('data.gapminder()');
    expect(code).not.toMatch(/from_toml|read_csv/);
  });

  it('name draft, with the table that is not declared yet', () => {
    expect(source(null, null)).toContain('python -m dpnb draft table.csv');
    expect(source(null, 'visits.parquet')).toContain('python -m dpnb draft visits.parquet');
    expect(source(null, 'visits.parquet')).toContain('from_toml("visits.toml", pd.read_parquet("visits.parquet"))');
  });

  it('name the answer of the query, and no panel, which may be closed', () => {
    for (const cells of [source('a.toml', 'a.csv'), source(null, null)]) {
      expect(cells).toContain('query.answer');
      expect(cells).not.toContain('panel');
    }
  });

  it('are a query by group, and a figure that says what to click before the release', () => {
    const example = source(null, null);
    expect(example).toContain('query = df[df["lifeExp"] > 70].groupby("continent").size()\nquery');
    expect(source('a.toml', null)).toContain('query = df.count()');
    const grouped = firstCells({ declaration: 'a.toml', table: null }, 'the "plan"').map(([, cell]) => cell);
    expect(grouped).toContain('query = df.groupby("the \\"plan\\"").size()\nquery');
    for (const cell of [
      ...grouped.slice(-1),
      ...firstCells(EXAMPLE)
        .slice(-1)
        .map(([, last]) => last)
    ]) {
      expect(cell).toMatch(/^"Click Release .*" if query\.best is None else query\.answer\.plot\(\)$/);
    }
  });

  it('quote any name of a file', () => {
    expect(source('a"b\\.toml', null)).toContain('from_toml("a\\"b\\\\.toml", rehearse=True)');
  });
});

describe('the files of a folder', () => {
  it('have a column of categories, or none', () => {
    expect(categoriesIn(DECLARATION)).toBeNull();
    expect(categoriesIn('[schema]\nage = { type = "bounded" }\nplan = { type = "categories" }')).toBe('plan');
    const sections = '[schema.x]\ntype = "bounded"\n\n[schema."my plan"] # a\n# b\ntype = "categories"\n';
    expect(categoriesIn(sections)).toBe('my plan');
    expect(categoriesIn('')).toBeNull();
  });

  it('are declarations with their tables first, then the example, then tables without one', () => {
    const names = ['a.toml', 'b.csv', 'b.toml', 'c.parquet', 'notes.txt'];
    expect(templatesOf(names, ['a.toml', 'b.toml'])).toEqual([
      { declaration: 'b.toml', table: 'b.csv' },
      { declaration: 'a.toml', table: null },
      EXAMPLE,
      { declaration: null, table: 'c.parquet' }
    ]);
    expect(templatesOf(['visits.csv'], [])[0]).toBe(EXAMPLE);
    expect(templatesOf(['notes.txt'], [])).toEqual([EXAMPLE]);
  });

  it('are declarations if they have a budget and a schema', () => {
    expect(isDeclaration(DECLARATION)).toBe(true);
    expect(isDeclaration('budget = { epsilon = 1 }\n[schema]\nx = {}')).toBe(true);
    expect(isDeclaration('budget = "none"\n[schema]\nx = {}')).toBe(true);
    expect(isDeclaration('[project]\nname = "a"\n')).toBe(false);
  });
});

describe('a new analysis', () => {
  const files: Record<string, string> = { 'data/pyproject.toml': '[project]', 'data/hie.toml': DECLARATION };
  const save = vi.fn<(path: string, model: { content: { cells: { source: string }[]; metadata: object } }) => void>();
  const execute = vi.fn<(command: string, args: object) => void>();

  const contents = {
    get: (path: string): Promise<object> =>
      path === 'empty'
        ? Promise.resolve({ content: [] })
        : path === 'data'
          ? Promise.resolve({
              content: Object.keys(files).map(file => ({ type: 'file', name: file.slice('data/'.length), size: 10 }))
            })
          : path in files
            ? Promise.resolve({ content: files[path] })
            : Promise.reject(new Error('no such file')),
    newUntitled: ({ path }: { path: string }): Promise<object> => Promise.resolve({ path: `${path}/Untitled.ipynb` }),
    save: (path: string, model: never): Promise<void> => {
      save(path, model);
      return Promise.resolve();
    }
  };
  const spec = (name: string, language: string): object => ({ name, language, display_name: name });
  const app = (...specs: object[]): JupyterFrontEnd => {
    const kernelspecs = Object.fromEntries(specs.map((one, index) => [index, one]));
    return {
      serviceManager: { contents, kernelspecs: { ready: Promise.resolve(), specs: { default: 'ir', kernelspecs } } },
      commands: { execute }
    } as unknown as JupyterFrontEnd;
  };

  beforeEach(() => {
    save.mockClear();
    execute.mockClear();
    getItem.mockReset();
    getItem.mockImplementation(({ items }) => Promise.resolve({ button: { accept: true }, value: items[0] }));
  });

  it('asks which file is analysed, and is not made if that is cancelled', async () => {
    getItem.mockResolvedValue({ button: { accept: false }, value: null });
    await newAnalysis(app(), 'data');
    expect(getItem.mock.calls[0]?.[0].items).toHaveLength(2);
    expect(save).not.toHaveBeenCalled();
  });

  it('is the example, without a question, in a folder without files', async () => {
    await newAnalysis(app(), 'empty');
    expect(getItem).not.toHaveBeenCalled();
    expect(JSON.stringify(save.mock.calls[0]?.[1])).toContain('data.gapminder()');
  });

  it('is a notebook for a Python kernel in the folder, with the folder’s declaration', async () => {
    await newAnalysis(app(spec('ir', 'R'), spec('py', 'python')), 'data');
    const [path, { content } = { content: { cells: [], metadata: {} } }] = save.mock.calls[0] ?? [];
    expect(path).toBe('data/Untitled.ipynb');
    expect(content.cells.map(cell => cell.source).join('\n')).toContain('from_toml("hie.toml", rehearse=True)');
    expect(content.metadata).toEqual({ kernelspec: { name: 'py', display_name: 'py', language: 'python' } });
    expect(execute).toHaveBeenCalledWith('docmanager:open', {
      path: 'data/Untitled.ipynb',
      factory: 'Notebook',
      kernel: { name: 'py' }
    });
  });

  it('is one for the usual kernel where none is known', async () => {
    await newAnalysis(app(), 'data');
    expect(execute.mock.calls[0]?.[1]).toMatchObject({ kernel: { name: 'python3' } });
  });
});
