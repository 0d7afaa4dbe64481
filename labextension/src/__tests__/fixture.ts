import shared from '../../../tests/fixtures/snapshot.json';
import { type ISession, type ISnapshot, isSnapshot } from '../snapshot';

/** The snapshot that Python's tests read as well; a fresh copy, so that a test may change it. */
export function sharedSnapshot(changes: Partial<ISnapshot> = {}): ISnapshot {
  const copy: unknown = { ...structuredClone(shared), ...changes };
  if (!isSnapshot(copy)) {
    throw new Error('tests/fixtures/snapshot.json does not follow the contract');
  }
  return copy;
}

/** One of its sessions: 0 is real and has spent, 1 is a rehearsal. */
export function sharedSession(index: 0 | 1 = 0, changes: Partial<ISession> = {}): ISession {
  const session = sharedSnapshot().sessions[index];
  if (!session) {
    throw new Error(`tests/fixtures/snapshot.json has no session ${index}`);
  }
  return { ...session, ...changes };
}
