import type { ILogChunk } from '../protocol/messages';
import type { ILogEntry, ISessionSnapshot, ISnapshot } from '../protocol/snapshot';

/** The known part of the log of one session. */
export interface ILog {
  /** Newest first. */
  readonly rows: readonly ILogEntry[];
  /** Whether these are all rows of the ledger. */
  readonly isComplete: boolean;
  /** Whether the missing rows were requested and have not arrived yet. */
  readonly isPending: boolean;
}

interface IRequest {
  /** Resolves to every row, newest first; to null if the kernel cannot send them any more. */
  readonly answer: Promise<readonly ILogEntry[] | null>;
  readonly settle: (rows: readonly ILogEntry[] | null) => void;
  /** Id of the process that received the request; null if it must be sent again. */
  sentTo: string | null;
  /** Index of the first row of the next part. */
  start: number;
  /** Number of attempts left: the server drops messages of a kernel that sends many, so a reply may be incomplete. */
  attempts: number;
}

/**
 * The logs of one kernel's sessions: the newest rows, from every snapshot, and the others after a request.
 *
 * Every connection receives the replies to all requests; parts that were not requested here are ignored.
 */
export class LogStore {
  private readonly _logs = new Map<string, SessionLog>();
  private readonly _requests = new Map<string, IRequest>();
  private _processId: string | null = null;

  /** @param _sendRequest Requests a session's log from the kernel; false if that is not possible yet. */
  constructor(private readonly _sendRequest: (session: string) => boolean) {}

  /** The known part of a session's log. */
  log(session: string): ILog {
    const log = this._logs.get(session);
    const isPending = this._requests.has(session);
    return log ? { rows: log.rows, isComplete: log.isComplete, isPending } : { rows: [], isComplete: false, isPending };
  }

  /** Every row of a session's log, newest first; missing rows are requested from the kernel. */
  request(session: string): Promise<readonly ILogEntry[] | null> {
    const log = this._logs.get(session);
    if (log?.isComplete) {
      return Promise.resolve(log.rows);
    }
    const request = this._requests.get(session) ?? makeRequest();
    this._requests.set(session, request);
    this._send(session, request);
    return request.answer;
  }

  /** Add the newest rows of every session. */
  update(snapshot: ISnapshot): void {
    this._processId = snapshot.process_id;
    const ids = new Set(snapshot.sessions.map(session => session.id));
    [...this._logs.keys()].filter(id => !ids.has(id)).forEach(id => this._logs.delete(id));
    for (const session of snapshot.sessions) {
      const log = this._logs.get(session.id) ?? new SessionLog();
      this._logs.set(session.id, log);
      log.update(session);
    }
    this._requests.forEach((request, session) => {
      if (!this._resolveIfComplete(session, request)) {
        this._send(session, request);
      }
    });
  }

  /** Add a part of a log; returns whether it was requested. */
  addChunk(chunk: ILogChunk): boolean {
    const request = this._requests.get(chunk.session);
    const log = this._logs.get(chunk.session);
    if (!request || !log || request.sentTo !== chunk.process_id) {
      return false;
    }
    if (chunk.start === 0) {
      request.start = 0; // the first part of a reply
    }
    if (chunk.start !== request.start) {
      return false; // the end of the reply to another request, or a part is missing
    }
    request.start += chunk.rows.length;
    log.add(chunk);
    if (!this._resolveIfComplete(chunk.session, request) && request.start >= chunk.total) {
      this._retry(chunk.session, request);
    }
    return true;
  }

  /** Send all requests again with the next snapshot: the connection was lost, and perhaps replies with it. */
  reconnect(): void {
    this._requests.forEach(request => (request.sentTo = null));
  }

  /** Forget the rows of a process that has ended; its successor can reply to the requests from the ledger. */
  forget(): void {
    this._processId = null;
    this._logs.clear();
    this.reconnect();
  }

  /** Resolve all requests with null: no reply can arrive any more. */
  close(): void {
    this._requests.forEach(request => request.settle(null));
    this._requests.clear();
  }

  private _send(session: string, request: IRequest): void {
    if (request.sentTo !== this._processId && this._logs.has(session) && this._sendRequest(session)) {
      request.sentTo = this._processId;
      request.start = Infinity;
    }
  }

  private _retry(session: string, request: IRequest): void {
    request.attempts -= 1;
    if (request.attempts > 0) {
      request.sentTo = null;
      this._send(session, request);
    } else {
      this._requests.delete(session);
      request.settle(null);
    }
  }

  private _resolveIfComplete(session: string, request: IRequest): boolean {
    const log = this._logs.get(session);
    if (!log?.isComplete) {
      return false;
    }
    this._requests.delete(session);
    request.settle(log.rows);
    return true;
  }
}

function makeRequest(): IRequest {
  let settle: IRequest['settle'] = () => undefined;
  const answer = new Promise<readonly ILogEntry[] | null>(resolve => (settle = resolve));
  return { answer, settle: rows => settle(rows), sentTo: null, start: Infinity, attempts: 3 };
}

/** All received rows of one ledger. */
class SessionLog {
  private readonly _rowsById = new Map<number, ILogEntry>();
  private _count = 0;
  private _rows: readonly ILogEntry[] | null = null;

  /** Newest first; the same array until something changes. */
  get rows(): readonly ILogEntry[] {
    this._rows ??= [...this._rowsById.values()].sort((a, b) => b.id - a.id);
    return this._rows;
  }

  get isComplete(): boolean {
    return this._rowsById.size >= this._count;
  }

  update({ n_requests: count, log: releases }: ISessionSnapshot): void {
    // A session in memory that is created again has a new ledger under the same name.
    if (releases.length >= count || releases.some(row => this._isOther(row))) {
      this._rows = this._rowsById.size === releases.length ? this._rows : null;
      const ids = new Set(releases.map(row => row.id));
      [...this._rowsById.keys()].filter(id => !ids.has(id)).forEach(id => this._rowsById.delete(id));
    }
    this._count = count;
    this._addRows(releases);
  }

  add(chunk: ILogChunk): void {
    this._count = Math.max(this._count, chunk.total);
    this._addRows(chunk.rows);
  }

  private _isOther(row: ILogEntry): boolean {
    const known = this._rowsById.get(row.id);
    return known !== undefined && known.query !== row.query;
  }

  private _addRows(rows: readonly ILogEntry[]): void {
    for (const row of rows) {
      const known = this._rowsById.get(row.id);
      if (!known || JSON.stringify(known) !== JSON.stringify(row)) {
        this._rowsById.set(row.id, row);
        this._rows = null;
      }
    }
  }
}
