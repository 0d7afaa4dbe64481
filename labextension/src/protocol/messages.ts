// Generated from dpnb/_browser/messages.py by .ci/protocol.py: edit that file.

import { isCount, isFields, isNumber, isProportion, isText, listOf, mapOf, oneOf, orNull } from './guards';
import { type ILogEntry, isLogEntry } from './snapshot';

export const VERSION = 7;

export const TARGET = 'dpnb.snapshot';

/** One position of the slider: a target, with cost and expected error of its release. */
export interface IOption {
  /**
   * Sent back when the option is chosen, for example `{"mu": "0.24", "at_most": "36/625"}`: the argument first, and the
   * cost as mu squared, which the release must not exceed.
   */
  target: Record<string, string>;
  /** What it costs as a percentage of the budget, in words; without a budget, as a loss. */
  cost: string;
  /** The loss of the answer, including earlier observations, for example "mu 0.24". */
  loss: string;
  /** What the reader must confirm before the release; null if the cost is small. */
  confirm: string | null;
  /** The expected error in words, with its unit; of `errors`, what they are and assume. */
  error: string;
  /** The expected errors of many statistics as a table, whose first row is its head; null where `error` has them. */
  errors: string[][] | null;
  /** The expected error of the worst group as a number; null where it is not known or the units are mixed. */
  error_value: number | null;
  /** For a refinement, the error that one release at the total loss would have had, in words; null if it is unknown. */
  in_one_release: string | null;
  /** The error relative to the current answer, in words. */
  relative_error: string | null;
  /** The budget that would remain, in words; without a budget, the loss so far with this release. */
  after: string;
  /** Fraction of the budget that would remain; null without a budget. */
  remaining: number | null;
  /** How many more queries at this cost would fit afterwards, in words; null without a budget. */
  max_repetitions: string | null;
}

/** A button that moves the slider to one option. */
export interface IPreset {
  id: string;
  label: string;
  meaning: string;
  /** The expected error in few words, without what it assumes. */
  error: string;
  /** Index of the option. */
  option: number;
}

