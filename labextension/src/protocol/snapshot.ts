// Generated from dpnb/_browser/snapshot.py by .ci/protocol.py: edit that file.

import { isBoolean, isCount, isFields, isNumber, isProportion, isText, listOf, oneOf, orNull } from './guards';

export const OUT_OF_DATE = 'out-of-date';

export const VERSION = 12;

export const ODOMETERS_PAUSED = 'odometers-paused';

export const EXCLUDED_UNITS = 'excluded-units';

/** The connection of a session to the service that has its table. */
export interface IConnectionSnapshot {
  /** Where the table is, in words, for example "on the curator's server, https://dp.example.org". */
  where: string;
  /** Whether the figures of the session include everything that the service has charged, as far as is known. */
  is_current: boolean;
  /** The state in words: "up to date", or since when and why it is not, and what happens next. */
  text: string;
}

/** The part of a timeline that shows the budget. */
export interface IBudgetAxis {
  label: string;
  /** More about it in words; may be empty. */
  text: string;
}

/** The part of a timeline that shows the odometers. */
export interface IOdometerAxis {
  label: string;
  /** The value at which the scale ends, unless a curve exceeds it; null where the curves alone determine the scale. */
  end: number | null;
  /** What the scale and the curves mean. */
  text: string;
}

/** One odometer of a timeline. */
export interface ICurve {
  /** Stable name, unique within a timeline. */
  id: string;
  label: string;
}

/** The state of a session at one moment. */
export interface ITimelinePoint {
  /** Number of the last request before this moment; 0 is before the first request. */
  id: number;
  /** Fraction of the budget that was spent; null without a budget, for all points. */
  spent: number | null;
  /** What each curve reported, in the order of the curves; null where it reported nothing. */
  bounds: (number | null)[];
  /** The request in words. */
  text: string;
}

/** The budget and the odometers from request to request; thinned by the kernel, so not every request has a point. */
export interface ITimelineChart {
  budget: IBudgetAxis;
  odometers: IOdometerAxis;
  curves: ICurve[];
  /** Oldest first; each has one bound for every curve. */
  points: ITimelinePoint[];
}

/** A fraction between 0 and 1, with its meaning in words. */
export interface IGauge {
  /** Stable name, unique within a session. */
  id: string;
  label: string;
  /**
   * "remaining": a dial of the budget that is left, whose colour warns when little is left. "loss": the reading of an
   * odometer on a neutral scale of its own. "no-budget": there is no budget, which is a warning. Others are drawn as a
   * neutral dial.
   */
  kind: string;
  /** null where there is no scale: then only the text is shown. */
  value: number | null;
  /** The value in words, for example "83.0% left". */
  text: string;
  /** The end of the scale in words, for example "2.616 when the budget is spent"; null where it is 100%. */
  end: string | null;
  /** A sentence that is always shown, which states what the value means; null where it needs none. */
  note: string | null;
  /** A full sentence, for hovering and for screen readers. */
  description: string;
}

/** The budget that would remain under one filter after the same history. */
export interface IFilterReading {
  /** Stable name, unique within a session. */
  id: string;
  label: string;
  /** Whether this filter is enforced; the others are shown for comparison. */
  enforced: boolean;
  /** Fraction of its budget that remains; 0 after it would have refused. */
  value: number;
  /** What remains in words, for example "83.3% left; 12 more like the last". */
  text: string;
  /** A full sentence, for hovering and for screen readers. */
  description: string;
}

/** What one odometer reports about the loss so far. */
export interface IOdometerReading {
  /** Stable name, unique within a session. */
  id: string;
  label: string;
  /** How its bound may be used: "time-uniform" or "accumulator". Others are shown by name only. */
  kind: string;
  /** The bound in words, for example "mu 0.2117". */
  text: string;
  /** A full sentence that states what the bound proves. */
  description: string;
}

/** One part of an interactive mechanism. */
export interface IPart {
  name: string;
  /** What it has spent, relative to the part with the largest loss. */
  value: number;
  /** What it has spent in words, for example "4.0% (mu 0.2)". */
  text: string;
}

