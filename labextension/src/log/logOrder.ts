import type { ILogEntry } from '../protocol/snapshot';
import { trans } from '../translation';

type Compare = (a: ILogEntry, b: ILogEntry) => number;

const newestFirst: Compare = (a, b) => b.id - a.id;

const oldestFirst: Compare = (a, b) => a.id - b.id;
const mostExpensiveFirst: Compare = (a, b) => b.mu - a.mu;

const words = new Intl.Collator(undefined, { numeric: true, sensitivity: 'base' });
const byQuery: Compare = (a, b) => words.compare(a.title, b.title);
const byStatus: Compare = (a, b) => words.compare(a.status, b.status);

export type Order = 'newest' | 'oldest' | 'mostExpensive' | 'query' | 'status';

/** The orders of a log; equal rows are newest first. */
const ORDERS: Record<Order, Compare> = {
  newest: newestFirst,
  oldest: oldestFirst,
  mostExpensive: mostExpensiveFirst,
  query: byQuery,
  status: byStatus
};

/** The names of the orders. */
export const orderNames = (): Record<Order, string> => ({
  newest: trans.__('Newest first'),
  oldest: trans.__('Oldest first'),
  mostExpensive: trans.__('Most expensive first'),
  query: trans.__('Query A–Z'),
  status: trans.__('Status')
});

export const isOrder = (value: string): value is Order => value in ORDERS;

/** A sorted copy. */
export function sorted(rows: readonly ILogEntry[], order: Order): ILogEntry[] {
  const compare = ORDERS[order];
  return [...rows].sort((a, b) => compare(a, b) || newestFirst(a, b));
}

/**
 * Whether a release matches a filter.
 *
 * Every word must occur in its query, status, cost or estimate; "#3" is the release with this number.
 */
export function matches(row: ILogEntry, filter: string): boolean {
  const { query, title, status, cost, cost_fraction: share, estimate } = row;
  const text = [query, title, status, cost, share ?? '', estimate ?? ''].join('\n').toLowerCase();
  return filter
    .toLowerCase()
    .split(/\s+/)
    .every(word => (/^#\d+$/.test(word) ? row.id === Number(word.slice(1)) : text.includes(word)));
}
