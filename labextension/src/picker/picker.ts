import { element, setText, Views, type IView } from '../dom/dom';
import { setTextWithTerms } from '../dom/terms';
import { isOutOfDate } from '../dom/format';
import { ConnectionView } from '../panel/connection';
import { ExplanationLink } from '../panel/explanationLink';
import type { IConnectionSnapshot } from '../protocol/snapshot';
import type { IOption, IPickerState, IPreset, IRenderedAnswer, IUnanswered } from '../protocol/messages';
import { AskView } from './askView';
import { confirmation, ConfirmedButton } from './confirmedButton';
import { CountStepView } from './countStepView';
import { OptionView } from './optionView';
import { drawTicks } from './ticks';
import { trans } from '../translation';

type Target = Record<string, string>;

/** The requests that the picker sends to the kernel. */
export interface IPickerActions {
  /**
   * @param id Returned as `completed_request` in the state that shows the outcome.
   * @param isConfirmed Whether the reader has confirmed a large cost.
   */
  release(target: Target, id: string, isConfirmed: boolean): void;
  /** Release the count of the step; the parameters are those of `release`. */
  releaseCount(target: Target, id: string, isConfirmed: boolean): void;
  /** Ask the curator of a service for a larger cap; the id is that of `release`. */
  askCurator(target: Target, why: string, id: string): void;
  refresh(): void;
  /** Let the sessions of the kernel that are out of date reconnect now. */
  reconnect(): void;
}

/** State that is kept when a picker is drawn again, as it is after an answer. */
export interface IPickerMemory {
  /** Budget that the reader chose; null before a choice. */
  chosen: number | null;
  /** Id of the pending release; null if there is none. */
  pending: string | null;
}

/** Milliseconds without a message of the kernel after which it may have been restarted. */
const TIMEOUT = 10_000;

let nPickers = 0;
let nRequests = 0;

/**
 * A query with a slider for its budget; after its release, the answer.
 *
 * It is updated in place: the slider and the reference value that the reader entered remain when the budget changes.
 */
export class PickerView {
  readonly node = element('section', 'dpnb-picker');
  private readonly _notice = element('p', 'dpnb-notice');
  private readonly _connection: ConnectionView;
  private readonly _query = element('h4', 'dpnb-picker-query');
  private readonly _answer = new AnswerView('dpnb-picker-answer');
  private readonly _countAnswer = new AnswerView('dpnb-picker-count-answer');
  private readonly _current = element('p', 'dpnb-picker-current');
  private readonly _choosing = element('div', 'dpnb-picker-choosing');
  private readonly _presets: Views<IPreset>;
  private readonly _unanswered: Views<IUnanswered>;
  private readonly _slider = element('input', 'dpnb-picker-slider');
  private readonly _ends = [element('span', 'dpnb-picker-least'), element('span', 'dpnb-picker-most')] as const;
  private readonly _ticks = element('div', 'dpnb-picker-ticks');
  private readonly _option: OptionView;
  private readonly _count: CountStepView;
  private readonly _release: ConfirmedButton;
  private readonly _ask: AskView;
  private readonly _refine = element('button', 'dpnb-picker-refine', trans.__('Refine…'));
  private readonly _facts = element('ul', 'dpnb-picker-facts');
  private readonly _status = element('p', 'dpnb-picker-status');
  private readonly _progress = element('p', 'dpnb-picker-progress');
  private readonly _refusal = element('div', 'dpnb-picker-refusal');
  private _state: IPickerState | null = null;
  private _isOpen = false;
  private _isReplaced = false;
  private _isOutdated = false;
  private _timer: ReturnType<typeof setTimeout> | null = null;

