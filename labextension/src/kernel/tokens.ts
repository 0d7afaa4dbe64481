import { Token } from '@lumino/coreutils';
import type { ISignal } from '@lumino/signaling';

import type { ILog } from '../log/logStore';
import type { ILogEntry, ISnapshot } from '../protocol/snapshot';

/** The state of dpnb in one kernel, as known to this page. */
export type LedgerView =
  /** No notebook or console is open, or it has no kernel. */
  | { kind: 'no-kernel' }
  /** The kernel has not replied yet. */
  | { kind: 'waiting' }
  /** The kernel runs without dpnb. */
  | { kind: 'no-dpnb' }
  /** The kernel was replaced and has not loaded dpnb again. */
  | { kind: 'restarted' }
  | { kind: 'dead' }
  /** The kernel uses another version of the protocol. */
  | { kind: 'unreadable' }
  /** The last state that this browser tab received; the kernel has not confirmed it since the page was loaded. */
  | { kind: 'stale'; snapshot: ISnapshot }
  | { kind: 'live'; snapshot: ISnapshot };

/** The privacy ledgers of every kernel that a notebook or console is connected to; one of them is active. */
export interface ILedgerModel {
  /** The state of the active kernel. */
  readonly view: LedgerView;
  /** Id of the active kernel; null if there is none. */
  readonly kernelId: string | null;
  /** Whether the active kernel has been busy for longer than `BUSY_AFTER`. */
  readonly isBusy: boolean;
  /** Emitted when the state of the active kernel may have changed. */
  readonly changed: ISignal<ILedgerModel, void>;

  /** The state of any kernel. */
  viewOf(kernelId: string): LedgerView;
  /** Emitted with the id of a kernel when its `viewOf` may have changed. */
  readonly kernelChanged: ISignal<ILedgerModel, string>;

  /** Let the sessions of the active kernel that are out of date reconnect now. */
  reconnect(): void;

  /** Let the active kernel send all filters and odometers of a session, or no longer. */
  compare(sessionId: string, isShown: boolean): void;

  /** The known part of the log of a session of the active kernel. */
  log(sessionId: string): ILog;
  /**
   * Every row of such a log, newest first.
   *
   * Rows that are not in a snapshot are requested from the kernel.  A busy kernel replies when it is idle, a restarted
   * one when the session has been created again.
   *
   * @returns null if the kernel cannot reply any more.
   */
  requestLog(sessionId: string): Promise<readonly ILogEntry[] | null>;
}

export const ILedgerModel = new Token<ILedgerModel>(
  'dpnb:ILedgerModel',
  'The privacy ledgers of every kernel in use, as it last reported them.'
);
