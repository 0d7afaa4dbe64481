import { JSONExt, type ReadonlyJSONValue } from '@lumino/coreutils';

import { isFields, isText, listOf } from '../protocol/guards';
import type { ISession } from '../protocol/snapshot';

/** The name under which a cell's metadata keep what the cell cost. */
const KEY = 'dpnb';

/** What one session charged for a cell. */
export interface ICost {
  cost: string;
  description: string;
  /** Id of the session. */
  session: string;
  name: string;
  /** Why this must not be taken for a real or a private session; missing when it is both. */
  notice?: string;
}

/** The same in a cell's metadata. */
interface ISaved extends ICost {
  /** The cell that it was written for: a copy of the cell brings this along, and did not cost anything. */
  cell: string;
  /** What other sessions charged, if any did. */
  more?: ICost[];
}

/** As much of a cell's model as is needed here. */
export interface ICellMemory {
  readonly id: string;
  getMetadata(key: string): unknown;
  setMetadata(key: string, value: unknown): void;
  deleteMetadata(key: string): unknown;
}

/** What live sessions charge for each cell, and which sessions are live. */
export interface ICurrentCosts {
  sessions: ReadonlySet<string>;
  /** By the cell's id. */
  cells: ReadonlyMap<string, readonly ICost[]>;
}

/** What a kernel's sessions say about cells. */
export function currentCosts(sessions: readonly ISession[]): ICurrentCosts {
  const cells = new Map<string, ICost[]>();
  for (const { id, name, notice, cell_costs: costs } of sessions) {
    for (const { cell_id: cell, text, description } of costs) {
      const cost = { cost: text, description, session: id, name, ...(notice === null ? {} : { notice }) };
      cells.set(cell, [...(cells.get(cell) ?? []), cost]);
    }
  }
  return { sessions: new Set(sessions.map(session => session.id)), cells };
}

/** What a cell's metadata say that it cost; nothing when they were written for another cell. */
export function savedCosts(cell: ICellMemory): ICost[] {
  const saved = cell.getMetadata(KEY);
  if (!isSaved(saved) || saved.cell !== cell.id) {
    return [];
  }
  return [saved, ...(saved.more ?? [])].map(({ cost, description, session, name, notice }) => ({
    ...{ cost, description, session, name },
    ...(notice === undefined ? {} : { notice })
  }));
}

/**
 * What a cell cost: what live sessions say, and what is saved of sessions that are not live.
 *
 * Ordered by the sessions' ids: the order of last use would change the document each time that another is used.
 */
export function displayedCosts(cell: ICellMemory, live: ICurrentCosts): ICost[] {
  const others = savedCosts(cell).filter(cost => !live.sessions.has(cost.session));
  const costs = [...others, ...(live.cells.get(cell.id) ?? [])];
  return costs.sort((a, b) => (a.session < b.session ? -1 : Number(a.session > b.session)));
}

/** Make a cell's metadata say what it cost; a document that says so already is not touched. */
export function save(cell: ICellMemory, costs: readonly ICost[]): void {
  const old = cell.getMetadata(KEY) ?? null;
  const [first, ...more] = costs;
  if (!first) {
    if (isSaved(old)) {
      cell.deleteMetadata(KEY); // what somebody else keeps under our name is theirs
    }
    return;
  }
  const saved: ISaved = { ...first, cell: cell.id, ...(more.length > 0 ? { more } : {}) };
  if (!JSONExt.deepEqual(old as ReadonlyJSONValue, saved as unknown as ReadonlyJSONValue)) {
    cell.setMetadata(KEY, saved);
  }
}

const isCost = (value: unknown): value is ICost =>
  isFields(value) &&
  isText(value.cost) &&
  isText(value.description) &&
  isText(value.session) &&
  isText(value.name) &&
  (value.notice === undefined || isText(value.notice));

const isSaved = (value: unknown): value is ISaved =>
  isCost(value) &&
  isText((value as Partial<ISaved>).cell) &&
  ((value as Partial<ISaved>).more === undefined || listOf(isCost)((value as Partial<ISaved>).more));
