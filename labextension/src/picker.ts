import { element, setText, Views, type IView } from './dom';
import { WhyLink } from './why';
import type { IPaid, IPickerState, IPreset, IRung } from './pickerState';

/** What the picker asks of the kernel. */
export interface IPickerActions {
  /** @param id Comes back as `done` in the state that tells what became of it. */
  release(target: Record<string, string>, id: string): void;
  refresh(): void;
}

/** What must outlive one drawing of a picker: the kernel has it drawn anew when it is answered. */
export interface IPickerMemory {
  /** Budget that the reader chose; null until then. */
  chosen: number | null;
  /** The release that the reader waits for. */
  pending: string | null;
}

/** A kernel that says nothing for so long (milliseconds) may have been restarted. */
const PATIENCE = 10_000;

let pickers = 0;
let asked = 0;

/**
 * A question with a slider over what it may cost, and after its release the answer.
 *
 * It is updated in place: the slider and the figure that the reader typed stay when the budget changes elsewhere.
 */
export class PickerView {
  readonly node = element('section', 'dpnb-picker');
  private readonly _notice = element('p', 'dpnb-notice');
  private readonly _words = element('h4', 'dpnb-picker-words');
  private readonly _answer = element('div', 'dpnb-picker-answer');
  private readonly _known = element('p', 'dpnb-picker-known');
  private readonly _asking = element('div', 'dpnb-picker-asking');
  private readonly _presets: Views<IPreset>;
  private readonly _paid: Views<IPaid>;
  private readonly _slider = element('input', 'dpnb-picker-slider');
  private readonly _label = element('output', 'dpnb-picker-budget');
  private readonly _bar = element('div', 'dpnb-picker-bar-after');
  private readonly _barCost = element('div', 'dpnb-picker-bar-cost');
  private readonly _cost = fact('cost', 'Cost');
  private readonly _error = fact('error', 'Expected error');
  private readonly _share = fact('share', 'That is');
  private readonly _after = fact('after', 'Headroom after');
  private readonly _times = fact('times', 'Questions like this one left');
  private readonly _reference = element('input', 'dpnb-picker-reference');
  private readonly _release = element('button', 'dpnb-picker-release');
  private readonly _refine = element('button', 'dpnb-picker-refine', 'Refine…');
  private readonly _code = element('code', 'dpnb-picker-code');
  private readonly _facts = element('ul', 'dpnb-picker-facts');
  private readonly _status = element('p', 'dpnb-picker-status');
  private readonly _doing = element('p', 'dpnb-picker-doing');
  private readonly _refusal = element('div', 'dpnb-picker-refusal');
  private _state: IPickerState | null = null;
  private _isOpen = false;
  private _isRetired = false;
  private _waiting: ReturnType<typeof setTimeout> | null = null;

  constructor(
    private readonly _actions: IPickerActions,
    private readonly _memory: IPickerMemory = { chosen: null, pending: null }
  ) {
    const id = `dpnb-picker-${(pickers += 1)}`;
    this._words.id = `${id}-words`;
    this.node.setAttribute('aria-labelledby', this._words.id);
    // Keys that a control uses are its own; all others are the notebook's, as in any other output.
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
    this._answer.tabIndex = -1; // the keyboard goes there when it takes the slider's place
    this._slider.type = 'range';
    this._slider.min = '0';
    this._slider.step = '1';
    this._slider.id = `${id}-slider`;
    this._label.htmlFor.add(this._slider.id);
    this._slider.addEventListener('input', () => this._choose(this._slider.valueAsNumber));
    this._reference.type = 'number';
    this._reference.step = 'any';
    this._reference.placeholder = 'a figure that you expect';
    this._reference.setAttribute('aria-label', 'Compare the expected error with this figure');
    this._reference.addEventListener('input', () => this._drawRung());
    this._release.type = this._refine.type = 'button';
    this._release.addEventListener('click', () => this._onRelease());
    this._refine.addEventListener('click', () => this._onRefine());
    const presets = element('div', 'dpnb-picker-presets');
    presets.setAttribute('role', 'group');
    presets.setAttribute('aria-label', 'Budgets with a name');
    this._presets = new Views(presets, () => this._presetButton());
    const paid = element('div', 'dpnb-picker-unanswered');
    this._paid = new Views(paid, () => this._paidButton());
    this.node.append(this._notice, this._words, this._known, this._answer, this._refine, paid, this._asking);
    this.node.append(this._status, this._doing, this._refusal);
    this._build(presets);
  }

