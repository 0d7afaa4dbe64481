import type { ILogChunk } from '../protocol/messages';
import type { ILogEntry, ISession, ISnapshot } from '../protocol/snapshot';

/** What is known of the log of one session. */
export interface ILog {
  /** Newest first. */
  readonly rows: readonly ILogEntry[];
  /** Whether these are all rows of the ledger. */
  readonly isComplete: boolean;
  /** Whether the kernel was asked for the others and has not told them yet. */
  readonly isPending: boolean;
}

interface IRequest {
  /** Resolves to every row, newest first; to null when they will never come. */
  readonly answer: Promise<readonly ILogEntry[] | null>;
  readonly settle: (rows: readonly ILogEntry[] | null) => void;
  /** The process that was asked; null when that process can no longer answer. */
  asked: string | null;
  /** Where the next part must begin. */
  start: number;
  /** How often an answer may still turn out to have holes: the server drops messages of a kernel that sends many. */
  tries: number;
}

/**
 * The logs of one kernel's sessions: the newest rows, which every snapshot holds, and the others once they were asked for.
 *
 * Every connection hears the answers to all; a part that nobody here asked for is left alone.
 */
export class LogStore {
  private readonly _logs = new Map<string, SessionLog>();
  private readonly _requests = new Map<string, IRequest>();
  private _processId: string | null = null;

  /** @param _ask Sends the request for a session's log to the kernel; false when it cannot be sent yet. */
  constructor(private readonly _ask: (session: string) => boolean) {}

  /** What is known of a session's log. */
  log(session: string): ILog {
    const log = this._logs.get(session);
    const isPending = this._requests.has(session);
    return log ? { rows: log.rows, isComplete: log.isComplete, isPending } : { rows: [], isComplete: false, isPending };
  }

  /** Every row of a session's log, newest first; asks the kernel only for what is not known. */
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

  /** Learn the newest rows of every session. */
  hear(snapshot: ISnapshot): void {
    this._processId = snapshot.process_id;
    const ids = new Set(snapshot.sessions.map(session => session.id));
    [...this._logs.keys()].filter(id => !ids.has(id)).forEach(id => this._logs.delete(id));
    for (const session of snapshot.sessions) {
      const log = this._logs.get(session.id) ?? new SessionLog();
      this._logs.set(session.id, log);
      log.hear(session);
    }
    this._requests.forEach((request, session) => {
      if (!this._resolveIfComplete(session, request)) {
        this._send(session, request);
      }
    });
  }

  /** Learn a part of a log; returns whether it was asked for. */
  hearChunk(chunk: ILogChunk): boolean {
    const request = this._requests.get(chunk.session);
    const log = this._logs.get(chunk.session);
    if (!request || !log || request.asked !== chunk.process_id) {
      return false;
    }
    if (chunk.start === 0) {
      request.start = 0; // an answer begins, whichever request it is for
    }
    if (chunk.start !== request.start) {
      return false; // the end of an answer to somebody else, or one with a hole
    }
    request.start += chunk.rows.length;
    log.add(chunk);
    if (!this._resolveIfComplete(chunk.session, request) && request.start >= chunk.total) {
      this._askAgain(chunk.session, request);
    }
    return true;
  }

  /** The connection was lost for a while, and perhaps an answer with it: ask again as soon as the kernel speaks. */
  reconnect(): void {
    this._requests.forEach(request => (request.asked = null));
  }

  /** The process is gone: its numbers are, but not what was asked, which its successor can answer from the ledger. */
  forget(): void {
    this._processId = null;
    this._logs.clear();
    this.reconnect();
  }

  /** Nobody will answer any more. */
  close(): void {
    this._requests.forEach(request => request.settle(null));
    this._requests.clear();
  }

  private _send(session: string, request: IRequest): void {
    if (request.asked !== this._processId && this._logs.has(session) && this._ask(session)) {
      request.asked = this._processId;
      request.start = Infinity;
    }
  }

  private _askAgain(session: string, request: IRequest): void {
    request.tries -= 1;
    if (request.tries > 0) {
      request.asked = null;
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
  return { answer, settle: rows => settle(rows), asked: null, start: Infinity, tries: 3 };
}

/** Every row that was ever told of one ledger. */
class SessionLog {
  private readonly _rowsById = new Map<number, ILogEntry>();
  private _count = 0;
  private _rows: readonly ILogEntry[] | null = null;

  /** Newest first; the same array for as long as nothing changes. */
  get rows(): readonly ILogEntry[] {
    this._rows ??= [...this._rowsById.values()].sort((a, b) => b.id - a.id);
    return this._rows;
  }

  get isComplete(): boolean {
    return this._rowsById.size >= this._count;
  }

  hear({ n_requests: count, log: releases }: ISession): void {
    // A session in memory that is recreated starts a ledger of its own under the same name.
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