  constructor(
    private readonly _actions: IPickerActions,
    private readonly _memory: IPickerMemory = { chosen: null, pending: null }
  ) {
    const id = `dpnb-picker-${(nPickers += 1)}`;
    this._query.id = `${id}-query`;
    this.node.setAttribute('aria-labelledby', this._query.id);
    this._slider.type = 'range';
    this._slider.min = '0';
    this._slider.step = '1';
    this._slider.id = `${id}-slider`;
    this._slider.addEventListener('input', () => this._choose(this._slider.valueAsNumber));
    this._option = new OptionView(this._slider);
    this._option.reference.addEventListener('input', () => this._drawOption());
    // Keys that a control uses are not handled by the notebook; all others are, as in any other output.
    for (const input of [this._slider, this._option.reference]) {
      input.dataset.lmSuppressShortcuts = 'true';
    }
    this.node.addEventListener('keydown', event => {
      if (isUsed(event)) {
        event.stopPropagation();
      }
    });
    this._connection = new ConnectionView(() => this._actions.reconnect());
    this._notice.setAttribute('role', 'alert');
    this._status.setAttribute('role', 'status');
    this._refusal.setAttribute('role', 'alert');
    this._release = new ConfirmedButton('dpnb-picker-release', isConfirmed => this._onRelease(isConfirmed));
    this._count = new CountStepView((target, isConfirmed) => this._request('releaseCount', target, isConfirmed));
    this._ask = new AskView((target, why) => this._askCurator(target, why));
    this._refine.type = 'button';
    this._refine.addEventListener('click', () => this._onRefine());
    const presets = element('div', 'dpnb-picker-presets');
    presets.setAttribute('role', 'group');
    presets.setAttribute('aria-label', trans.__('Preset budgets'));
    this._presets = new Views(presets, () => this._presetButton());
    const unanswered = element('div', 'dpnb-picker-unanswered');
    this._unanswered = new Views(unanswered, () => this._unansweredButton());
    this.node.append(
      this._notice,
      this._query,
      this._connection.node,
      this._current,
      this._answer.node,
      this._refine,
      unanswered
    );
    this.node.append(this._count.node, this._choosing, this._status, this._progress, this._refusal, this._ask.node);
    this.node.append(this._countAnswer.node);
    this._build(presets);
  }

  private _build(presets: HTMLElement): void {
    const ends = element('div', 'dpnb-picker-range-labels', ...this._ends, this._ticks);
    ends.setAttribute('aria-hidden', 'true');
    const { head, bar, list, code } = this._option;
    const buttons = element('div', 'dpnb-picker-buttons', this._release.node, code);
    this._choosing.append(presets, head, this._slider, ends, bar, list, buttons, this._facts);
  }

  /** Show a state that the kernel sent. */
  update(state: IPickerState): void {
    if (state.completed_request === this._memory.pending) {
      this._memory.pending = null;
    }
    const isNew = state.phase === 'answered' && state.answer?.html !== this._state?.answer?.html;
    this._state = state;
    if (isNew) {
      this._isOpen = false;
    }
    this.node.classList.toggle('dpnb-mod-not-private', state.notice !== null);
    setText(this._notice, state.notice ?? '');
    this._notice.hidden = state.notice === null;
    setText(this._query, state.query);
    this._drawAnswer(state);
    this._drawRefusal(state);
    this._ask.update(state.ask, state.asked, state.refusal !== null);
    this._presets.update(state.presets);
    this._unanswered.update(state.unanswered);
    this._facts.replaceChildren(...state.facts.map(text => element('li', '', text)));
    this._slider.max = String(Math.max(state.options.length - 1, 0));
    this._slider.value = String(this._indexOf(state));
    drawTicks(this._ticks, state.options);
    this._drawOption();
    // Two views of one picker briefly share the memory, and either may be the first to receive the outcome.
    if (this._memory.pending !== null) {
      this._startTimeout();
    } else {
      this._clearTimeout();
    }
    if (this._isReplaced) {
      this.retire();
    }
  }

  /** Disable all controls and show that the kernel has ended; the answer remains readable. */
  retire(): void {
    this._isReplaced = true;
    this._clearTimeout();
    this._release.close();
    this.node.classList.add('dpnb-mod-inactive');
    for (const control of this.node.querySelectorAll<HTMLInputElement | HTMLButtonElement | HTMLSelectElement>(
      'input,button,select'
    )) {
      control.disabled = true;
    }
    setText(this._progress, '');
    setText(this._status, trans.__('The kernel was restarted or shut down. Run this cell again to use the picker.'));
  }

  /** Move the focus to the answer, or to that of the count while the budget of the query is still to be chosen. */
  focusAnswer(): HTMLElement {
    const answer = this._choosing.hidden ? this._answer : this._countAnswer;
    answer.node.focus({ preventScroll: true });
    return answer.node;
  }

  /** Whether the reader can choose a budget now, or release the count that comes first. */
  get isChoosing(): boolean {
    return !(this._choosing.hidden && this._count.node.hidden) && !this._isReplaced;
  }

