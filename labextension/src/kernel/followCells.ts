import type { Cell } from '@jupyterlab/cells';
import type { INotebookTracker, Notebook } from '@jupyterlab/notebook';
import type { ISignal } from '@lumino/signaling';

import type { CellRuns } from './cellRuns';
import type { LedgerModel } from './ledgerModel';

type CellSignal = ISignal<unknown, { notebook: Notebook; cell: Cell }>;

/** The signals of all notebooks of the page. */
interface INotebookSignals {
  readonly executionScheduled: CellSignal;
  readonly executed: CellSignal;
}

/** Note which cells of all notebooks are scheduled and have been run, for their kernels. */
export function followCells(
  { executionScheduled, executed }: INotebookSignals,
  model: LedgerModel,
  tracker: INotebookTracker
): void {
  const runsOf = (notebook: Notebook): CellRuns | null => {
    const panel = tracker.find(({ content }) => content === notebook);
    return panel ? model.runs(panel.sessionContext) : null;
  };
  executionScheduled.connect((_, { notebook, cell }) => {
    if (cell.model.type === 'code') {
      runsOf(notebook)?.schedule(cell.model.id, cell.model.sharedModel.getSource());
    }
  });
  executed.connect((_, { notebook, cell }) => {
    if (!cell.isDisposed) {
      runsOf(notebook)?.end(cell.model.id);
    }
  });
}