/** An interactive mechanism: a partition, a sub-session and so on. */
export interface IMechanism {
  /** Stable name, unique within a session. */
  id: string;
  name: string;
  /** The kind in words, for example "partition". */
  kind: string;
  /**
   * "open", "exhausted", "closed" or "unavailable" (its hidden noise is in another kernel, or gone). Others are shown
   * by name only.
   */
  state: string;
  /** Its state and its cost, in words. */
  text: string;
  /** Full sentences, for hovering and for screen readers. */
  description: string;
  /** Empty where the mechanism has no parts. */
  parts: IPart[];
}

/** A session's state in a few words, for the status bar. */
export interface IHeadline {
  /** "remaining", "spent", "odometer" or "max_repetitions"; a session may lack any of them. */
  id: string;
  text: string;
}

/** A suggested next step for a session that has released nothing. */
export interface INextStep {
  text: string;
  /** A line of Python. */
  code: string;
}

/** One request of the ledger. */
export interface ILogEntry {
  id: number;
  /** Exact, in words. */
  query: string;
  /** As a reader says it: without code as far as there are words for it. */
  title: string;
  /** In words, for example "mu 0.05". */
  cost: string;
  /** The cost as a number, to sort by. */
  mu: number;
  /** The cost as a fraction of the whole budget, in words; null without a budget. */
  cost_fraction: string | null;
  /** The released answer in words: a number with its interval, or how many groups there are; null without an answer. */
  estimate: string | null;
  /** The number; null, as are the ends of its interval, unless the answer is one number, and if they are not finite. */
  value: number | null;
  low: number | null;
  high: number | null;
  /** Half-width of the interval in words; null without an answer, or if there is no single half-width. */
  error: string | null;
  /** ISO 8601, UTC. */
  time: string;
  status: string;
  /** Id of the notebook cell that made the request; null when none did. */
  cell_id: string | null;
}

/** What one notebook cell cost. */
export interface ICellBadge {
  cell_id: string;
  text: string;
  /** A full sentence, for hovering and for screen readers. */
  description: string;
}

/** A request that was refused; nothing was charged for it. */
export interface IRefusal {
  id: number;
  /** In words. */
  query: string;
  message: string;
  /** Id of the explanation. */
  explanation: string;
  /** ISO 8601, UTC. */
  time: string;
  /** Id of the notebook cell that made the request; null when none did. */
  cell_id: string | null;
}

/** A request to the curator of a service for a larger cap. */
export interface IBudgetRequestEntry {
  id: number;
  /** The queries in words, with target and expected error. */
  queries: string[];
  /** What they cost together. */
  cost: string;
  /** The analyst's reason. */
  why: string;
  status: 'pending' | 'lapsed' | 'declined' | 'approved-in-part' | 'approved';
  /** What was decided, in words: what was granted, until when, and the curator's reason; null while it is pending. */
  decision: string | null;
  /** ISO 8601, UTC. */
  time: string;
  /** Who requests it, where analysts share a budget; null otherwise. */
  analyst: string | null;
}

/** The explanation of a refusal or a warning. */
export interface IExplanationText {
  /** Stable name, used in links. */
  id: string;
  title: string;
  text: string;
}

