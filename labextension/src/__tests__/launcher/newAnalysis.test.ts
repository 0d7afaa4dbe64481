import type { JupyterFrontEnd } from '@jupyterlab/application';
import { beforeEach, describe, expect, it, vi } from 'vitest';

import { newAnalysis } from '../../launcher/newAnalysis';
import { chooseFiles, firstCells, isDeclaration } from '../../launcher/template';

const DECLARATION = '# of a table\nname = "a"\n[budget]\nepsilon = 1\n[schema.x]\ntype = "bounded"\n';

describe('the first cells', () => {
  const code = (declaration: string | null, table: string | null): string =>
    firstCells({ declaration, table })
      .filter(([type]) => type === 'code')
      .map(([, source]) => source)
      .join('\n');

  it('read the table beside the declaration', () => {
    expect(code('a.toml', 'a.csv')).toContain(
      'table = pd.read_csv("a.csv")\nsession = dpnb.Session.from_toml("a.toml", table)\nsession'
    );
    expect(code('a.toml', 'a.parquet')).toContain('pd.read_parquet("a.parquet")');
  });

  it('rehearse a declaration without a table', () => {
    expect(code('a.toml', null)).toContain('dpnb.Session.from_toml("a.toml", rehearse=True)');
    expect(code('a.toml', null)).not.toContain('pandas');
  });

  it('say what to do in a folder without a declaration', () => {
    const [[, words] = []] = firstCells({ declaration: null, table: null });
    expect(words).toContain('Put it in the folder of this notebook');
    expect(code(null, null)).toContain('from_toml("table.toml", rehearse=True)');
  });

  it('quote any name of a file', () => {
    expect(code('a"b\\.toml', null)).toContain('from_toml("a\\"b\\\\.toml", rehearse=True)');
  });
});

describe('the files of a folder', () => {
  it.each([
    [['a.toml', 'b.toml', 'b.csv'], ['a.toml', 'b.toml'], { declaration: 'b.toml', table: 'b.csv' }],
    [['a.toml', 'b.csv'], ['a.toml'], { declaration: 'a.toml', table: null }],
    [['b.csv'], [], { declaration: null, table: null }]
  ])('are chosen from %j', (names, declarations, chosen) => {
    expect(chooseFiles(names, declarations)).toEqual(chosen);
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
      path === 'data'
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
