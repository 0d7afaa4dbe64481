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

const isGauge = (value: unknown): value is IGauge =>
  isFields(value) &&
  haveText(value, 'id', 'label', 'text', 'kind', 'description') &&
  typeof value.value === 'number' &&
  value.value >= 0 &&
  value.value <= 1;

const isRelease = (value: unknown): value is IRelease =>
  isFields(value) && haveText(value, 'question', 'cost', 'time', 'status') && typeof value.id === 'number';

/** Whether a value received from a kernel is a session that can be shown. */
export const isSession = (value: unknown): value is ISession =>
  isFields(value) &&
  haveText(value, 'id', 'name', 'unit', 'promise', 'headline', 'filter', 'spent', 'ledger') &&
  (value.notice === null || typeof value.notice === 'string') &&
  Array.isArray(value.gauges) &&
  value.gauges.every(isGauge) &&
  Array.isArray(value.releases) &&
  value.releases.every(isRelease);

/** Whether a value received from a kernel is a snapshot that can be shown. */
export const isSnapshot = (value: unknown): value is ISnapshot =>
  isFields(value) &&
  value.v === 1 &&
  haveText(value, 'boot', 'time') &&
  typeof value.seq === 'number' &&
  Array.isArray(value.sessions) &&
  value.sessions.every(isSession);

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
