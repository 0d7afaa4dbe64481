import { Token } from '@lumino/coreutils';
import type { ISignal } from '@lumino/signaling';

import type { ISnapshot } from './snapshot';

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

/** The privacy ledgers of the active notebook's or console's kernel. */
export interface ILedgerModel {
  readonly view: LedgerView;
  /** Emitted whenever `view` may have changed. */
  readonly changed: ISignal<ILedgerModel, void>;
}

export const ILedgerModel = new Token<ILedgerModel>(
  'dpnb:ILedgerModel',
  'The privacy ledgers of the active kernel, as that kernel last reported them.'
);
