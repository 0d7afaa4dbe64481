import type { PanelRequest } from '../protocol/messages';

/** Started runs that are kept until the kernel has loaded dpnb. */
const MAX_UNSENT = 200;

interface IScheduled {
  readonly cellId: string;
  readonly code: string;
  isAnnounced: boolean;
}

/**
 * Tells the kernel which cell a request runs, where the server sends the requests and omits the cell's id.
 *
 * Under jupyter-server-nbmodel, the page hands the code to the server, whose request contains nothing else.  The page
 * sees that request in the kernel's broadcasts, as one of another client with the code of a cell that it has scheduled.
 * From then on, cells are also announced when they are scheduled, which the kernel as a rule reads before it runs them.
 * On a busy server, the request may overtake the announcement; the kernel then learns the cell from the broadcast.
 *
 * Nothing is sent for cells that the page runs itself.
 */
export class CellRuns {
  private _scheduled: IScheduled[] = [];
  /** The ids of cells and requests that the kernel was not told about, since it had not loaded dpnb. */
  private _unsent: { cellId: string; requestId: string }[] = [];
  private _isServerSide = false;

  /**
   * @param _clientId Id of this connection to the kernel.
   * @param _send Sends a message to dpnb in the kernel; false if it is not loaded.
   */
  constructor(
    private readonly _clientId: string,
    private readonly _send: (request: PanelRequest) => boolean
  ) {}

  /** A cell was scheduled to be run. */
  schedule(cellId: string, code: string): void {
    this._remove(cellId);
    this._scheduled.push({ cellId, code, isAnnounced: false });
    this._announce();
  }

  /** A cell has been run, or will not be run. */
  end(cellId: string): void {
    if (this._remove(cellId)?.isAnnounced) {
      this._send({ method: 'cell_ended', cell_id: cellId });
    }
  }

  /**
   * The kernel has begun to answer a request to run code.
   *
   * @param sender Id of the client that sent the request.
   */
  onRequest(requestId: string, sender: string, code: string): void {
    if (sender === this._clientId) {
      return; // this page has sent it, with the id of the cell
    }
    const run = this._scheduled.find(scheduled => scheduled.code === code);
    if (!run) {
      return; // of another page or program
    }
    this._isServerSide = true;
    this._remove(run.cellId);
    this._unsent = [...this._unsent, { cellId: run.cellId, requestId }].slice(-MAX_UNSENT);
    this.flush();
  }

  /** Send what the kernel does not know yet: dpnb has been loaded. */
  flush(): void {
    this._unsent = this._unsent.filter(
      ({ cellId, requestId }) => !this._send({ method: 'cell_started', cell_id: cellId, request_id: requestId })
    );
    this._announce();
  }

  /** Forget everything about a process that has ended. */
  clear(): void {
    this._scheduled = [];
    this._unsent = [];
  }

  private _announce(): void {
    if (!this._isServerSide) {
      return;
    }
    for (const run of this._scheduled.filter(({ isAnnounced }) => !isAnnounced)) {
      run.isAnnounced = this._send({ method: 'cell_scheduled', cell_id: run.cellId, code: run.code });
    }
  }

  private _remove(cellId: string): IScheduled | undefined {
    const found = this._scheduled.find(scheduled => scheduled.cellId === cellId);
    this._scheduled = this._scheduled.filter(scheduled => scheduled !== found);
    return found;
  }
}
