// Generated from dpnb/_browser/curation.py by .ci/protocol.py: edit that file.

import { isBoolean, isCount, isFields, isProportion, isText, listOf, orNull } from './guards';
import { type IGauge, isGauge } from './snapshot';

/** An amount of budget; all its fields are rounded up where it is a cost, and down where it is a limit. */
export interface IAmount {
  /** To a few digits. */
  words: string;
  /** An exact decimal; null where the component is zero. */
  mu: string | null;
  discovery_delta: string | null;
  pure_epsilon: string | null;
}

/** The state of a budget after a row of the ledger. */
export interface IMoment {
  /** Number of the row. */
  id: number;
  time: string;
  /** Fraction of the budget that was spent, rounded up; null without a budget. */
  spent: number | null;
  /** The row in words. */
  text: string;
}

/** The part of the budget of a project or an analyst. */
export interface IPartState {
  /** "project" or "analyst". */
  level: string;
  name: string;
  /** The project of an analyst. */
  project: string | null;
  ceiling: IAmount | null;
  cap: IAmount | null;
  /** The cap as it is now, or the ceiling or budget where there is no cap. */
  limit: IAmount;
  spent: IAmount;
  /** Fraction of the ceiling that is spent, in pooled mode of the cap or the budget; rounded up. */
  share: number;
  /** Fraction of the same that is left within all limits of the part itself; rounded down. */
  headroom: number;
  /** Whether it can no longer be charged. */
  is_revoked: boolean;
  /** Whether its cap can be moved. */
  has_cap: boolean;
  /** What a cap is a share of: the ceiling, in pooled mode the cap of the project or the budget. */
  of: IAmount;
  /** The share that the cap is of each component, rounded down; null also for others. */
  cap_share: number | null;
  /** The share that is spent, of the largest component; rounded up. */
  spent_share: number;
  /** Whether its analyst can no longer open the table. */
  is_removed: boolean;
  /** Whether it can be handed over: in reserved mode, an analyst's own, nothing charged. */
  is_unused: boolean;
  /** Of a reserved project: the fraction that is left for further ceilings. */
  free: number | null;
}

/** A query of a request for budget. */
export interface IRequestedQueryState {
  /** The plan in words. */
  words: string;
  /** What the analyst wants, in words. */
  target: string;
  cost: IAmount;
  /** The expected error in words; empty where none is known. */
  error: string;
}

/** A request for budget, and what was decided. */
export interface IRequestState {
  /** Of its row in the ledger. */
  number: number;
  analyst: string;
  time: string;
  /** The reason of the analyst. */
  why: string;
  queries: IRequestedQueryState[];
  /** The sum of the costs. */
  total: IAmount;
  /** The largest decimals that an approval can grant: the sum, rounded down. */
  largest: IAmount;
  /** Identifies the content: a decision names it. */
  digest: string;
  /** "pending", "approved", "approved in part", "declined" or "lapsed". */
  status: string;
  /** Of the analyst's part; null once it is decided, like the next two. */
  spent: IAmount | null;
  /** Of the analyst now; null also for none. */
  cap: IAmount | null;
  /** After an approval of all that was requested. */
  cap_after: IAmount | null;
  decided_by: string | null;
  decided: string | null;
  /** When the approval lapses. */
  until: string | null;
  /** What the approval added to the cap. */
  granted: IAmount | null;
  /** The curator's. */
  reason: string;
}

/** The request that a table executes. */
export interface IRunningState {
  /** Since the service started; the act that ends it names it. */
  number: number;
  analyst: string;
  /** The kind of call. */
  call: string;
  /** For how long it has been executed. */
  seconds: number;
}

/** A charge that is not answered again before a curator allows it. */
export interface IHeldState {
  /** Number of its row in the ledger, which the act names. */
  row: number;
  analyst: string;
  time: string;
  /** What was requested. */
  words: string;
  cost: string;
  /** Why it waits. */
  why: string;
}

/** A table of the service. */
export interface ITableState {
  name: string;
  /** In words. */
  privacy_unit: string;
  /** In words. */
  guarantee: string;
  /** Warning that the answers are not real or not private, or that there is no budget. */
  notice: string | null;
  /** Of the table. */
  version: string;
  /** "reserved" or "pooled"; null where every analyst may use the whole budget. */
  mode: string | null;
  /** Why it is frozen. */
  frozen: string | null;
  gauges: IGauge[];
  /** Fraction of the budget that is left, rounded down; null without a budget. */
  headroom: number | null;
  /** In words. */
  spent: string;
  /** In words. */
  spent_loss: string;
  /** In reserved mode, the fraction that is left for further ceilings; rounded down. */
  free: number | null;
  /** Number of rows of the ledger. */
  rows: number;
  /** Hash of the last row. */
  head: string;
  /** Oldest first; thinned. */
  moments: IMoment[];
  /** Each project is followed by its analysts. */
  parts: IPartState[];
  /** Pending, oldest first; then at most 100 decided, newest first. */
  requests: IRequestState[];
  running: IRunningState | null;
  /** Number of requests that wait for their turn. */
  waiting: number;
  /** Oldest first, at most 100. */
  held: IHeldState[];
  /** Why the ledger cannot be read; then the fields with defaults are left at these. */
  fault: string | null;
}