  /** Whether the reader can ask the curator for more, also where nothing is left to choose. */
  get isAsking(): boolean {
    return !this._ask.node.hidden && !this._isReplaced;
  }

  private _drawAnswer(state: IPickerState): void {
    const isAnswered = state.phase === 'answered';
    this._answer.update(state.answer);
    this._countAnswer.update(state.count_answer);
    this._query.hidden = state.answer !== null; // the answer starts with the same text
    setTextWithTerms(
      this._current,
      state.current === null
        ? ''
        : trans.__('This answer has cost %1. Refining it costs only the difference.', state.current)
    );
    this._choosing.hidden = (isAnswered && !this._isOpen) || state.options.length === 0;
    this._current.hidden = state.current === null || this._choosing.hidden;
    this._refine.hidden = !isAnswered || this._isOpen || state.options.length === 0;
    this._drawCount(state);
    this._release.disabled = this._count.disabled = this._ask.disabled = false;
    setText(this._status, '');
  }

  /** The count to release first, also where the query is not offered before it. */
  private _drawCount({ phase, count_step }: IPickerState): void {
    this._count.update(phase === 'answered' && !this._isOpen ? null : count_step, this._isOutdated);
  }

  private _drawRefusal({ refusal }: IPickerState): void {
    this._refusal.hidden = refusal === null;
    if (refusal) {
      const why = new ExplanationLink();
      why.update(refusal.explanation, refusal.text);
      this._refusal.replaceChildren(element('strong', '', refusal.title), `: ${refusal.message} `, why.node);
    }
  }

  /** Index of the option that is nearest to the reader's choice; without a choice, the kernel's default. */
  private _indexOf({ options, start }: IPickerState): number {
    const { chosen } = this._memory;
    if (chosen === null) {
      return start;
    }
    const distances = options.map(option => Math.abs(Math.log(amount(option)) - Math.log(chosen)));
    return chosen === Infinity ? options.length - 1 : distances.indexOf(Math.min(...distances));
  }

  private _choose(index: number): void {
    const option = this._state?.options[index];
    if (option) {
      this._memory.chosen = amount(option);
      this._slider.value = String(index);
      this._release.close();
      this._drawOption();
    }
  }

  private _drawOption(): void {
    const options = this._state?.options ?? [];
    const option = options[this._slider.valueAsNumber];
    if (!option) {
      return;
    }
    const remaining = options.map(one => one.remaining).filter(one => one !== null);
    const hasBudget = remaining.length > 0;
    this._option.update(option, hasBudget ? Math.max(...remaining) : null);
    this._release.update(
      this._state?.current === null ? trans.__('Release') : trans.__('Refine'),
      confirmation(option.confirm, this._isOutdated)
    );
    this._slider.setAttribute('aria-valuetext', `${option.cost}: ${option.error}; ${option.after}`);
    const [least, most] = this._ends;
    const [cheapest, costliest] = [options[0], options[options.length - 1]];
    setText(least, hasBudget ? percentage(cheapest) : (cheapest?.cost ?? ''));
    setText(most, hasBudget ? trans.__('%1, all that is left', percentage(costliest)) : (costliest?.cost ?? ''));
    for (const button of this.node.querySelectorAll<HTMLButtonElement>('.dpnb-picker-preset')) {
      button.setAttribute('aria-pressed', String(button.dataset.option === this._slider.value));
    }
  }

  private _presetButton(): IView<IPreset> {
    const label = element('span', 'dpnb-picker-preset-label');
    const meaning = element('span', 'dpnb-picker-preset-meaning');
    const error = element('span', 'dpnb-picker-preset-error');
    const node = element('button', 'dpnb-picker-preset', label, ' ', meaning, ' ', error);
    node.type = 'button';
    node.addEventListener('click', () => this._choose(Number(node.dataset.option)));
    return {
      node,
      update: (preset): void => {
        node.dataset.preset = preset.id;
        node.dataset.option = String(preset.option);
        setText(label, preset.label);
        setText(meaning, preset.meaning);
        setText(error, preset.error);
      }
    };
  }

  private _onRelease(isConfirmed: boolean): void {
    const option = this._state?.options[this._slider.valueAsNumber];
    if (option) {
      this._request('release', option.target, isConfirmed && option.confirm !== null);
    }
  }

