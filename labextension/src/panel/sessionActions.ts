import type { ILog } from '../log/logStore';
import type { ISession } from '../protocol/snapshot';

/** What a session's view in the side panel can do beyond showing; a view below a cell has none of it. */
export interface ISessionActions {
  /** What is known of a session's log. */
  log(session: string): ILog;
  /** Ask the kernel for all of it. */
  requestLog(session: string): void;
  /** Download all of it. */
  exportLog(session: ISession): void;
  /** Whether a cell is in an open notebook of the session's kernel. */
  hasCell(cell: string): boolean;
  /** Show such a cell and move the keyboard there. */
  goToCell(cell: string): void;
  /** Put a text into the clipboard. */
  copy(text: string): void;
}
