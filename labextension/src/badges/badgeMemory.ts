import { JSONExt, type ReadonlyJSONValue } from '@lumino/coreutils';

import { isFields, isText, listOf } from '../protocol/guards';
import type { IConnectionSnapshot } from '../protocol/snapshot';
import type { ISessionSnapshot } from '../protocol/snapshot';

/** Key of a cell's metadata under which its cost is saved. */
const KEY = 'dpnb';

/** The cost of a cell in one session. */
export interface ICost {
  cost: string;
  description: string;
  /** Id of the session. */
  session: string;
  name: string;
  /** Warning that the session is not real or not private; absent otherwise. */
  notice?: string;
}

/** The cost as saved in a cell's metadata. */
interface ISaved extends ICost {
  /** Id of the cell that it was written for: a copy of the cell contains this too, but did not cost anything. */
  cell: string;
  /** The costs in other sessions, if any. */
  more?: ICost[];
}

/** The part of a cell's model that is needed here. */
export interface ICellMemory {
  readonly id: string;
  getMetadata(key: string): unknown;
  setMetadata(key: string, value: unknown): void;
  deleteMetadata(key: string): unknown;
}

/** The costs of cells in live sessions. */
export interface ICurrentCosts {
  /** The connections of the live sessions by their ids; null for a local one. */
  sessions: ReadonlyMap<string, IConnectionSnapshot | null>;
  /** By id of the cell. */
  cells: ReadonlyMap<string, readonly ICost[]>;
}

/** The costs of cells in the sessions of a kernel. */
export function currentCosts(sessions: readonly ISessionSnapshot[]): ICurrentCosts {
  const cells = new Map<string, ICost[]>();
  for (const { id, name, notice, cell_costs: costs } of sessions) {
    for (const { cell_id: cell, text, description } of costs) {
      const cost = { cost: text, description, session: id, name, ...(notice === null ? {} : { notice }) };
      cells.set(cell, [...(cells.get(cell) ?? []), cost]);
    }
  }
  return { sessions: new Map(sessions.map(({ id, connection }) => [id, connection])), cells };
}

/** The costs saved in a cell's metadata; empty if they were written for another cell. */
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
 * The costs of a cell: those in live sessions, and the saved ones of sessions that are not live.
 *
 * Ordered by session id: the order of last use would change the document whenever another session is used.
 */
export function displayedCosts(cell: ICellMemory, live: ICurrentCosts): ICost[] {
  const others = savedCosts(cell).filter(cost => !live.sessions.has(cost.session));
  const costs = [...others, ...(live.cells.get(cell.id) ?? [])];
  return costs.sort((a, b) => (a.session < b.session ? -1 : Number(a.session > b.session)));
}

/** Save the costs of a cell in its metadata; a document that already contains them is not changed. */
export function save(cell: ICellMemory, costs: readonly ICost[]): void {
  const old = cell.getMetadata(KEY) ?? null;
  const [first, ...more] = costs;
  if (!first) {
    if (isSaved(old)) {
      cell.deleteMetadata(KEY); // only what dpnb wrote
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