  private _build(presets: HTMLElement): void {
    const label = element('label', 'dpnb-picker-slider-label', 'Budget ', this._label);
    label.htmlFor = this._slider.id;
    const ends = element(
      'div',
      'dpnb-picker-ends',
      element('span', '', 'little'),
      element('span', '', 'all that is left')
    );
    const bar = element('div', 'dpnb-picker-bar', this._bar, this._barCost);
    ends.setAttribute('aria-hidden', 'true');
    bar.setAttribute('aria-hidden', 'true'); // the words below say the same
    const list = element('dl', 'dpnb-picker-list');
    for (const { name, value } of [this._cost, this._error, this._share, this._after, this._times]) {
      list.append(name, value);
    }
    this._share.value.after(element('dt', '', 'Compare with'), element('dd', '', this._reference));
    const buttons = element('div', 'dpnb-picker-buttons', this._release, ' ', this._code);
    this._asking.append(presets, label, this._slider, ends, bar, list, buttons, this._facts);
  }

  /** Show what the kernel says. */
  update(state: IPickerState): void {
    if (state.done === this._memory.pending) {
      this._memory.pending = null;
    }
    const isNew = state.phase === 'answered' && state.answer?.html !== this._state?.answer?.html;
    this._state = state;
    if (isNew) {
      this._isOpen = false;
    }
    this.node.classList.toggle('dpnb-mod-unreal', state.notice !== null);
    setText(this._notice, state.notice ?? '');
    this._notice.hidden = state.notice === null;
    setText(this._words, state.words);
    this._drawAnswer(state);
    this._drawRefusal(state);
    this._presets.update(state.presets);
    this._paid.update(state.unanswered);
    this._facts.replaceChildren(...state.facts.map(text => element('li', '', text)));
    this._slider.max = String(Math.max(state.rungs.length - 1, 0));
    this._slider.value = String(this._place(state));
    this._drawRung();
    // Two views of one picker share the memory for a moment, and either may be the first to hear of the outcome.
    if (this._memory.pending !== null) {
      this._wait();
    } else {
      this._stopWaiting();
    }
    if (this._isRetired) {
      this.retire();
    }
  }

  /** Show that the kernel which would release is gone: what is known stays to be read, and nothing can be asked. */
  retire(): void {
    this._isRetired = true;
    this._stopWaiting();
    this.node.classList.add('dpnb-mod-inactive');
    for (const control of this.node.querySelectorAll<HTMLInputElement | HTMLButtonElement>('input, button')) {
      control.disabled = true;
    }
    setText(this._doing, '');
    setText(this._status, 'The kernel was restarted or shut down. Run this cell again to use the picker.');
  }

  /** Move the keyboard to the answer. */
  focusAnswer(): void {
    this._answer.focus({ preventScroll: true });
  }

  /** Whether the reader can choose a budget now. */
  get isAsking(): boolean {
    return !this._asking.hidden && !this._isRetired;
  }

  private _drawAnswer(state: IPickerState): void {
    const isAnswered = state.phase === 'answered';
    const html = state.answer?.html ?? '';
    if (this._answer.dataset.shown !== html) {
      this._answer.dataset.shown = html;
      this._answer.innerHTML = html; // made and escaped by dpnb in the kernel, like any other HTML output
    }
    this._answer.hidden = state.answer === null;
    this._words.hidden = state.answer !== null; // the answer begins with the same words
    setText(
      this._known,
      state.known === null ? '' : `This is ${state.known}. Refining it pays only for what is missing.`
    );
    this._asking.hidden = (isAnswered && !this._isOpen) || state.rungs.length === 0;
    this._known.hidden = state.known === null || this._asking.hidden;
    this._refine.hidden = !isAnswered || this._isOpen || state.rungs.length === 0;
    setText(this._release, state.known === null ? 'Release' : 'Refine');
    this._release.disabled = false;
    setText(this._status, isAnswered && state.again ? `In code, ${state.again}.` : '');
  }

  private _drawRefusal({ refusal }: IPickerState): void {
    this._refusal.hidden = refusal === null;
    if (refusal) {
      const why = new WhyLink();
      why.update(refusal.explanation, refusal.text);
      this._refusal.replaceChildren(element('strong', '', refusal.title), `: ${refusal.message} `, why.node);
    }
  }

  /** The rung to stand on: the reader's choice as near as there is one, or the kernel's proposal. */
  private _place({ rungs, start }: IPickerState): number {
    const { chosen } = this._memory;
    if (chosen === null) {
      return start;
    }
    const far = rungs.map(rung => Math.abs(Math.log(amount(rung)) - Math.log(chosen)));
    return chosen === Infinity ? rungs.length - 1 : far.indexOf(Math.min(...far));
  }

  private _choose(place: number): void {
    const rung = this._state?.rungs[place];
    if (rung) {
      this._memory.chosen = amount(rung);
      this._slider.value = String(place);
      this._drawRung();
    }
  }

