/**
 * The contract between the kernel and the browser.
 *
 * `dpnb/notebook/snapshot.py` writes it and nothing here computes any privacy: the browser shows what it is told.
 * Fields that this version does not know are ignored, so that a newer kernel may say more.
 */

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

/** One line of the ledger. */
export interface IRelease {
  id: number;
  question: string;
  cost: string;
  /** ISO 8601, UTC. */
  time: string;
  status: string;
}

/** The public state of one session. */
export interface ISession {
  id: string;
  name: string;
  unit: string;
  /** Why the answers must not be taken for real or for private; null when they are both. */
  notice: string | null;
  promise: string;
  headline: string;
  filter: string;
  gauges: IGauge[];
  filters: IFilter[];
  odometers: IOdometer[];
  spent: string;
  ledger: string;
  /** Newest first. */
  releases: IRelease[];
}

/** Everything that one kernel process tells. */
export interface ISnapshot {
  v: 1;
  /** Identifies the kernel process: another value means that the process was replaced. */
  boot: string;
  /** Grows with every message of one process. */
  seq: number;
  time: string;
  /** The most recently used first. */
  sessions: ISession[];
}

type Fields = Record<string, unknown>;

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const haveText = (fields: Fields, ...names: string[]): boolean => names.every(name => typeof fields[name] === 'string');

const isShare = (value: unknown): boolean => typeof value === 'number' && value >= 0 && value <= 1;

const isListOf = (value: unknown, isItem: (item: unknown) => boolean): boolean =>
  Array.isArray(value) && value.every(isItem);

const isGauge = (value: unknown): value is IGauge =>
  isFields(value) && haveText(value, 'id', 'label', 'text', 'kind', 'description') && isShare(value.value);

const isFilter = (value: unknown): value is IFilter =>
  isFields(value) &&
  haveText(value, 'id', 'label', 'text', 'description') &&
  typeof value.enforced === 'boolean' &&
  isShare(value.value);

const isOdometer = (value: unknown): value is IOdometer =>
  isFields(value) && haveText(value, 'id', 'label', 'reading', 'text', 'description');

const isRelease = (value: unknown): value is IRelease =>
  isFields(value) && haveText(value, 'question', 'cost', 'time', 'status') && typeof value.id === 'number';

/** Whether a value received from a kernel is a session that can be shown. */
export const isSession = (value: unknown): value is ISession =>
  isFields(value) &&
  haveText(value, 'id', 'name', 'unit', 'promise', 'headline', 'filter', 'spent', 'ledger') &&
  (value.notice === null || typeof value.notice === 'string') &&
  isListOf(value.gauges, isGauge) &&
  isListOf(value.filters, isFilter) &&
  isListOf(value.odometers, isOdometer) &&
  isListOf(value.releases, isRelease);

/** Whether a value received from a kernel is a snapshot that can be shown. */
export const isSnapshot = (value: unknown): value is ISnapshot =>
  isFields(value) &&
  value.v === 1 &&
  haveText(value, 'boot', 'time') &&
  typeof value.seq === 'number' &&
  isListOf(value.sessions, isSession);

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
