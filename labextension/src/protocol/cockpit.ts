// Generated from dpnb/_protocol/cockpit.py by .ci/protocol.py: edit that file.

import { isBoolean, isCount, isFields, isProportion, isText, listOf, orNull } from './guards';
import { type IGauge, isGauge } from './snapshot';

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

/** The state of a budget after a row of the ledger. */
export interface IMoment {
  /** Number of the row. */
  id: number;
  /** ISO 8601, UTC. */
  time: string;
  /** Fraction of the budget that was spent, rounded up; null without a budget. */
  spent: number | null;
  /** The row in words. */
  text: string;
}

/** An amount of budget in its components, as exact decimals; null where a component is zero. */
export interface IAmount {
  mu: string | null;
  discovery_delta: string | null;
  pure_epsilon: string | null;
}

/** The part of a budget that a project or an analyst has. */
export interface IBudgetPart {
  /** "project" or "analyst". */
  level: string;
  name: string;
  /** The project of an analyst. */
  project: string | null;
  /** In words; null where there is none. */
  ceiling: string | null;
  /** In words; null where there is none. */
  cap: string | null;
  /** The cap as it is now, or the ceiling or budget where there is no cap; to fill the fields of a dialog with. */
  limit: IAmount;
  /** In words. */
  spent: string;
  /** Fraction of the cap or ceiling that is spent, rounded up. */
  share: number;
  /** Fraction that is left, rounded down. */
  headroom: number;
  is_revoked: boolean;
  /** Whether its cap can be moved. */
  has_cap: boolean;
}

/** A query that an analyst wants to ask. */
export interface IAskedQuery {
  /** The plan in words. */
  words: string;
  /** What the analyst wants, in words. */
  target: string;
  /** In words. */
  cost: string;
  /** The expected error in words; empty where none is known. */
  error: string;
}

/** A request for budget. */
export interface IAskedBudget {
  /** Number of its row in the ledger. */
  id: number;
  analyst: string;
  time: string;
  /** The reason of the analyst. */
  why: string;
  queries: IAskedQuery[];
  /** What it costs, in words. */
  total: string;
  /** The same as numbers. */
  amount: IAmount;
  /** Identifies the content: a decision names it. */
  digest: string;
  /** "pending", "approved", "approved in part", "declined" or "lapsed". */
  state: string;
  /** The decision in words. */
  decision: string | null;
  /** The analyst's cap, and what an approval makes of it, in words; null if it is decided. */
  after: string | null;
}

/** The request that a table executes. */
export interface IExecutedRequest {
  /** What the act that ends it names. */
  number: number;
  analyst: string;
  /** The kind of call. */
  call: string;
  /** For how long it has been executed. */
  seconds: number;
}

/** A charge that is not answered again before a curator allows it. */
export interface IHeldCharge {
  /** Number of its row in the ledger. */
  row: number;
  analyst: string;
  time: string;
  words: string;
  cost: string;
  /** Why it waits. */
  why: string;
}

/** A table of the service. */
export interface ICockpitTable {
  name: string;
  /** In words. */
  privacy_unit: string;
  /** In words. */
  guarantee: string;
  /** Warning that the answers are not real or not private, or that there is no budget. */
  notice: string | null;
  /** "reserved" or "pooled"; null where every analyst may use the whole budget. */
  mode: string | null;
  /** Of the table. */
  version: string;
  /** Why it is frozen. */
  frozen: string | null;
  gauges: IGauge[];
  /** In words. */
  spent: string;
  /** In words. */
  spent_loss: string;
  /** Rows of its ledger. */
  n_rows: number;
  /** Oldest first; thinned. */
  moments: IMoment[];
  /** Each project is followed by its analysts. */
  parts: IBudgetPart[];
  /** Pending ones first. */
  requests: IAskedBudget[];
  /** What is executed now, if for some time. */
  running: IExecutedRequest | null;
  /** Requests that wait for their turn. */
  waiting: number;
  held: IHeldCharge[];
  /** Why the ledger cannot be read; then the other fields are empty. */
  fault: string | null;
}

/** A person with a valid token. */
export interface ITokenHolder {
  name: string;
  role: string;
  /** When the token was made. */
  created: string;
  expires: string | null;
  /** Whether the reader may replace it. */
  may_rotate: boolean;
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
  tables: ICockpitTable[];
  /** Empty for an auditor. */
  tokens: ITokenHolder[];
}

/** A row of the ledger, without its answer. */
export interface ILoggedRow {
  id: number;
  time: string;
  kind: string;
  status: string;
  words: string;
  cost: string;
  /** Who requested it. */
  actor: string | null;
  /** Whether it has plans, which are sent on request. */
  has_plan: boolean;
}

