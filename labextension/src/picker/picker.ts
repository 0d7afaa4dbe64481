import { element, setText, Views, type IView } from '../dom/dom';
import { ExplanationLink } from '../panel/explanationLink';
import type { IUnanswered, IPickerState, IPreset, IOption } from '../protocol/picker';

/** The requests that the picker sends to the kernel. */
export interface IPickerActions {
  /** @param id Returned as `completed_request` in the state that shows the outcome. */
  release(target: Record<string, string>, id: string): void;
  refresh(): void;
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
  private readonly _query = element('h4', 'dpnb-picker-query');
  private readonly _answer = element('div', 'dpnb-picker-answer');
  private readonly _current = element('p', 'dpnb-picker-current');
  private readonly _choosing = element('div', 'dpnb-picker-choosing');
  private readonly _presets: Views<IPreset>;
  private readonly _unanswered: Views<IUnanswered>;
  private readonly _slider = element('input', 'dpnb-picker-slider');
  private readonly _label = element('output', 'dpnb-picker-budget');
  private readonly _bar = element('div', 'dpnb-picker-bar-after');
  private readonly _barCost = element('div', 'dpnb-picker-bar-cost');
  private readonly _cost = fact('cost', 'Cost');
  private readonly _error = fact('error', 'Expected error');
  private readonly _relativeError = fact('share', 'Relative error');
  private readonly _after = fact('after', 'Headroom after');
  private readonly _times = fact('times', 'Further queries at this cost');
  private readonly _reference = element('input', 'dpnb-picker-reference');
  private readonly _release = element('button', 'dpnb-picker-release');
  private readonly _refine = element('button', 'dpnb-picker-refine', 'Refine…');
  private readonly _code = element('code', 'dpnb-picker-code');
  private readonly _facts = element('ul', 'dpnb-picker-facts');
  private readonly _status = element('p', 'dpnb-picker-status');
  private readonly _progress = element('p', 'dpnb-picker-progress');
  private readonly _refusal = element('div', 'dpnb-picker-refusal');
  private _state: IPickerState | null = null;
  private _isOpen = false;
  private _isReplaced = false;
  private _timer: ReturnType<typeof setTimeout> | null = null;

  constructor(
    private readonly _actions: IPickerActions,
    private readonly _memory: IPickerMemory = { chosen: null, pending: null }
  ) {
    const id = `dpnb-picker-${(nPickers += 1)}`;
    this._query.id = `${id}-query`;
    this.node.setAttribute('aria-labelledby', this._query.id);
    // Keys that a control uses are not handled by the notebook; all others are, as in any other output.
    for (const input of [this._slider, this._reference]) {
      input.dataset.lmSuppressShortcuts = 'true';
    }
    this.node.addEventListener('keydown', event => {
      if (isUsed(event)) {
        event.stopPropagation();
      }
    });
    this._notice.setAttribute('role', 'alert');
    this._status.setAttribute('role', 'status');
    this._refusal.setAttribute('role', 'alert');
    this._answer.tabIndex = -1; // it receives the focus when it replaces the slider
    this._slider.type = 'range';
    this._slider.min = '0';
    this._slider.step = '1';
    this._slider.id = `${id}-slider`;
    this._label.htmlFor.add(this._slider.id);
    this._slider.addEventListener('input', () => this._choose(this._slider.valueAsNumber));
    this._reference.type = 'number';
    this._reference.step = 'any';
    this._reference.placeholder = 'an expected value';
    this._reference.setAttribute('aria-label', 'Compare the expected error with this value');
    this._reference.addEventListener('input', () => this._drawOption());
    this._release.type = this._refine.type = 'button';
    this._release.addEventListener('click', () => this._onRelease());
    this._refine.addEventListener('click', () => this._onRefine());
    const presets = element('div', 'dpnb-picker-presets');
    presets.setAttribute('role', 'group');
    presets.setAttribute('aria-label', 'Preset budgets');
    this._presets = new Views(presets, () => this._presetButton());
    const unanswered = element('div', 'dpnb-picker-unanswered');
    this._unanswered = new Views(unanswered, () => this._unansweredButton());
    this.node.append(this._notice, this._query, this._current, this._answer, this._refine, unanswered, this._choosing);
    this.node.append(this._status, this._progress, this._refusal);
    this._build(presets);
  }

  private _build(presets: HTMLElement): void {
    const label = element('label', 'dpnb-picker-slider-label', 'Budget ', this._label);
    label.htmlFor = this._slider.id;
    const ends = element(
      'div',
      'dpnb-picker-range-labels',
      element('span', '', 'small'),
      element('span', '', 'all that remains')
    );
    const bar = element('div', 'dpnb-picker-bar', this._bar, this._barCost);
    ends.setAttribute('aria-hidden', 'true');
    bar.setAttribute('aria-hidden', 'true'); // the text below states the same
    const list = element('dl', 'dpnb-picker-list');
    for (const { name, value } of [this._cost, this._error, this._relativeError, this._after, this._times]) {
      list.append(name, value);
    }
    this._relativeError.value.after(element('dt', '', 'Compare with'), element('dd', '', this._reference));
    const buttons = element('div', 'dpnb-picker-buttons', this._release, ' ', this._code);
    this._choosing.append(presets, label, this._slider, ends, bar, list, buttons, this._facts);
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
    this._presets.update(state.presets);
    this._unanswered.update(state.unanswered);
    this._facts.replaceChildren(...state.facts.map(text => element('li', '', text)));
    this._slider.max = String(Math.max(state.options.length - 1, 0));
    this._slider.value = String(this._indexOf(state));
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
    this.node.classList.add('dpnb-mod-inactive');
    for (const control of this.node.querySelectorAll<HTMLInputElement | HTMLButtonElement>('input, button')) {
      control.disabled = true;
    }
    setText(this._progress, '');
    setText(this._status, 'The kernel was restarted or shut down. Run this cell again to use the picker.');
  }

