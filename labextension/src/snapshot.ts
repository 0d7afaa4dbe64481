/**
 * The contract between the kernel and the browser.
 *
 * `dpnb/session/state.py` says what is in a session and `dpnb/notebook/panel.py` sends it; nothing here computes any privacy: the browser shows what it is told.
 * Fields that this version does not know are ignored, so that a newer kernel may say more.
 */

import { haveText, haveTextOrNull, isCount, isFields, isListOf, isNumber, isNumberOrNull, isShare } from './guards';

/** Of the contract that this browser understands. */
export const VERSION = 4;

/** Id of the explanation of whatever a session says under `paused`. */
export const PAUSED = 'paused';

/** Id of the explanation of what a session says under `individual`. */
export const LEFT_OUT = 'left-out';

/** One dial: a share between 0 and 1, and the words that say what it means. */
export interface IGauge {
  /** Stable name, unique within a session. */
  id: string;
  label: string;
  /** Between 0 and 1. */
  value: number;
  /** What the dial says in words, for example "83.0% left". */
  text: string;
  /** "remaining": a full dial is good.  "used": a full dial is bad.  Others are drawn without colour. */
  kind: string;
  /** A full sentence, for hovering and for screen readers. */
  description: string;
}

/** What one filter would have left, had it kept the session's promise through the same history. */
export interface IFilter {
  /** Stable name, unique within a session. */
  id: string;
  label: string;
  /** Whether this is the filter that decides; the others only compare. */
  enforced: boolean;
  /** Share of its budget that is left, between 0 and 1; 0 after it would have refused. */
  value: number;
  /** What is left in words, for example "83.3% left; 12 more like the last". */
  text: string;
  /** A full sentence, for hovering and for screen readers. */
  description: string;
}

/** What one odometer says about the loss so far. */
export interface IOdometer {
  /** Stable name, unique within a session. */
  id: string;
  label: string;
  /** How its figure may be used: "time-uniform" or "accumulator".  Others are shown by their name alone. */
  reading: string;
  /** The figure in words, for example "mu 0.2117". */
  text: string;
  /** A full sentence that says what the figure proves. */
  description: string;
}

/** One part of an interactive mechanism. */
export interface IPart {
  name: string;
  /** Relative to the part that has spent most: between 0 and 1. */
  value: number;
  /** What it has spent in words, for example "mu=0.2". */
  text: string;
}

/** Something that the analyst started once and goes on asking: a partition, a session within the session. */
export interface IMechanism {
  /** Stable name, unique within a session. */
  id: string;
  name: string;
  /** What it is in words, for example "partition". */
  kind: string;
  /** "open", "used up", "closed" or "elsewhere" (its hidden noise is in another kernel, or gone).  Others are shown by their name alone. */
  state: string;
  /** How it stands and what it cost, in words. */
  text: string;
  /** Full sentences, for hovering and for screen readers. */
  description: string;
  /** Empty where the mechanism has no parts. */
  parts: IPart[];
}

/** One of the things that can be said of a session in a few words. */
export interface IHeadline {
  /** "left", "spent", "loss" or "times"; a session may lack any of them. */
  id: string;
  text: string;
}

/** Something an analyst can do next in a session that has released nothing. */
export interface IStep {
  text: string;
  /** A line of Python. */
  code: string;
}

/** How a session stood at one moment. */
export interface ITimelinePoint {
  /** Number of the request after which it stood so; 0 is before the first. */
  id: number;
  /** Share of the budget that was spent, between 0 and 1. */
  spent: number;
  /** What each curve said, in the order of the curves; null where it said nothing. */
  bounds: (number | null)[];
  /** The request in words. */
  text: string;
}

/** One odometer of the timeline. */
export interface ICurve {
  /** Stable name, unique within a timeline. */
  id: string;
  label: string;
}