/** A row of the ledger, without its answer. */
export interface IAuditRow {
  /** Number of the row. */
  id: number;
  time: string;
  kind: string;
  node: string;
  /** "released", "reserved" or "failed"; of a request for budget as in `RequestState`; else "recorded". */
  status: string;
  /** What was requested. */
  words: string;
  /** In words. */
  cost: string;
  /** Chained to the row before. */
  hash: string;
  /** Who requested it; null in a local session. */
  actor: string | null;
  /** Whether it has plans, which are sent on request. */
  has_plan: boolean;
}

/** Rows of a ledger. */
export interface IAuditPage {
  /** In order. */
  rows: IAuditRow[];
  /** Whether there are further rows. */
  more: boolean;
}

/** The whole plans of a row. */
export interface IPlanPage {
  /** Number of the row. */
  row: number;
  /** Each with its arguments, as indented JSON; several for a request for budget. */
  plans: string[];
}

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

export const isAmount = (value: unknown): value is IAmount =>
  isFields(value) &&
  isText(value.words) &&
  orNull(isText)(value.mu) &&
  orNull(isText)(value.discovery_delta) &&
  orNull(isText)(value.pure_epsilon);

export const isMoment = (value: unknown): value is IMoment =>
  isFields(value) && isCount(value.id) && isText(value.time) && orNull(isProportion)(value.spent) && isText(value.text);

export const isPartState = (value: unknown): value is IPartState =>
  isFields(value) &&
  isText(value.level) &&
  isText(value.name) &&
  orNull(isText)(value.project) &&
  orNull(isAmount)(value.ceiling) &&
  orNull(isAmount)(value.cap) &&
  isAmount(value.limit) &&
  isAmount(value.spent) &&
  isProportion(value.share) &&
  isProportion(value.headroom) &&
  isBoolean(value.is_revoked) &&
  isBoolean(value.has_cap) &&
  isAmount(value.of) &&
  orNull(isProportion)(value.cap_share) &&
  isProportion(value.spent_share) &&
  isBoolean(value.is_removed) &&
  isBoolean(value.is_unused) &&
  orNull(isProportion)(value.free);

export const isRequestedQueryState = (value: unknown): value is IRequestedQueryState =>
  isFields(value) && isText(value.words) && isText(value.target) && isAmount(value.cost) && isText(value.error);

export const isRequestState = (value: unknown): value is IRequestState =>
  isFields(value) &&
  isCount(value.number) &&
  isText(value.analyst) &&
  isText(value.time) &&
  isText(value.why) &&
  listOf(isRequestedQueryState)(value.queries) &&
  isAmount(value.total) &&
  isAmount(value.largest) &&
  isText(value.digest) &&
  isText(value.status) &&
  orNull(isAmount)(value.spent) &&
  orNull(isAmount)(value.cap) &&
  orNull(isAmount)(value.cap_after) &&
  orNull(isText)(value.decided_by) &&
  orNull(isText)(value.decided) &&
  orNull(isText)(value.until) &&
  orNull(isAmount)(value.granted) &&
  isText(value.reason);

export const isRunningState = (value: unknown): value is IRunningState =>
  isFields(value) && isCount(value.number) && isText(value.analyst) && isText(value.call) && isCount(value.seconds);

export const isHeldState = (value: unknown): value is IHeldState =>
  isFields(value) &&
  isCount(value.row) &&
  isText(value.analyst) &&
  isText(value.time) &&
  isText(value.words) &&
  isText(value.cost) &&
  isText(value.why);

export const isTableState = (value: unknown): value is ITableState =>
  isFields(value) &&
  isText(value.name) &&
  isText(value.privacy_unit) &&
  isText(value.guarantee) &&
  orNull(isText)(value.notice) &&
  isText(value.version) &&
  orNull(isText)(value.mode) &&
  orNull(isText)(value.frozen) &&
  listOf(isGauge)(value.gauges) &&
  orNull(isProportion)(value.headroom) &&
  isText(value.spent) &&
  isText(value.spent_loss) &&
  orNull(isProportion)(value.free) &&
  isCount(value.rows) &&
  isText(value.head) &&
  listOf(isMoment)(value.moments) &&
  listOf(isPartState)(value.parts) &&
  listOf(isRequestState)(value.requests) &&
  orNull(isRunningState)(value.running) &&
  isCount(value.waiting) &&
  listOf(isHeldState)(value.held) &&
  orNull(isText)(value.fault);

export const isAuditRow = (value: unknown): value is IAuditRow =>
  isFields(value) &&
  isCount(value.id) &&
  isText(value.time) &&
  isText(value.kind) &&
  isText(value.node) &&
  isText(value.status) &&
  isText(value.words) &&
  isText(value.cost) &&
  isText(value.hash) &&
  orNull(isText)(value.actor) &&
  isBoolean(value.has_plan);

export const isAuditPage = (value: unknown): value is IAuditPage =>
  isFields(value) && listOf(isAuditRow)(value.rows) && isBoolean(value.more);

export const isPlanPage = (value: unknown): value is IPlanPage =>
  isFields(value) && isCount(value.row) && listOf(isText)(value.plans);

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
