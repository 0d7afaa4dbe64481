// Generated from dpnb/_protocol/messages.py by .ci/protocol.py: edit that file.

import { isCount, isFields, isText, listOf, oneOf } from './guards';
import { type ILogEntry, isLogEntry } from './snapshot';

export const TARGET = 'dpnb.snapshot';

/** A part of a session's log. */
export interface ILogChunk {
  /** Version of the snapshot. */
  version: 12;
  /** As in the snapshot. */
  process_id: string;
  /** Id of the session. */
  session: string;
  /** Number of rows of the log before these. */
  start: number;
  /** Number of rows of the log. */
  total: number;
  /** Oldest first. */
  rows: ILogEntry[];
}

/** The browser requests a broadcast of the snapshot. */
export interface IRequestSnapshot {
  method: 'request_snapshot';
}

/** The browser requests the whole log of a session. */
export interface IRequestWholeLog {
  method: 'request_log';
  /** Id of the session. */
  session: string;
}

/** A page shows all filters and odometers of a session, which the next snapshots then contain; or no longer does. */
export interface IRequestComparison {
  method: 'compare';
  /** Id of the session. */
  session: string;
  /** Whether they are shown. */
  is_shown: boolean;
}

/** A page announces that it shows the kernel, which then follows what other kernels charge; or no longer does. */
export interface IFollowLedgers {
  method: 'follow_ledgers';
  /** Id of the page. */
  page: string;
  /** Whether the page is visible. */
  is_visible: boolean;
}

/** A page announces that the server will run a cell, in a request that does not contain the id of the cell. */
export interface ICellScheduled {
  method: 'cell_scheduled';
  cell_id: string;
  code: string;
}

/** A page has seen the request that runs a cell. */
export interface ICellStarted {
  method: 'cell_started';
  cell_id: string;
  /** Id of the request's message. */
  request_id: string;
}

/** A cell that was announced has ended, or will not be run. */
export interface ICellEnded {
  method: 'cell_ended';
  cell_id: string;
}

/** A page requests that the sessions that are out of date try to reach their service now. */
export interface IReconnect {
  method: 'reconnect';
}

/** A picker requests a new state. */
export interface IRefresh {
  method: 'refresh';
}

/** A picker requests a release. */
export interface IReleaseOption {
  method: 'release';
  /**
   * The target of an option; any other target is refused in the picker's state, as is one that costs more now than was
   * displayed.
   */
  target: Record<string, unknown>;
  /** Returned as `completed_request` in the state that shows the outcome. */
  id: string;
  /** Whether the reader has confirmed a large cost. */
  confirmed: boolean;
}

/** A picker requests the release of the count that its expected errors depend on; fields as in `ReleaseOption`. */
export interface IReleaseCount {
  method: 'release_count';
  target: Record<string, unknown>;
  id: string;
  confirmed: boolean;
}

/** A picker requests budget from the curator. */
export interface IAskCurator {
  method: 'ask_curator';
  /** The target of an option of `Ask`; any other is refused in the picker's state. */
  target: Record<string, unknown>;
  /** The reason. */
  why: string;
  /** As in `ReleaseOption`. */
  id: string;
}

export const isLogChunk = (value: unknown): value is ILogChunk =>
  isFields(value) &&
  oneOf(12)(value.version) &&
  isText(value.process_id) &&
  isText(value.session) &&
  isCount(value.start) &&
  isCount(value.total) &&
  listOf(isLogEntry)(value.rows);

export type PanelRequest =
  | IRequestSnapshot
  | IRequestWholeLog
  | IRequestComparison
  | IFollowLedgers
  | ICellScheduled
  | ICellStarted
  | ICellEnded
  | IReconnect;

export type PickerRequest = IRefresh | IReleaseOption | IReleaseCount | IAskCurator | IReconnect;