/** The budget, and the odometers, from request to request.  The kernel thins it: not every request has a point. */
export interface ITimeline {
  budget: {
    label: string;
    /** The promise in words. */
    text: string;
  };
  loss: {
    label: string;
    /** The promise's epsilon, on the curves' own scale; null when it has none to compare with. */
    limit: number | null;
    /** The promise in words. */
    text: string;
  };
  curves: ICurve[];
  /** Oldest first. */
  points: ITimelinePoint[];
}

/** One line of the ledger. */
export interface IRelease {
  id: number;
  question: string;
  /** In words, for example "mu 0.05". */
  cost: string;
  /** The cost as a number, to sort by. */
  mu: number;
  /** Share of the whole budget, in words. */
  share: string;
  /** How far off the answer may be, in words; null when there is no answer, or nothing simple to say. */
  error: string | null;
  /** ISO 8601, UTC. */
  time: string;
  status: string;
  /** Id of the notebook cell that asked; null when none did. */
  cell: string | null;
}

/** What one notebook cell cost. */
export interface ICellCost {
  /** Id of the cell. */
  cell: string;
  text: string;
  /** A full sentence, for hovering and for screen readers. */
  description: string;
}

/** A request that the filter refused: nothing was charged for it. */
export interface IRefusal {
  id: number;
  question: string;
  message: string;
  /** Id of the explanation. */
  explanation: string;
  /** ISO 8601, UTC. */
  time: string;
  /** Id of the notebook cell that asked; null when none did. */
  cell: string | null;
}

/** What something means in one sentence. */
export interface IExplanation {
  /** Stable name: links name it. */
  id: string;
  title: string;
  text: string;
}

/** The public state of one session. */
export interface ISession {
  id: string;
  name: string;
  unit: string;
  /** Why the answers must not be taken for real or for private; null when they are both. */
  notice: string | null;
  /** Id of the explanation of `notice`; null when there is none. */
  warning: string | null;
  promise: string;
  /** The first stands in for one that is asked for and not there. */
  headlines: IHeadline[];
  filter: string;
  gauges: IGauge[];
  filters: IFilter[];
  odometers: IOdometer[];
  /** Why the time-uniform odometers pause; null while they do not. */
  paused: string | null;
  /** Who takes part, where each privacy unit has a budget of its own; null where all are accounted for alike. */
  individual: string | null;
  /** Shown in this order, but for the open ones, which come first. */
  mechanisms: IMechanism[];
  spent: string;
  ledger: string;
  /** Empty as soon as something was released. */
  next: IStep[];
  timeline: ITimeline;
  /** How many requests the ledger holds; `releases` may hold only the newest of them. */
  count: number;
  /** Newest first. */
  releases: IRelease[];
  /** Cells that cost nothing are not among them. */
  cells: ICellCost[];
  /** Newest first. */
  refusals: IRefusal[];
}

/** Everything that one kernel process tells. */
export interface ISnapshot {
  v: typeof VERSION;
  /** Identifies the kernel process: another value means that the process was replaced. */
  boot: string;
  /** Grows with every message of one process. */
  seq: number;
  time: string;
  /** The most recently used first. */
  sessions: ISession[];
  /** Of refusals and warnings. */
  explanations: IExplanation[];
}

const isGauge = (value: unknown): value is IGauge =>
  isFields(value) && haveText(value, 'id', 'label', 'text', 'kind', 'description') && isShare(value.value);

const isFilter = (value: unknown): value is IFilter =>
  isFields(value) &&
  haveText(value, 'id', 'label', 'text', 'description') &&
  typeof value.enforced === 'boolean' &&
  isShare(value.value);

const isOdometer = (value: unknown): value is IOdometer =>
  isFields(value) && haveText(value, 'id', 'label', 'reading', 'text', 'description');

const isPart = (value: unknown): value is IPart =>
  isFields(value) && haveText(value, 'name', 'text') && isShare(value.value);

