/**
 * What the kernel tells a budget picker (`dpnb/notebook/ladder.py` writes it).
 *
 * Everything that a place of the slider would cost and give is told in advance, so that the browser looks up and shows,
 * and computes no privacy.
 */

import { haveText, isCount, isFields, isShare, isTextOrNull } from './guards';

/** One place of the slider: a budget, and what a release at it would cost and give. */
export interface IRung {
  /** Sent back when it is chosen, for example `{mu: "0.24"}`. */
  target: Record<string, string>;
  label: string;
  cost: string;
  /** The expected error in words, with its unit. */
  error: string;
  /** The same as a number, of the worst group; null where nobody can know or units are mixed. */
  size: number | null;
  /** The error as a share of what is known by now, in words. */
  share: string | null;
  after: string;
  /** Share of the budget that would be left. */
  left: number;
  /** How many more questions at this cost would fit afterwards. */
  times: string;
}

/** A button that puts the slider somewhere, and what that place means. */
export interface IPreset {
  id: string;
  label: string;
  meaning: string;
  rung: number;
}

/** A release that was charged and never answered; asked for again, it is free. */
export interface IPaid {
  target: Record<string, string>;
  label: string;
}

/** Why the last release was refused, and the sentence that explains it. */
export interface IRefusalNote {
  title: string;
  message: string;
  explanation: string;
  text: string;
}

export interface IPickerState {
  v: 1;
  phase: 'asking' | 'answered';
  words: string;
  notice: string | null;
  session: string;
  /** How well the answer is known already; null before the first release. */
  known: string | null;
  /** The answer known by now, as HTML of dpnb's own making. */
  answer: { html: string } | null;
  refusal: IRefusalNote | null;
  unanswered: IPaid[];
  /** The release whose outcome this state tells first, by the id that the browser gave it. */
  done: string | null;
  /** From the cheapest to all that is left; empty when nothing is left. */
  rungs: IRung[];
  presets: IPreset[];
  /** Where the slider stands at first. */
  start: number;
  facts: string[];
  /** How code gets the answer again, in words. */
  again?: string;
}

const isRung = (value: unknown): boolean =>
  isFields(value) &&
  haveText(value, 'label', 'cost', 'error', 'after', 'times') &&
  isFields(value.target) &&
  isShare(value.left) &&
  (value.size === null || typeof value.size === 'number') &&
  isTextOrNull(value.share);

const isPaid = (value: unknown): boolean => isFields(value) && haveText(value, 'label') && isFields(value.target);

const isPreset = (value: unknown): boolean =>
  isFields(value) && haveText(value, 'id', 'label', 'meaning') && isCount(value.rung);

/** Whether a value received from a kernel is a picker that can be shown. */
export const isPickerState = (value: unknown): value is IPickerState =>
  isFields(value) &&
  value.v === 1 &&
  haveText(value, 'words', 'session') &&
  (value.phase === 'asking' || value.phase === 'answered') &&
  [value.notice, value.known, value.done].every(isTextOrNull) &&
  isCount(value.start) &&
  Array.isArray(value.rungs) &&
  value.rungs.every(isRung) &&
  Array.isArray(value.presets) &&
  value.presets.every(isPreset) &&
  Array.isArray(value.unanswered) &&
  value.unanswered.every(isPaid) &&
  Array.isArray(value.facts);
