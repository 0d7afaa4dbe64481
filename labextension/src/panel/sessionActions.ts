import type { ILog } from '../log/logStore';
import type { ISessionSnapshot } from '../protocol/snapshot';

/** What a session's view requests from the kernel. */
export interface ISessionRequests {
  /** Let the sessions of the kernel that are out of date reconnect now. */
  reconnect(): void;
  /** Send all filters and odometers of a session from now on, or no longer. */
  compare(session: string, isShown: boolean): void;
}

/** The actions of a session's view in the side panel; a view below a cell has none. */
export interface ISessionActions extends ISessionRequests {
  /** The known part of a session's log. */
  log(session: string): ILog;
  /** Request all rows of it from the kernel. */
  requestLog(session: string): void;
  /** Download all of it. */
  exportLog(session: ISessionSnapshot): void;
  /** Whether a cell is in an open notebook of the session's kernel. */
  hasCell(cell: string): boolean;
  /** Show such a cell and move the focus to it. */
  goToCell(cell: string): void;
  /** Copy a text to the clipboard. */
  copy(text: string): void;
}