/** The count of rows to release first, after which the expected errors are known. */
export interface ICountStep {
  /** Why the expected error is unknown. */
  text: string;
  /** Text of the button, with the cost as a percentage of the budget. */
  label: string;
  /** The loss of the count; null if it was charged already. */
  loss: string | null;
  /** Sent back when the button is pressed. */
  target: Record<string, string>;
  /** As in `Option`. */
  confirm: string | null;
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

/** A precision that the curator can be asked for. */
export interface IAskOption {
  /** Sent back when it is chosen. */
  target: Record<string, string>;
  /** Expected error and cost, in words. */
  label: string;
}

/** What an analyst can ask the curator of a service for. */
export interface IAsk {
  /** From the cheapest to the most precise; at least one. */
  options: IAskOption[];
  /** Index of the option that is selected at first. */
  start: number;
  /** Of the reason. */
  max_characters: number;
}

/** An answer as dpnb renders and escapes it. */
export interface IRenderedAnswer {
  html: string;
  text: string;
  /** How to get the answer again in code, in words. */
  hint: string | null;
}

/** The state of a budget picker. */
export interface IPickerState {
  /** Version of the state; the browser displays no other. */
  version: 7;
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
  /**
   * From the cheapest to the whole remaining budget; empty when nothing remains or a count comes first. Without a
   * budget, up to a fixed loss.
   */
  options: IOption[];
  presets: IPreset[];
  /** Index of the option that is selected at first. */
  start: number;
  /** Facts that apply to every option. */
  facts: string[];
  /** The count to release first; null if the expected errors are known, or if a count is not enough. */
  count_step: ICountStep | null;
  /** The count that was released here. */
  count_answer: IRenderedAnswer | null;
  /** What the curator can be asked for; null unless a cap leaves less than the budget. */
  ask: IAsk | null;
  /** The request that was made here, in words; null before one. */
  asked: string | null;
}

/** A part of a session's log. */
export interface ILogChunk {
  /** Version of the snapshot. */
  version: 12;
  /** As in the snapshot. */
  process_id: string;
  /** Id of the session. */
  session: string;
  /** Number of rows of the log before these. */
  start: number;
  /** Number of rows of the log. */
  total: number;
  /** Oldest first. */
  rows: ILogEntry[];
}

/** The browser requests a broadcast of the snapshot. */
export interface IRequestSnapshot {
  method: 'request_snapshot';
}

/** The browser requests the whole log of a session. */
export interface IRequestWholeLog {
  method: 'request_log';
  /** Id of the session. */
  session: string;
}

/** A page shows all filters and odometers of a session, which the next snapshots then contain; or no longer does. */
export interface IRequestComparison {
  method: 'compare';
  /** Id of the session. */
  session: string;
  /** Whether they are shown. */
  is_shown: boolean;
}

/** A page announces that it shows the kernel, which then follows what other kernels charge; or no longer does. */
export interface IFollowLedgers {
  method: 'follow_ledgers';
  /** Id of the page. */
  page: string;
  /** Whether the page is visible. */
  is_visible: boolean;
}

/** A page announces that the server will run a cell, in a request that does not contain the id of the cell. */
export interface ICellScheduled {
  method: 'cell_scheduled';
  cell_id: string;
  code: string;
}

/** A page has seen the request that runs a cell. */
export interface ICellStarted {
  method: 'cell_started';
  cell_id: string;
  /** Id of the request's message. */
  request_id: string;
}

/** A cell that was announced has ended, or will not be run. */
export interface ICellEnded {
  method: 'cell_ended';
  cell_id: string;
}

/** A page requests that the sessions that are out of date try to reach their service now. */
export interface IReconnect {
  method: 'reconnect';
}

/** A picker requests a new state. */
export interface IRefresh {
  method: 'refresh';
}

/** A picker requests a release. */
export interface IReleaseOption {
  method: 'release';
  /**
   * The target of an option; any other target is refused in the picker's state, as is one that costs more now than was
   * displayed.
   */
  target: Record<string, unknown>;
  /** Returned as `completed_request` in the state that shows the outcome. */
  id: string;
  /** Whether the reader has confirmed a large cost. */
  confirmed: boolean;
}

/** A picker requests the release of the count that its expected errors depend on; fields as in `ReleaseOption`. */
export interface IReleaseCount {
  method: 'release_count';
  target: Record<string, unknown>;
  id: string;
  confirmed: boolean;
}

/** A picker requests budget from the curator. */
export interface IAskCurator {
  method: 'ask_curator';
  /** The target of an option of `Ask`; any other is refused in the picker's state. */
  target: Record<string, unknown>;
  /** The reason. */
  why: string;
  /** As in `ReleaseOption`. */
  id: string;
}

export const isOption = (value: unknown): value is IOption =>
  isFields(value) &&
  mapOf(isText)(value.target) &&
  isText(value.cost) &&
  isText(value.loss) &&
  orNull(isText)(value.confirm) &&
  isText(value.error) &&
  orNull(listOf(listOf(isText)))(value.errors) &&
  orNull(isNumber)(value.error_value) &&
  orNull(isText)(value.in_one_release) &&
  orNull(isText)(value.relative_error) &&
  isText(value.after) &&
  orNull(isProportion)(value.remaining) &&
  orNull(isText)(value.max_repetitions);

export const isPreset = (value: unknown): value is IPreset =>
  isFields(value) &&
  isText(value.id) &&
  isText(value.label) &&
  isText(value.meaning) &&
  isText(value.error) &&
  isCount(value.option);

export const isCountStep = (value: unknown): value is ICountStep =>
  isFields(value) &&
  isText(value.text) &&
  isText(value.label) &&
  orNull(isText)(value.loss) &&
  mapOf(isText)(value.target) &&
  orNull(isText)(value.confirm);

export const isUnanswered = (value: unknown): value is IUnanswered =>
  isFields(value) && mapOf(isText)(value.target) && isText(value.label);

export const isPickerRefusal = (value: unknown): value is IPickerRefusal =>
  isFields(value) && isText(value.title) && isText(value.message) && isText(value.explanation) && isText(value.text);

export const isAskOption = (value: unknown): value is IAskOption =>
  isFields(value) && mapOf(isText)(value.target) && isText(value.label);

export const isAsk = (value: unknown): value is IAsk =>
  isFields(value) && listOf(isAskOption)(value.options) && isCount(value.start) && isCount(value.max_characters);

export const isRenderedAnswer = (value: unknown): value is IRenderedAnswer =>
  isFields(value) && isText(value.html) && isText(value.text) && orNull(isText)(value.hint);

export const isPickerState = (value: unknown): value is IPickerState =>
  isFields(value) &&
  oneOf(7)(value.version) &&
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
  orNull(isCountStep)(value.count_step) &&
  orNull(isRenderedAnswer)(value.count_answer) &&
  orNull(isAsk)(value.ask) &&
  orNull(isText)(value.asked);

export const isLogChunk = (value: unknown): value is ILogChunk =>
  isFields(value) &&
  oneOf(12)(value.version) &&
  isText(value.process_id) &&
  isText(value.session) &&
  isCount(value.start) &&
  isCount(value.total) &&
  listOf(isLogEntry)(value.rows);

export type PanelRequest =
  | IRequestSnapshot
  | IRequestWholeLog
  | IRequestComparison
  | IFollowLedgers
  | ICellScheduled
  | ICellStarted
  | ICellEnded
  | IReconnect;

export type PickerRequest = IRefresh | IReleaseOption | IReleaseCount | IAskCurator | IReconnect;