/** The public state of one session. */
export interface ISessionSnapshot {
  id: string;
  name: string;
  /** In words. */
  privacy_unit: string;
  /** Name of the engine that holds the table's rows, for example "DuckDB"; "memory" for none. */
  engine: string;
  /** Warning that the answers are not real or not private, or that there is no budget; null otherwise. */
  notice: string | null;
  /** Id of the explanation of `notice`; null when there is no notice. */
  notice_explanation: string | null;
  /** null if the table is in the kernel. */
  connection: IConnectionSnapshot | null;
  /** Exact, in words. */
  guarantee: string;
  promise: string;
  /** The first replaces a selected headline that is absent. */
  headlines: IHeadline[];
  /** Id of the filter that is enforced; "none" without a budget. */
  filter: string;
  gauges: IGauge[];
  /** The enforced one; after `RequestComparison`, the others too. Empty without a budget. */
  filters: IFilterReading[];
  /** The session's own; after `RequestComparison`, the others too, as in the timeline. */
  odometers: IOdometerReading[];
  /** Why the time-uniform odometers have stopped; null while they go on. */
  odometers_paused: string | null;
  /** Whether the others are included, or there are none to be computed. */
  is_compared: boolean;
  /** Which units take part, under individual accounting; null under worst-case accounting. */
  participation: string | null;
  /** In display order, except that open mechanisms come first. */
  mechanisms: IMechanism[];
  /** The share of the budget that is spent, in words, for example "6.7% spent"; without a budget, the loss. */
  spent: string;
  /**
   * The loss and the budget in the filter's measure, for example "mu 0.1158 of 0.4483"; "no budget" without one; empty
   * where unknown.
   */
  spent_loss: string;
  /** Name of the ledger's file. */
  ledger: string;
  /** Empty as soon as something was released. */
  next_steps: INextStep[];
  timeline: ITimelineChart;
  /** Number of requests in the ledger; `log` may contain only the newest of them. */
  n_requests: number;
  /** Newest first. */
  log: ILogEntry[];
  /** Cells that cost nothing are left out. */
  cell_costs: ICellBadge[];
  /** Newest first. */
  refusals: IRefusal[];
  /** Newest first. */
  budget_requests: IBudgetRequestEntry[];
}

/** The state of all sessions of one kernel process. */
export interface ISnapshot {
  /** Version of the protocol; the browser displays no other. */
  version: 12;
  /** Opaque id; a different value means that the kernel process was replaced. */
  process_id: string;
  /** Increases with every message of one process. */
  seq: number;
  /** ISO 8601, UTC. */
  time: string;
  /** The most recently used first. */
  sessions: ISessionSnapshot[];
  /** Of refusals and warnings. */
  explanations: IExplanationText[];
}

export const isConnectionSnapshot = (value: unknown): value is IConnectionSnapshot =>
  isFields(value) && isText(value.where) && isBoolean(value.is_current) && isText(value.text);

export const isBudgetAxis = (value: unknown): value is IBudgetAxis =>
  isFields(value) && isText(value.label) && isText(value.text);

export const isOdometerAxis = (value: unknown): value is IOdometerAxis =>
  isFields(value) && isText(value.label) && orNull(isNumber)(value.end) && isText(value.text);

export const isCurve = (value: unknown): value is ICurve => isFields(value) && isText(value.id) && isText(value.label);

export const isTimelinePoint = (value: unknown): value is ITimelinePoint =>
  isFields(value) &&
  isCount(value.id) &&
  orNull(isProportion)(value.spent) &&
  listOf(orNull(isNumber))(value.bounds) &&
  isText(value.text);

export const isTimelineChart = (value: unknown): value is ITimelineChart =>
  isFields(value) &&
  isBudgetAxis(value.budget) &&
  isOdometerAxis(value.odometers) &&
  listOf(isCurve)(value.curves) &&
  listOf(isTimelinePoint)(value.points);

export const isGauge = (value: unknown): value is IGauge =>
  isFields(value) &&
  isText(value.id) &&
  isText(value.label) &&
  isText(value.kind) &&
  orNull(isProportion)(value.value) &&
  isText(value.text) &&
  orNull(isText)(value.end) &&
  orNull(isText)(value.note) &&
  isText(value.description);

export const isFilterReading = (value: unknown): value is IFilterReading =>
  isFields(value) &&
  isText(value.id) &&
  isText(value.label) &&
  isBoolean(value.enforced) &&
  isProportion(value.value) &&
  isText(value.text) &&
  isText(value.description);

export const isOdometerReading = (value: unknown): value is IOdometerReading =>
  isFields(value) &&
  isText(value.id) &&
  isText(value.label) &&
  isText(value.kind) &&
  isText(value.text) &&
  isText(value.description);