  private _request(method: 'release' | 'releaseCount', target: Target, isConfirmed: boolean): void {
    if (this._timer !== null || this._isReplaced) {
      return;
    }
    this._refusal.hidden = true;
    this._memory.pending = `${Date.now()}-${(nRequests += 1)}`;
    this._startTimeout();
    this._actions[method](target, this._memory.pending, isConfirmed);
  }

  private _askCurator(target: Target, why: string): void {
    if (this._timer !== null || this._isReplaced) {
      return;
    }
    this._refusal.hidden = true;
    this._memory.pending = `${Date.now()}-${(nRequests += 1)}`;
    this._startTimeout(trans.__('Asking. A busy kernel asks when it is idle.'));
    this._actions.askCurator(target, why, this._memory.pending);
  }

  /** Disable further releases until the kernel has sent the outcome of the last. */
  private _startTimeout(status = trans.__('Releasing. A busy kernel releases when it is idle.')): void {
    this._release.disabled = this._count.disabled = this._ask.disabled = true;
    setText(this._status, status);
    // The button remains disabled: a busy kernel has received the request, and would receive a second one.
    this._timer ??= this._timeout();
  }

  private _timeout(): ReturnType<typeof setTimeout> {
    return setTimeout(
      () =>
        setText(
          this._status,
          trans.__('No reply yet: a busy kernel replies when it is idle; after a restart, run this cell again.')
        ),
      TIMEOUT
    );
  }

  /** Show where the table is; while the figures are out of date, a release is confirmed with these words. */
  showConnection(connection: IConnectionSnapshot | null): void {
    this._connection.update(connection);
    this._isOutdated = isOutOfDate(connection);
    this.node.classList.toggle('dpnb-mod-out-of-date', this._isOutdated);
    this._drawOption();
    if (this._state) {
      this._drawCount(this._state);
    }
  }

  /** Show the progress of a long release, in a separate line that screen readers do not repeat every second. */
  showProgress(progress: string): void {
    setText(this._progress, this._isReplaced ? '' : progress);
    if (this._timer !== null) {
      clearTimeout(this._timer); // a kernel that sends progress is alive
      this._timer = this._timeout();
    }
  }

  private _unansweredButton(): IView<IUnanswered> {
    let target: Target = {};
    const node = element('button', 'dpnb-picker-unanswered-release');
    node.type = 'button';
    node.addEventListener('click', () => this._request('release', target, false));
    return {
      node,
      update: (release): void => {
        target = release.target;
        setText(node, trans.__('%1 was charged but not answered: repeat it for free', release.label));
      }
    };
  }

  private _onRefine(): void {
    this._isOpen = true;
    if (this._state) {
      this._drawAnswer(this._state);
    }
    this._drawOption();
    this._slider.focus();
    this._actions.refresh();
  }

  private _clearTimeout(): void {
    if (this._timer !== null) {
      clearTimeout(this._timer);
      this._timer = null;
    }
  }

  dispose(): void {
    this._clearTimeout();
  }
}

/** An answer as the kernel renders it, with code that returns it again. */
class AnswerView {
  readonly node: HTMLElement;
  private readonly _body = element('div', 'dpnb-picker-answer-body');
  private readonly _hint = element('p', 'dpnb-picker-hint');

  constructor(className: string) {
    this.node = element('div', className, this._body, this._hint);
    this.node.tabIndex = -1; // it receives the focus when it replaces the slider
  }

  update(answer: IRenderedAnswer | null): void {
    const html = answer?.html ?? '';
    if (this._body.dataset.shown !== html) {
      this._body.dataset.shown = html;
      this._body.innerHTML = html; // rendered and escaped by dpnb in the kernel, like any other HTML output
    }
    setText(this._hint, answer?.hint ? trans.__('In code, %1.', answer.hint) : '');
    this.node.hidden = answer === null;
  }
}

/** Whether a control uses a key: an input uses every key, a button those that press it. */
function isUsed({ target, key }: KeyboardEvent): boolean {
  const isInput = target instanceof HTMLInputElement || target instanceof HTMLSelectElement;
  return isInput || (target instanceof HTMLButtonElement && [' ', 'Enter'].includes(key));
}

/** The cost of an option as a percentage, without what it is a percentage of. */
const percentage = (option: IOption | undefined): string => option?.cost.split(' ')[0] ?? '';

/** The budget of an option as a number; infinity for the whole remaining budget. */
function amount({ target }: IOption): number {
  return target.mu === undefined ? Infinity : Number(target.mu);
}
