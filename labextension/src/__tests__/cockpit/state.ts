import {
  type IAskedBudget,
  type IBudgetPart,
  type ICockpitTable,
  type ILoggedRow,
  type IServiceState,
  isServiceState
} from '../../protocol/cockpit';
import { sharedSession } from '../fixture';

export const NONE = { mu: null, discovery_delta: null, pure_epsilon: null };

export const part = (name: string, changes: Partial<IBudgetPart> = {}): IBudgetPart => ({
  level: 'analyst',
  name,
  project: null,
  ceiling: null,
  cap: 'mu 0.1',
  limit: { ...NONE, mu: '0.1' },
  spent: 'mu 0.05',
  share: 0.25,
  headroom: 0.75,
  is_revoked: false,
  has_cap: true,
  ...changes
});

export const asked = (id: number, changes: Partial<IAskedBudget> = {}): IAskedBudget => ({
  id,
  analyst: 'ana',
  time: '2026-11-21T01:20:00.000Z',
  why: 'a paper',
  queries: [{ words: 'count of rows', target: 'mu=0.2', cost: 'mu 0.1733', error: '± 18 rows at 95% (noise)' }],
  total: 'mu 0.1733',
  amount: { ...NONE, mu: '0.17320508075688773' },
  digest: 'd'.repeat(64),
  state: 'pending',
  decision: null,
  after: 'Spent so far: mu 0.05. Cap now: mu 0.1; after an approval: mu 0.2.',
  ...changes
});

export const row = (id: number, changes: Partial<ILoggedRow> = {}): ILoggedRow => ({
  id,
  time: '2026-11-21T01:20:00.000Z',
  kind: 'release',
  status: 'released',
  words: `question ${id}`,
  cost: 'mu 0.1',
  actor: 'ana',
  has_plan: true,
  ...changes
});

export const table = (changes: Partial<ICockpitTable> = {}): ICockpitTable => ({
  name: 'visits',
  privacy_unit: 'one row',
  guarantee: '1-GDP, for one row',
  notice: null,
  mode: 'pooled',
  version: '2026',
  frozen: null,
  gauges: sharedSession().gauges.slice(0, 1),
  spent: '21.2% spent',
  spent_loss: 'mu 0.2062 of 0.4483',
  n_rows: 2,
  moments: [],
  parts: [part('ana')],
  requests: [],
  running: null,
  waiting: 0,
  held: [],
  fault: null,
  ...changes
});

export function state(changes: Partial<IServiceState> = {}): IServiceState {
  const made: unknown = {
    time: '2026-11-21T01:20:00Z',
    name: 'eve',
    role: 'curator',
    may_act: true,
    tables: [table()],
    tokens: [{ name: 'ana', role: 'analyst', created: '2026-11-21T01:20:00Z', expires: null, may_rotate: true }],
    ...changes
  };
  if (!isServiceState(made)) {
    throw new Error('the state does not follow the contract');
  }
  return made;
}
