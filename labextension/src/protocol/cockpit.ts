// Generated from dpnb/_protocol/cockpit.py by .ci/protocol.py: edit that file.

import { isBoolean, isCount, isFields, isText, listOf, orNull } from './guards';
import { type ITableState, isTableState } from './curation';

/** The answer to a login. */
export interface ILogin {
  /** What the page sends with every further request, beside the cookie. */
  csrf: string;
  /** Name of the person. */
  name: string;
  /** "owner", "curator" or "auditor". */
  role: string;
  /** When the login ends; ISO 8601, UTC. */
  ends: string;
}

/** A person with a valid token. */
export interface ITokenHolder {
  name: string;
  role: string;
  /** When the token was made. */
  created: string;
  expires: string | null;
  /** Whether the reader may replace and revoke it. */
  may_rotate: boolean;
  /** Whether the reader may let it expire at another time. */
  may_extend: boolean;
}

/** Everything that the page shows but the log. */
export interface IServiceState {
  /** ISO 8601, UTC. */
  time: string;
  /** Of the reader. */
  name: string;
  /** Of the reader. */
  role: string;
  /** Whether the reader may do more than read. */
  may_act: boolean;
  tables: ITableState[];
  /** Empty for an auditor. */
  tokens: ITokenHolder[];
}

/** A version of a table. */
export interface IVersionState {
  name: string;
  /** Time of the first row of the ledger with it; null if there is none yet. */
  since: string | null;
  /** Charged ones. */
  requests: number;
  /** Time of the last of them. */
  last: string | null;
  /** What is other than in the version before, or was changed later, in words. */
  changes: string[];
}

/** The last copy of a ledger that `python -m dpnb backup` has made. */
export interface IBackupState {
  time: string;
  /** Number of the last row that was copied. */
  rows: number;
  /** Whether that row is in the ledger; otherwise the copy is of another ledger, or of a later state. */
  is_known: boolean;
}

/** An audit of a ledger that somebody started on the page. */
export interface IAuditState {
  actor: string;
  begun: string;
  /** null while it runs. */
  ended: string | null;
  /** Whether it found no problem. */
  is_fine: boolean;
  /** As `python -m dpnb audit` prints it. */
  text: string;
}

/** A figure for Prometheus, to be read by a person. */
export interface IReadFigure {
  words: string;
  value: string;
}

/** What is kept of a table and its ledger, and figures of its service. */
export interface IRecordsPage {
  /** Of the ledger. */
  rows: number;
  /** Newest first. */
  versions: IVersionState[];
  backup: IBackupState | null;
  audit: IAuditState | null;
  /** Empty for an auditor. */
  figures: IReadFigure[];
}

/** What there is after an act about an analyst of a table. */
export interface IPeopleChanged {
  table: ITableState;
  /** A new token of the person who came, which is not shown again; null if none was made. */
  token: string | null;
}

/** A token, which is not shown again. */
export interface INewToken {
  name: string;
  /** Empty if none was made. */
  token: string;
}

export const isLogin = (value: unknown): value is ILogin =>
  isFields(value) && isText(value.csrf) && isText(value.name) && isText(value.role) && isText(value.ends);

export const isTokenHolder = (value: unknown): value is ITokenHolder =>
  isFields(value) &&
  isText(value.name) &&
  isText(value.role) &&
  isText(value.created) &&
  orNull(isText)(value.expires) &&
  isBoolean(value.may_rotate) &&
  isBoolean(value.may_extend);

export const isServiceState = (value: unknown): value is IServiceState =>
  isFields(value) &&
  isText(value.time) &&
  isText(value.name) &&
  isText(value.role) &&
  isBoolean(value.may_act) &&
  listOf(isTableState)(value.tables) &&
  listOf(isTokenHolder)(value.tokens);

export const isVersionState = (value: unknown): value is IVersionState =>
  isFields(value) &&
  isText(value.name) &&
  orNull(isText)(value.since) &&
  isCount(value.requests) &&
  orNull(isText)(value.last) &&
  listOf(isText)(value.changes);

export const isBackupState = (value: unknown): value is IBackupState =>
  isFields(value) && isText(value.time) && isCount(value.rows) && isBoolean(value.is_known);

export const isAuditState = (value: unknown): value is IAuditState =>
  isFields(value) &&
  isText(value.actor) &&
  isText(value.begun) &&
  orNull(isText)(value.ended) &&
  isBoolean(value.is_fine) &&
  isText(value.text);

export const isReadFigure = (value: unknown): value is IReadFigure =>
  isFields(value) && isText(value.words) && isText(value.value);

export const isRecordsPage = (value: unknown): value is IRecordsPage =>
  isFields(value) &&
  isCount(value.rows) &&
  listOf(isVersionState)(value.versions) &&
  orNull(isBackupState)(value.backup) &&
  orNull(isAuditState)(value.audit) &&
  listOf(isReadFigure)(value.figures);

export const isPeopleChanged = (value: unknown): value is IPeopleChanged =>
  isFields(value) && isTableState(value.table) && orNull(isText)(value.token);

export const isNewToken = (value: unknown): value is INewToken =>
  isFields(value) && isText(value.name) && isText(value.token);