/** The whole plans of a row. */
export interface IRowPlans {
  /** Each as indented JSON; several for a request for budget. */
  plans: string[];
}

/** Rows of a ledger. */
export interface ILogPage {
  /** In order. */
  rows: ILoggedRow[];
  /** Whether there are further rows. */
  more: boolean;
}

/** A token, which is not shown again. */
export interface INewToken {
  name: string;
  token: string;
}

export const isLogin = (value: unknown): value is ILogin =>
  isFields(value) && isText(value.csrf) && isText(value.name) && isText(value.role) && isText(value.ends);

export const isMoment = (value: unknown): value is IMoment =>
  isFields(value) && isCount(value.id) && isText(value.time) && orNull(isProportion)(value.spent) && isText(value.text);

export const isAmount = (value: unknown): value is IAmount =>
  isFields(value) &&
  orNull(isText)(value.mu) &&
  orNull(isText)(value.discovery_delta) &&
  orNull(isText)(value.pure_epsilon);

export const isBudgetPart = (value: unknown): value is IBudgetPart =>
  isFields(value) &&
  isText(value.level) &&
  isText(value.name) &&
  orNull(isText)(value.project) &&
  orNull(isText)(value.ceiling) &&
  orNull(isText)(value.cap) &&
  isAmount(value.limit) &&
  isText(value.spent) &&
  isProportion(value.share) &&
  isProportion(value.headroom) &&
  isBoolean(value.is_revoked) &&
  isBoolean(value.has_cap);

export const isAskedQuery = (value: unknown): value is IAskedQuery =>
  isFields(value) && isText(value.words) && isText(value.target) && isText(value.cost) && isText(value.error);

export const isAskedBudget = (value: unknown): value is IAskedBudget =>
  isFields(value) &&
  isCount(value.id) &&
  isText(value.analyst) &&
  isText(value.time) &&
  isText(value.why) &&
  listOf(isAskedQuery)(value.queries) &&
  isText(value.total) &&
  isAmount(value.amount) &&
  isText(value.digest) &&
  isText(value.state) &&
  orNull(isText)(value.decision) &&
  orNull(isText)(value.after);

export const isExecutedRequest = (value: unknown): value is IExecutedRequest =>
  isFields(value) && isCount(value.number) && isText(value.analyst) && isText(value.call) && isCount(value.seconds);

export const isHeldCharge = (value: unknown): value is IHeldCharge =>
  isFields(value) &&
  isCount(value.row) &&
  isText(value.analyst) &&
  isText(value.time) &&
  isText(value.words) &&
  isText(value.cost) &&
  isText(value.why);

export const isCockpitTable = (value: unknown): value is ICockpitTable =>
  isFields(value) &&
  isText(value.name) &&
  isText(value.privacy_unit) &&
  isText(value.guarantee) &&
  orNull(isText)(value.notice) &&
  orNull(isText)(value.mode) &&
  isText(value.version) &&
  orNull(isText)(value.frozen) &&
  listOf(isGauge)(value.gauges) &&
  isText(value.spent) &&
  isText(value.spent_loss) &&
  isCount(value.n_rows) &&
  listOf(isMoment)(value.moments) &&
  listOf(isBudgetPart)(value.parts) &&
  listOf(isAskedBudget)(value.requests) &&
  orNull(isExecutedRequest)(value.running) &&
  isCount(value.waiting) &&
  listOf(isHeldCharge)(value.held) &&
  orNull(isText)(value.fault);

export const isTokenHolder = (value: unknown): value is ITokenHolder =>
  isFields(value) &&
  isText(value.name) &&
  isText(value.role) &&
  isText(value.created) &&
  orNull(isText)(value.expires) &&
  isBoolean(value.may_rotate);

export const isServiceState = (value: unknown): value is IServiceState =>
  isFields(value) &&
  isText(value.time) &&
  isText(value.name) &&
  isText(value.role) &&
  isBoolean(value.may_act) &&
  listOf(isCockpitTable)(value.tables) &&
  listOf(isTokenHolder)(value.tokens);

export const isLoggedRow = (value: unknown): value is ILoggedRow =>
  isFields(value) &&
  isCount(value.id) &&
  isText(value.time) &&
  isText(value.kind) &&
  isText(value.status) &&
  isText(value.words) &&
  isText(value.cost) &&
  orNull(isText)(value.actor) &&
  isBoolean(value.has_plan);

export const isRowPlans = (value: unknown): value is IRowPlans => isFields(value) && listOf(isText)(value.plans);

export const isLogPage = (value: unknown): value is ILogPage =>
  isFields(value) && listOf(isLoggedRow)(value.rows) && isBoolean(value.more);

export const isNewToken = (value: unknown): value is INewToken =>
  isFields(value) && isText(value.name) && isText(value.token);
