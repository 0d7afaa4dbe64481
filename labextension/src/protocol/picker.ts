// Generated from dpnb/_protocol/picker.py by .ci/protocol.py: edit that file.

import { isCount, isFields, isNumber, isProportion, isText, listOf, mapOf, oneOf, orNull } from './guards';

export const VERSION = 2;

/** One position of the slider: a target, with cost and expected error of its release. */
export interface IOption {
  /** Sent back when the option is chosen, for example `{"mu": "0.24"}`. */
  target: Record<string, string>;
  label: string;
  cost: string;
  /** The expected error in words, with its unit. */
  error: string;
  /** The expected error of the worst group as a number; null where it is not known or the units are mixed. */
  error_value: number | null;
  /** The error relative to the current answer, in words. */
  relative_error: string | null;
  /** The budget that would remain, in words. */
  after: string;
  /** Fraction of the budget that would remain. */
  remaining: number;
  /** How many more queries at this cost would fit afterwards. */
  max_repetitions: string;
}

/** A button that moves the slider to one option. */
export interface IPreset {
  id: string;
  label: string;
  meaning: string;
  /** Index of the option. */
  option: number;
}

/** A release that was charged and never answered; repeating it is free. */
export interface IUnanswered {
  target: Record<string, string>;
  label: string;
}

/** Why the last release was refused, with an explanation. */
export interface IPickerRefusal {
  title: string;
  message: string;
  /** Id of the explanation. */
  explanation: string;
  text: string;
}

/** An answer as dpnb renders and escapes it. */
export interface IRenderedAnswer {
  html: string;
  text: string;
}

/** The state of a budget picker. */
export interface IPickerState {
  /** Version of the state; the browser displays no other. */
  version: 2;
  /** "choosing", or "answered" once the answer is shown instead of the slider. */
  phase: 'choosing' | 'answered';
  /** The query in words. */
  query: string;
  /** As in the session's snapshot. */
  notice: string | null;
  /** Name of the session. */
  session: string;
  /** The current precision of the answer; null before the first release. */
  current: string | null;
  /** The current answer. */
  answer: IRenderedAnswer | null;
  refusal: IPickerRefusal | null;
  unanswered: IUnanswered[];
  /** Id, assigned by the browser, of the release whose outcome this state is the first to show. */
  completed_request: string | null;
  /** From the cheapest to the whole remaining budget; empty when nothing remains. */
  options: IOption[];
  presets: IPreset[];
  /** Index of the option that is selected at first. */
  start: number;
  /** Facts that apply to every option. */
  facts: string[];
  /** How to get the answer again in code, in words. */
  code_hint: string | null;
}

export const isOption = (value: unknown): value is IOption =>
  isFields(value) &&
  mapOf(isText)(value.target) &&
  isText(value.label) &&
  isText(value.cost) &&
  isText(value.error) &&
  orNull(isNumber)(value.error_value) &&
  orNull(isText)(value.relative_error) &&
  isText(value.after) &&
  isProportion(value.remaining) &&
  isText(value.max_repetitions);

export const isPreset = (value: unknown): value is IPreset =>
  isFields(value) && isText(value.id) && isText(value.label) && isText(value.meaning) && isCount(value.option);

export const isUnanswered = (value: unknown): value is IUnanswered =>
  isFields(value) && mapOf(isText)(value.target) && isText(value.label);

export const isPickerRefusal = (value: unknown): value is IPickerRefusal =>
  isFields(value) && isText(value.title) && isText(value.message) && isText(value.explanation) && isText(value.text);

export const isRenderedAnswer = (value: unknown): value is IRenderedAnswer =>
  isFields(value) && isText(value.html) && isText(value.text);

export const isPickerState = (value: unknown): value is IPickerState =>
  isFields(value) &&
  oneOf(2)(value.version) &&
  oneOf('choosing', 'answered')(value.phase) &&
  isText(value.query) &&
  orNull(isText)(value.notice) &&
  isText(value.session) &&
  orNull(isText)(value.current) &&
  orNull(isRenderedAnswer)(value.answer) &&
  orNull(isPickerRefusal)(value.refusal) &&
  listOf(isUnanswered)(value.unanswered) &&
  orNull(isText)(value.completed_request) &&
  listOf(isOption)(value.options) &&
  listOf(isPreset)(value.presets) &&
  isCount(value.start) &&
  listOf(isText)(value.facts) &&
  orNull(isText)(value.code_hint);
