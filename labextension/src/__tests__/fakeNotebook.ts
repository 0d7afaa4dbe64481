import type { Cell } from '@jupyterlab/cells';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { Signal } from '@lumino/signaling';
import { Widget } from '@lumino/widgets';
import { vi } from 'vitest';

/** A cell with metadata and a node. */
export class FakeCell extends Widget {
  /** How often its metadata were changed. */
  changes = 0;
  readonly metadata: Record<string, unknown> = {};
  readonly model = {
    id: '',
    getMetadata: (key: string): unknown => structuredClone(this.metadata[key]),
    setMetadata: (key: string, value: unknown): void => {
      this.changes += 1;
      this.metadata[key] = structuredClone(value);
    },
    deleteMetadata: (key: string): void => {
      this.changes += 1;
      // eslint-disable-next-line @typescript-eslint/no-dynamic-delete -- a name given by the code under test
      delete this.metadata[key];
    }
  };

  constructor(id: string, metadata: Record<string, unknown> = {}) {
    super();
    this.model.id = id;
    this.node.tabIndex = -1;
    Object.assign(this.metadata, metadata);
  }

  get badge(): HTMLElement | null {
    return this.node.querySelector('.dpnb-badge');
  }
}

/** As much of a notebook as badges and the way to a cell need. */
export class FakeNotebook {
  isDisposed = false;
  revealed = Promise.resolve();
  readonly disposed = new Signal<this, void>(this);
  readonly context = { contentsModel: { writable: true } as { writable: boolean } | null };
  readonly sessionContext = {
    session: null as { kernel: { id: string } } | null,
    kernelChanged: new Signal<object, void>({})
  };
  readonly content: {
    widgets: FakeCell[];
    model: { readOnly: boolean; cells: { changed: Signal<object, void> } } | null;
    modelChanged: Signal<object, void>;
    activeCellIndex: number;
    mode: string;
    deselectAll: () => void;
    scrollToItem: ReturnType<typeof vi.fn<(index: number, align: string) => Promise<void>>>;
  };

  constructor(
    readonly id: string,
    kernelId: string | null,
    cells: FakeCell[]
  ) {
    this.content = {
      widgets: cells,
      model: { readOnly: false, cells: { changed: new Signal<object, void>({}) } },
      modelChanged: new Signal<object, void>({}),
      activeCellIndex: 0,
      mode: 'edit',
      deselectAll: (): void => undefined,
      scrollToItem: vi.fn<(index: number, align: string) => Promise<void>>().mockResolvedValue(undefined)
    };
    this.useKernel(kernelId);
  }

  useKernel(id: string | null): void {
    this.sessionContext.session = id === null ? null : { kernel: { id } };
    this.sessionContext.kernelChanged.emit();
  }

  /** Replace the cells, as inserting and deleting does. */
  useCells(cells: FakeCell[]): void {
    this.content.widgets = cells;
    this.content.model?.cells.changed.emit();
  }

  close(): void {
    this.isDisposed = true;
    this.disposed.emit();
  }

  get panel(): NotebookPanel {
    return this as unknown as NotebookPanel;
  }
}

/** The signals of all notebooks about the runs of cells. */
export class FakeRuns {
  readonly executionScheduled = new Signal<this, { cell: Cell }>(this);
  readonly executed = new Signal<this, { cell: Cell }>(this);

  schedule(cell: FakeCell): void {
    this.executionScheduled.emit({ cell: cell as unknown as Cell });
  }

  end(cell: FakeCell): void {
    this.executed.emit({ cell: cell as unknown as Cell });
  }
}

export class FakeTracker {
  readonly widgetAdded = new Signal<this, NotebookPanel>(this);
  currentWidget: NotebookPanel | null = null;
  private readonly _notebooks: FakeNotebook[] = [];

  constructor(...notebooks: FakeNotebook[]) {
    this._notebooks.push(...notebooks);
  }

  forEach(visit: (panel: NotebookPanel) => void): void {
    this._notebooks.filter(notebook => !notebook.isDisposed).forEach(notebook => visit(notebook.panel));
  }

  add(notebook: FakeNotebook): void {
    this._notebooks.push(notebook);
    this.widgetAdded.emit(notebook.panel);
  }

  get tracker(): INotebookTracker {
    return this as unknown as INotebookTracker;
  }
}