export const isPart = (value: unknown): value is IPart =>
  isFields(value) && isText(value.name) && isProportion(value.value) && isText(value.text);

export const isMechanism = (value: unknown): value is IMechanism =>
  isFields(value) &&
  isText(value.id) &&
  isText(value.name) &&
  isText(value.kind) &&
  isText(value.state) &&
  isText(value.text) &&
  isText(value.description) &&
  listOf(isPart)(value.parts);

export const isHeadline = (value: unknown): value is IHeadline =>
  isFields(value) && isText(value.id) && isText(value.text);

export const isNextStep = (value: unknown): value is INextStep =>
  isFields(value) && isText(value.text) && isText(value.code);

export const isLogEntry = (value: unknown): value is ILogEntry =>
  isFields(value) &&
  isCount(value.id) &&
  isText(value.query) &&
  isText(value.title) &&
  isText(value.cost) &&
  isNumber(value.mu) &&
  orNull(isText)(value.cost_fraction) &&
  orNull(isText)(value.estimate) &&
  orNull(isNumber)(value.value) &&
  orNull(isNumber)(value.low) &&
  orNull(isNumber)(value.high) &&
  orNull(isText)(value.error) &&
  isText(value.time) &&
  isText(value.status) &&
  orNull(isText)(value.cell_id);

export const isCellBadge = (value: unknown): value is ICellBadge =>
  isFields(value) && isText(value.cell_id) && isText(value.text) && isText(value.description);

export const isRefusal = (value: unknown): value is IRefusal =>
  isFields(value) &&
  isCount(value.id) &&
  isText(value.query) &&
  isText(value.message) &&
  isText(value.explanation) &&
  isText(value.time) &&
  orNull(isText)(value.cell_id);

export const isBudgetRequestEntry = (value: unknown): value is IBudgetRequestEntry =>
  isFields(value) &&
  isCount(value.id) &&
  listOf(isText)(value.queries) &&
  isText(value.cost) &&
  isText(value.why) &&
  oneOf('pending', 'lapsed', 'declined', 'approved-in-part', 'approved')(value.status) &&
  orNull(isText)(value.decision) &&
  isText(value.time) &&
  orNull(isText)(value.analyst);

export const isExplanationText = (value: unknown): value is IExplanationText =>
  isFields(value) && isText(value.id) && isText(value.title) && isText(value.text);

export const isSessionSnapshot = (value: unknown): value is ISessionSnapshot =>
  isFields(value) &&
  isText(value.id) &&
  isText(value.name) &&
  isText(value.privacy_unit) &&
  isText(value.engine) &&
  orNull(isText)(value.notice) &&
  orNull(isText)(value.notice_explanation) &&
  orNull(isConnectionSnapshot)(value.connection) &&
  isText(value.guarantee) &&
  isText(value.promise) &&
  listOf(isHeadline)(value.headlines) &&
  isText(value.filter) &&
  listOf(isGauge)(value.gauges) &&
  listOf(isFilterReading)(value.filters) &&
  listOf(isOdometerReading)(value.odometers) &&
  orNull(isText)(value.odometers_paused) &&
  isBoolean(value.is_compared) &&
  orNull(isText)(value.participation) &&
  listOf(isMechanism)(value.mechanisms) &&
  isText(value.spent) &&
  isText(value.spent_loss) &&
  isText(value.ledger) &&
  listOf(isNextStep)(value.next_steps) &&
  isTimelineChart(value.timeline) &&
  isCount(value.n_requests) &&
  listOf(isLogEntry)(value.log) &&
  listOf(isCellBadge)(value.cell_costs) &&
  listOf(isRefusal)(value.refusals) &&
  listOf(isBudgetRequestEntry)(value.budget_requests);

export const isSnapshot = (value: unknown): value is ISnapshot =>
  isFields(value) &&
  oneOf(12)(value.version) &&
  isText(value.process_id) &&
  isCount(value.seq) &&
  isText(value.time) &&
  listOf(isSessionSnapshot)(value.sessions) &&
  listOf(isExplanationText)(value.explanations);
