import { Token } from '@lumino/coreutils';
import type { ISignal } from '@lumino/signaling';

import type { ILog } from '../log/logStore';
import type { ILogEntry, ISnapshot } from '../protocol/snapshot';

/** What is known about the kernel that the user is working with. */
export type LedgerView =
  /** Nothing is open, or what is open has no kernel. */
  | { kind: 'no-kernel' }
  /** The kernel was asked and has not answered yet. */
  | { kind: 'waiting' }
  /** The kernel runs without dpnb. */
  | { kind: 'no-dpnb' }
  /** The kernel was replaced and has not loaded dpnb again. */
  | { kind: 'restarted' }
  | { kind: 'dead' }
  /** The kernel speaks another version of the contract. */
  | { kind: 'unreadable' }
  /** What this browser tab saw last; the kernel has not confirmed it since the page was loaded. */
  | { kind: 'stale'; snapshot: ISnapshot }
  | { kind: 'live'; snapshot: ISnapshot };

/** The privacy ledgers of every kernel that a notebook or console is connected to; one of them is active. */
export interface ILedgerModel {
  /** What is known about the active kernel. */
  readonly view: LedgerView;
  /** Id of the active kernel; null when there is none. */
  readonly kernelId: string | null;
  /** Whether the active kernel has been at work for a while. */
  readonly isBusy: boolean;
  /** Emitted whenever something about the active kernel may have changed. */
  readonly changed: ISignal<ILedgerModel, void>;

  /** What is known about a kernel, active or not. */
  viewOf(kernelId: string): LedgerView;
  /** Emitted, with its id, whenever `viewOf` a kernel may have changed. */
  readonly kernelChanged: ISignal<ILedgerModel, string>;

  /** What is known of the log of one of the active kernel's sessions. */
  log(sessionId: string): ILog;
  /**
   * Every row of such a log, newest first.
   *
   * The kernel is asked for the rows that its snapshots do not hold; one that is busy answers when it is done, and one
   * that is restarted when the session is there again.
   *
   * @returns null when they will never come.
   */
  requestLog(sessionId: string): Promise<readonly ILogEntry[] | null>;
}

export const ILedgerModel = new Token<ILedgerModel>(
  'dpnb:ILedgerModel',
  'The privacy ledgers of every kernel in use, as it last reported them.'
);