const isMechanism = (value: unknown): value is IMechanism =>
  isFields(value) &&
  haveText(value, 'id', 'name', 'kind', 'state', 'text', 'description') &&
  isListOf(value.parts, isPart);

const isHeadline = (value: unknown): value is IHeadline => isFields(value) && haveText(value, 'id', 'text');

const isStep = (value: unknown): value is IStep => isFields(value) && haveText(value, 'text', 'code');

const isCurve = (value: unknown): value is ICurve => isFields(value) && haveText(value, 'id', 'label');

const isPoint = (value: unknown): value is ITimelinePoint =>
  isFields(value) &&
  haveText(value, 'text') &&
  isCount(value.id) &&
  isShare(value.spent) &&
  isListOf(value.bounds, isNumberOrNull);

const isTimeline = (value: unknown): value is ITimeline =>
  isFields(value) &&
  isFields(value.budget) &&
  haveText(value.budget, 'label', 'text') &&
  isFields(value.loss) &&
  haveText(value.loss, 'label', 'text') &&
  isNumberOrNull(value.loss.limit) &&
  isListOf(value.curves, isCurve) &&
  isListOf(value.points, isPoint) &&
  areParallel(value.curves, value.points);

/** Whether every point has one bound for each curve: otherwise one curve would be drawn as another. */
const areParallel = (curves: ICurve[], points: ITimelinePoint[]): boolean =>
  points.every(point => point.bounds.length === curves.length);

/** Whether a value received from a kernel is one line of a ledger. */
export const isRelease = (value: unknown): value is IRelease =>
  isFields(value) &&
  haveText(value, 'question', 'cost', 'share', 'time', 'status') &&
  haveTextOrNull(value, 'error', 'cell') &&
  isCount(value.id) &&
  isNumber(value.mu);

const isCellCost = (value: unknown): value is ICellCost =>
  isFields(value) && haveText(value, 'cell', 'text', 'description');

const isRefusal = (value: unknown): value is IRefusal =>
  isFields(value) &&
  haveText(value, 'question', 'message', 'explanation', 'time') &&
  haveTextOrNull(value, 'cell') &&
  isCount(value.id);

const isExplanation = (value: unknown): value is IExplanation =>
  isFields(value) && haveText(value, 'id', 'title', 'text');

/** Whether a value received from a kernel is a session that can be shown. */
export const isSession = (value: unknown): value is ISession =>
  isFields(value) &&
  haveText(value, 'id', 'name', 'unit', 'promise', 'filter', 'spent', 'ledger') &&
  haveTextOrNull(value, 'notice', 'warning', 'paused', 'individual') &&
  isListOf(value.headlines, isHeadline) &&
  isListOf(value.gauges, isGauge) &&
  isListOf(value.filters, isFilter) &&
  isListOf(value.odometers, isOdometer) &&
  isListOf(value.mechanisms, isMechanism) &&
  isListOf(value.next, isStep) &&
  isTimeline(value.timeline) &&
  isCount(value.count) &&
  isListOf(value.releases, isRelease) &&
  isListOf(value.cells, isCellCost) &&
  isListOf(value.refusals, isRefusal);

/** Whether a value received from a kernel is a snapshot that can be shown. */
export const isSnapshot = (value: unknown): value is ISnapshot =>
  isFields(value) &&
  value.v === VERSION &&
  haveText(value, 'boot', 'time') &&
  isNumber(value.seq) &&
  isListOf(value.sessions, isSession) &&
  isListOf(value.explanations, isExplanation);

/**
 * The snapshot inside the data of a comm message.
 *
 * @returns null when the message is not ours, and "unreadable" when it is but does not follow the contract: a
 * half-understood budget is worse than none.
 */
export function readSnapshot(data: unknown): ISnapshot | 'unreadable' | null {
  if (!isFields(data) || data.dpnb === undefined) {
    return null;
  }
  return isSnapshot(data.dpnb) ? data.dpnb : 'unreadable';
}
