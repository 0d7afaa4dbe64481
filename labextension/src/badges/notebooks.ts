import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { type ISignal, Signal } from '@lumino/signaling';

/** Finds cells by id in the open notebooks, and scrolls to them. */
export class Notebooks {
  private readonly _changed = new Signal<this, void>(this);
  /** Ids of all cells, by kernel; cleared when anything changes. */
  private readonly _cells = new Map<string, Set<string>>();

  /**
   * @param _tracker null on a page that cannot show notebooks.
   * @param _activate Brings a widget of the main area to the front, given its id.
   */
  constructor(
    private readonly _tracker: INotebookTracker | null,
    private readonly _activate: (id: string) => void
  ) {
    _tracker?.forEach(panel => this._follow(panel));
    _tracker?.widgetAdded.connect((_, panel) => this._follow(panel), this);
  }

  /** Emitted when a cell may have been added or removed, or a notebook may have another kernel. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** Whether a cell is in an open notebook of this kernel. */
  hasCell(kernelId: string | null, cell: string): boolean {
    return kernelId !== null && this._cellsOf(kernelId).has(cell);
  }

  /** Show a cell and move the focus to it, also if its notebook is in the background; false if it is not open. */
  async goToCell(kernelId: string | null, cell: string): Promise<boolean> {
    const panel = this._panelsOf(kernelId).find(({ content }) => content.widgets.some(w => w.model.id === cell));
    if (!panel) {
      return false;
    }
    this._activate(panel.id);
    try {
      await panel.revealed;
    } catch {
      return false; // it could not be loaded, and shows the reason
    }
    if (panel.isDisposed) {
      return false; // closed in the meantime
    }
    const { content } = panel;
    const index = content.widgets.findIndex(widget => widget.model.id === cell);
    const widget = content.widgets[index];
    if (!widget) {
      return false; // deleted in the meantime
    }
    content.deselectAll();
    content.activeCellIndex = index;
    content.mode = 'command'; // not edit mode: a reader might type into the cell by accident
    try {
      await content.scrollToItem(index, 'center');
    } catch {
      // The notebook was closed while it scrolled.
    }
    widget.node.focus({ preventScroll: true });
    return true;
  }

  private _follow(panel: NotebookPanel): void {
    const { content, sessionContext } = panel;
    const onModel = (): void => {
      content.model?.cells.changed.connect(this._onChanged, this);
      this._onChanged();
    };
    content.modelChanged.connect(onModel, this);
    sessionContext.kernelChanged.connect(this._onChanged, this);
    panel.disposed.connect(this._onChanged, this);
    onModel();
  }

  private _onChanged(): void {
    this._cells.clear();
    this._changed.emit();
  }

  private _cellsOf(kernelId: string): Set<string> {
    const cells =
      this._cells.get(kernelId) ??
      new Set(this._panelsOf(kernelId).flatMap(panel => panel.content.widgets.map(widget => widget.model.id)));
    this._cells.set(kernelId, cells);
    return cells;
  }

  /** The current notebook first. */
  private _panelsOf(kernelId: string | null): NotebookPanel[] {
    const panels: NotebookPanel[] = [];
    this._tracker?.forEach(panel => panels.push(panel));
    const current = this._tracker?.currentWidget;
    return panels
      .filter(panel => !panel.isDisposed && panel.sessionContext.session?.kernel?.id === kernelId)
      .sort((a, b) => Number(b === current) - Number(a === current));
  }
}
