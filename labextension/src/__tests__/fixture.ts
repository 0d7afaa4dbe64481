import shared from '../../../tests/fixtures/snapshot.json';
import noBudget from '../../../tests/fixtures/no-budget.json';
import { isSessionSnapshot, isSnapshot } from '../protocol/read';
import type { IConnectionSnapshot } from '../protocol/snapshot';
import type { ILogEntry, ISessionSnapshot, ISnapshot } from '../protocol/snapshot';

/** The snapshot that Python's tests read as well; a fresh copy, so that a test may change it. */
export function sharedSnapshot(changes: Partial<ISnapshot> = {}): ISnapshot {
  const copy: unknown = { ...structuredClone(shared), ...changes };
  if (!isSnapshot(copy)) {
    throw new Error('tests/fixtures/snapshot.json does not follow the contract');
  }
  return copy;
}

/** One of its sessions: 0 is real and has spent, 1 is a rehearsal. */
export function sharedSession(index: 0 | 1 = 0, changes: Partial<ISessionSnapshot> = {}): ISessionSnapshot {
  const session = sharedSnapshot().sessions[index];
  if (!session) {
    throw new Error(`tests/fixtures/snapshot.json has no session ${index}`);
  }
  return { ...session, ...changes };
}

/** The state of a connection to a service. */
export const CURRENT: IConnectionSnapshot = {
  where: 'on the curator’s server, https://dp.example.org',
  is_current: true,
  text: 'up to date'
};
export const LOST: IConnectionSnapshot = {
  ...CURRENT,
  is_current: false,
  text: 'out of date since 14:02: the service cannot be reached; reconnecting'
};

/** A session without a budget that has released two counts, as Python's tests read it. */
export function sessionWithoutBudget(): ISessionSnapshot {
  const copy: unknown = structuredClone(noBudget);
  if (!isSessionSnapshot(copy)) {
    throw new Error('tests/fixtures/no-budget.json does not follow the contract');
  }
  return copy;
}

/** A release with the given number; its question, cost and cell are made from it. */
export function release(id: number, changes: Partial<ILogEntry> = {}): ILogEntry {
  return {
    id,
    query: `question ${id}`,
    title: changes.query ?? `question ${id}`,
    cost: `mu ${id / 100}`,
    mu: id / 100,
    cost_fraction: `${id}%`,
    estimate: null,
    value: null,
    low: null,
    high: null,
    error: null,
    time: '2026-11-21T01:20:00Z',
    status: 'released',
    cell_id: null,
    ...changes
  };
}

/** Releases with the numbers from `first` up to `last`, newest first. */
export function releases(first: number, last: number): ILogEntry[] {
  return Array.from({ length: last - first + 1 }, (_, index) => release(last - index));
}
