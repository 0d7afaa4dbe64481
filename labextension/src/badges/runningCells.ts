import type { Cell } from '@jupyterlab/cells';
import { type ISignal, Signal } from '@lumino/signaling';

type CellSignal = ISignal<unknown, { cell: Cell }>;

/**
 * The cells that are scheduled or running, in all notebooks of the page.
 *
 * Their documents must not be changed: without collaboration, jupyter-server-nbmodel shows the outputs of a cell only if
 * nothing in its document has changed since it was scheduled.
 */
export class RunningCells {
  private readonly _cells = new WeakSet<Cell>();
  private readonly _ended = new Signal<this, Cell>(this);

  constructor({ executionScheduled, executed }: { executionScheduled: CellSignal; executed: CellSignal }) {
    executionScheduled.connect((_, { cell }) => void this._cells.add(cell));
    executed.connect((_, { cell }) => {
      this._cells.delete(cell);
      this._ended.emit(cell);
    });
  }

  has(cell: Cell): boolean {
    return this._cells.has(cell);
  }

  /** Emitted when a cell has been run, or will not be run. */
  get ended(): ISignal<this, Cell> {
    return this._ended;
  }
}
