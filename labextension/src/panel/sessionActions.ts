import type { ILog } from '../log/logStore';
import type { ISessionSnapshot } from '../protocol/snapshot';

/** The actions of a session's view in the side panel; a view below a cell has none. */
export interface ISessionActions {
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
  /** Let the sessions of the kernel that are out of date reconnect now. */
  reconnect(): void;
  /** Copy a text to the clipboard. */
  copy(text: string): void;
}