  private _drawRung(): void {
    const rung = this._state?.rungs[this._slider.valueAsNumber];
    if (!rung) {
      return;
    }
    setText(this._label, rung.label);
    setText(this._cost.value, rung.cost);
    setText(this._error.value, rung.error);
    const share = this._relative(rung);
    setText(this._share.value, share ?? '');
    this._share.name.hidden = this._share.value.hidden = share === null;
    setText(this._after.value, rung.after);
    setText(this._times.value, rung.times);
    const [target, value] = Object.entries(rung.target)[0] ?? ['mu', ''];
    setText(this._code, `.release(${target}=${value})`);
    this._slider.setAttribute('aria-valuetext', `${rung.label}: ${rung.error}; ${rung.after}`);
    this._bar.style.width = `${100 * rung.left}%`;
    const now = Math.max(...(this._state?.rungs.map(one => one.left) ?? [0]));
    this._barCost.style.width = `${100 * Math.max(now - rung.left, 0)}%`;
    this._reference.parentElement?.toggleAttribute('hidden', rung.size === null);
    this._reference.parentElement?.previousElementSibling?.toggleAttribute('hidden', rung.size === null);
    for (const button of this.node.querySelectorAll<HTMLButtonElement>('.dpnb-picker-preset')) {
      button.setAttribute('aria-pressed', String(button.dataset.rung === this._slider.value));
    }
  }

  /** The expected error beside the reader's own figure, or else beside the answer known by now. */
  private _relative(rung: IRung): string | null {
    const reference = this._reference.valueAsNumber;
    if (Number.isFinite(reference) && reference !== 0 && rung.size !== null) {
      const percent = (100 * rung.size) / Math.abs(reference);
      return `± ${Number(percent.toPrecision(2))}% of ${reference}`;
    }
    return rung.share;
  }

  private _presetButton(): IView<IPreset> {
    const label = element('span', 'dpnb-picker-preset-label');
    const meaning = element('span', 'dpnb-picker-preset-meaning');
    const error = element('span', 'dpnb-picker-preset-error');
    const node = element('button', 'dpnb-picker-preset', label, ' ', meaning, ' ', error);
    node.type = 'button';
    node.addEventListener('click', () => this._choose(Number(node.dataset.rung)));
    return {
      node,
      update: (preset): void => {
        node.dataset.preset = preset.id;
        node.dataset.rung = String(preset.rung);
        setText(label, preset.label);
        setText(meaning, preset.meaning);
        setText(error, this._state?.rungs[preset.rung]?.error ?? '');
      }
    };
  }

  private _onRelease(): void {
    const rung = this._state?.rungs[this._slider.valueAsNumber];
    if (!rung || this._waiting !== null) {
      return;
    }
    this._ask(rung.target);
  }

  private _ask(target: Record<string, string>): void {
    this._refusal.hidden = true;
    this._memory.pending = `${Date.now()}-${(asked += 1)}`;
    this._wait();
    this._actions.release(target, this._memory.pending);
  }

  /** Let nothing else be released until the kernel has said what became of the last. */
  private _wait(): void {
    this._release.disabled = true;
    setText(this._status, 'Releasing. A kernel that is busy releases when it is done.');
    // The button stays as it is: a kernel that is only busy has the request, and would be asked for two.
    this._waiting ??= this._patience();
  }

  private _patience(): ReturnType<typeof setTimeout> {
    return setTimeout(
      () => setText(this._status, 'No answer yet: a busy kernel gives it later; after a restart, run this cell again.'),
      PATIENCE
    );
  }

  /** Show what a release that lasts is doing: in a line of its own, which no screen reader repeats every second. */
  tell(doing: string): void {
    setText(this._doing, this._isRetired ? '' : doing);
    if (this._waiting !== null) {
      clearTimeout(this._waiting); // a kernel that tells is there
      this._waiting = this._patience();
    }
  }

  private _paidButton(): IView<IPaid> {
    let target: Record<string, string> = {};
    const node = element('button', 'dpnb-picker-paid');
    node.type = 'button';
    node.addEventListener('click', () => {
      if (this._waiting === null) {
        this._ask(target);
      }
    });
    return {
      node,
      update: (paid): void => {
        target = paid.target;
        setText(node, `${paid.label} is paid and was not answered: try again, free`);
      }
    };
  }

  private _onRefine(): void {
    this._isOpen = true;
    if (this._state) {
      this._drawAnswer(this._state);
    }
    this._drawRung();
    this._slider.focus();
    this._actions.refresh();
  }

  private _stopWaiting(): void {
    if (this._waiting !== null) {
      clearTimeout(this._waiting);
      this._waiting = null;
    }
  }

  dispose(): void {
    this._stopWaiting();
  }
}

/** A line of the list: what it is called and what it says. */
function fact(name: string, title: string): { name: HTMLElement; value: HTMLElement } {
  return { name: element('dt', '', title), value: element('dd', `dpnb-picker-${name}`) };
}

/** Whether a control has a use for a key: an input for every one, a button for those that press it. */
function isUsed({ target, key }: KeyboardEvent): boolean {
  return target instanceof HTMLInputElement || (target instanceof HTMLButtonElement && [' ', 'Enter'].includes(key));
}

/** The budget of a rung as a number; all that is left is more than any other. */
function amount({ target }: IRung): number {
  return target.mu === undefined ? Infinity : Number(target.mu);
}