  /** Move the focus to the answer. */
  focusAnswer(): void {
    this._answer.focus({ preventScroll: true });
  }

  /** Whether the reader can choose a budget now. */
  get isChoosing(): boolean {
    return !this._choosing.hidden && !this._isReplaced;
  }

  private _drawAnswer(state: IPickerState): void {
    const isAnswered = state.phase === 'answered';
    const html = state.answer?.html ?? '';
    if (this._answer.dataset.shown !== html) {
      this._answer.dataset.shown = html;
      this._answer.innerHTML = html; // rendered and escaped by dpnb in the kernel, like any other HTML output
    }
    this._answer.hidden = state.answer === null;
    this._query.hidden = state.answer !== null; // the answer starts with the same text
    setText(
      this._current,
      state.current === null ? '' : `The answer is ${state.current}. Refining it costs only the difference.`
    );
    this._choosing.hidden = (isAnswered && !this._isOpen) || state.options.length === 0;
    this._current.hidden = state.current === null || this._choosing.hidden;
    this._refine.hidden = !isAnswered || this._isOpen || state.options.length === 0;
    setText(this._release, state.current === null ? 'Release' : 'Refine');
    this._release.disabled = false;
    setText(this._status, isAnswered && state.code_hint ? `In code, ${state.code_hint}.` : '');
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
      this._drawOption();
    }
  }

  private _drawOption(): void {
    const option = this._state?.options[this._slider.valueAsNumber];
    if (!option) {
      return;
    }
    setText(this._label, option.label);
    setText(this._cost.value, option.cost);
    setText(this._error.value, option.error);
    const share = this._relativeTo(option);
    setText(this._relativeError.value, share ?? '');
    this._relativeError.name.hidden = this._relativeError.value.hidden = share === null;
    setText(this._after.value, option.after);
    setText(this._times.value, option.max_repetitions);
    const [target, value] = Object.entries(option.target)[0] ?? ['mu', ''];
    setText(this._code, `.release(${target}=${value})`);
    this._slider.setAttribute('aria-valuetext', `${option.label}: ${option.error}; ${option.after}`);
    this._bar.style.width = `${100 * option.remaining}%`;
    const now = Math.max(...(this._state?.options.map(one => one.remaining) ?? [0]));
    this._barCost.style.width = `${100 * Math.max(now - option.remaining, 0)}%`;
    this._reference.parentElement?.toggleAttribute('hidden', option.error_value === null);
    this._reference.parentElement?.previousElementSibling?.toggleAttribute('hidden', option.error_value === null);
    for (const button of this.node.querySelectorAll<HTMLButtonElement>('.dpnb-picker-preset')) {
      button.setAttribute('aria-pressed', String(button.dataset.option === this._slider.value));
    }
  }

  /** The expected error relative to the value that the reader entered, or else to the current answer. */
  private _relativeTo(option: IOption): string | null {
    const reference = this._reference.valueAsNumber;
    if (Number.isFinite(reference) && reference !== 0 && option.error_value !== null) {
      const percent = (100 * option.error_value) / Math.abs(reference);
      return `± ${Number(percent.toPrecision(2))}% of ${reference}`;
    }
    return option.relative_error;
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
        setText(error, this._state?.options[preset.option]?.error ?? '');
      }
    };
  }

  private _onRelease(): void {
    const option = this._state?.options[this._slider.valueAsNumber];
    if (!option || this._timer !== null) {
      return;
    }
    this._request(option.target);
  }

  private _request(target: Record<string, string>): void {
    this._refusal.hidden = true;
    this._memory.pending = `${Date.now()}-${(nRequests += 1)}`;
    this._startTimeout();
    this._actions.release(target, this._memory.pending);
  }

  /** Disable further releases until the kernel has sent the outcome of the last. */
  private _startTimeout(): void {
    this._release.disabled = true;
    setText(this._status, 'Releasing. A busy kernel releases when it is idle.');
    // The button remains disabled: a busy kernel has received the request, and would receive a second one.
    this._timer ??= this._timeout();
  }

  private _timeout(): ReturnType<typeof setTimeout> {
    return setTimeout(
      () =>
        setText(
          this._status,
          'No reply yet: a busy kernel replies when it is idle; after a restart, run this cell again.'
        ),
      TIMEOUT
    );
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
    let target: Record<string, string> = {};
    const node = element('button', 'dpnb-picker-unanswered-release');
    node.type = 'button';
    node.addEventListener('click', () => {
      if (this._timer === null) {
        this._request(target);
      }
    });
    return {
      node,
      update: (release): void => {
        target = release.target;
        setText(node, `${release.label} was charged but not answered: repeat it for free`);
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

/** A line of the list: a term and its description. */
function fact(name: string, title: string): { name: HTMLElement; value: HTMLElement } {
  return { name: element('dt', '', title), value: element('dd', `dpnb-picker-${name}`) };
}

/** Whether a control uses a key: an input uses every key, a button those that press it. */
function isUsed({ target, key }: KeyboardEvent): boolean {
  return target instanceof HTMLInputElement || (target instanceof HTMLButtonElement && [' ', 'Enter'].includes(key));
}

/** The budget of an option as a number; infinity for the whole remaining budget. */
function amount({ target }: IOption): number {
  return target.mu === undefined ? Infinity : Number(target.mu);
}
