import { type IServiceState, isServiceState } from '../../protocol/curation';
import type { IAmount, IAuditRow, IPartState, IRequestState, ITableState } from '../../protocol/curation';
import { sharedSession } from '../fixture';

export const NONE = { mu: null, discovery_delta: null, pure_epsilon: null };

export const amount = (words: string, changes: Partial<IAmount> = {}): IAmount => ({ words, ...NONE, ...changes });

export const part = (name: string, changes: Partial<IPartState> = {}): IPartState => ({
  level: 'analyst',
  name,
  project: null,
  ceiling: null,
  cap: amount('mu 0.1'),
  limit: amount('mu 0.1', { mu: '0.1' }),
  spent: amount('mu 0.05'),
  share: 0.25,
  headroom: 0.75,
  is_revoked: false,
  has_cap: true,
  of: amount('mu 0.2', { mu: '0.2' }),
  cap_share: 0.25,
  spent_share: 0.0625,
  is_removed: false,
  is_unused: false,
  free: null,
  ...changes
});

export const asked = (number: number, changes: Partial<IRequestState> = {}): IRequestState => ({
  number,
  analyst: 'ana',
  time: '2026-11-21T01:20:00.000Z',
  why: 'a paper',
  queries: [{ words: 'count of rows', target: 'mu=0.2', cost: amount('mu 0.1733'), error: '± 18 rows at 95% (noise)' }],
  total: amount('mu 0.1733'),
  largest: amount('mu 0.1732', { mu: '0.17320508075688773' }),
  digest: 'd'.repeat(64),
  status: 'pending',
  spent: amount('mu 0.05'),
  cap: amount('mu 0.1'),
  cap_after: amount('mu 0.2'),
  decided_by: null,
  decided: null,
  until: null,
  granted: null,
  reason: '',
  ...changes
});

export const row = (id: number, changes: Partial<IAuditRow> = {}): IAuditRow => ({
  id,
  time: '2026-11-21T01:20:00.000Z',
  kind: 'release',
  node: '',
  status: 'released',
  words: `question ${id}`,
  cost: 'mu 0.1',
  hash: '',
  actor: 'ana',
  has_plan: true,
  ...changes
});

export const table = (changes: Partial<ITableState> = {}): ITableState => ({
  name: 'visits',
  privacy_unit: 'one row',
  guarantee: '1-GDP, for one row',
  notice: null,
  mode: 'pooled',
  version: '2026',
  frozen: null,
  gauges: sharedSession().gauges.slice(0, 1),
  headroom: 0.788,
  spent: '21.2% spent',
  spent_loss: 'mu 0.2062 of 0.4483',
  free: null,
  rows: 2,
  head: '',
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
    tokens: [
      {
        name: 'ana',
        role: 'analyst',
        created: '2026-11-21T01:20:00Z',
        expires: null,
        may_rotate: true,
        may_extend: true
      }
    ],
    ...changes
  };
  if (!isServiceState(made)) {
    throw new Error('the state does not follow the contract');
  }
  return made;
}
