import { beforeEach, describe, expect, it, vi } from 'vitest';

import { PickerView } from '../../picker/picker';
import { type IPickerState, type IOption, isPickerState } from '../../protocol/messages';
import { found, press, texts } from '../fakeModel';
import { CURRENT, LOST } from '../fixture';

const option = (mu: string, remaining: number, error_value: number | null): IOption => ({
  target: { mu },
  cost: `${10 * Number(mu)}% of the budget`,
  loss: `mu ${mu}`,
  confirm: null,
  error: error_value === null ? 'unknown' : `± ${error_value} mdvis at 95% (noise)`,
  errors: null,
  error_value,
  in_one_release: null,
  relative_error: null,
  after: `${100 * remaining}% left`,
  remaining,
  max_repetitions: '3 more queries at this cost'
});

function state(changes: Partial<IPickerState> = {}): IPickerState {
  const all = { ...option('1', 0, 0.1), target: { share: '1' }, cost: '100.0% of the budget, all that is left' };
  return {
    version: 7,
    phase: 'choosing',
    query: 'mean of mdvis by coins',
    notice: null,
    session: 'rand-hie',
    current: null,
    answer: null,
    refusal: null,
    unanswered: [],
    completed_request: null,
    options: [option('0.1', 0.9, 4), option('0.2', 0.8, 2), option('0.5', 0.5, 0.8), all],
    presets: [
      {
        id: 'glance',
        label: 'Rough estimate',
        meaning: '1% of what is left',
        error: '± 4 mdvis at 95% (noise)',
        option: 0
      },
      { id: 'print', label: 'For publication', meaning: '20% of what is left', error: 'error unknown', option: 2 }
    ],
    start: 0,
    facts: ['One privacy unit: adds 1.'],
    count_step: null,
    count_answer: null,
    ask: null,
    asked: null,
    ...changes
  };
}

/** The id of the release that was asked for last: the kernel gives it back. */
const lastId = (): string => String(release.mock.lastCall?.[1]);

const lastCountId = (): string => String(releaseCount.mock.lastCall?.[1]);

const ANSWERED: Partial<IPickerState> = {
  phase: 'answered',
  current: '2.0% of the budget (mu 0.2)',
  answer: { html: '<b>2.7</b>', text: '2.7', hint: '.release(mu=0.2) returns this answer again at no cost' }
};

const release = vi.fn();
const releaseCount = vi.fn();
const askCurator = vi.fn();
const refresh = vi.fn();
const reconnect = vi.fn();
let view: PickerView;

const get = (name: string): HTMLElement => found(view.node, `.dpnb-picker-${name}`);
const input = (name: string): HTMLInputElement => found(view.node, `.dpnb-picker-${name}`);
const slider = (): HTMLInputElement => input('slider');
const slide = (place: number): void => {
  slider().value = String(place);
  slider().dispatchEvent(new Event('input'));
};

beforeEach(() => {
  vi.clearAllMocks();
  view = new PickerView({ release, releaseCount, askCurator, refresh, reconnect });
  document.body.replaceChildren(view.node);
  view.update(state());
});

describe('PickerView, asking,', () => {
  it('shows the figures of the place where the slider stands', () => {
    slide(1);
    expect(get('cost').textContent).toBe('2% of the budget');
    expect(get('head').textContent).toBe('Cost 2% of the budget (mu 0.2)');
    expect(found(get('head'), '.dpnb-term').textContent).toBe('mu');
    expect(get('times').textContent).toBe('3 more queries at this cost');
    expect(get('error').textContent).toBe('± 2 mdvis at 95% (noise)');
    expect(get('after').textContent).toBe('80% left');
    expect(get('code').textContent).toBe('.release(mu=0.2)');
    expect(slider().getAttribute('aria-valuetext')).toBe('2% of the budget: ± 2 mdvis at 95% (noise); 80% left');
  });

  it('has a preset for each name, which says what it means and gives, and moves the slider', () => {
    expect(texts(view.node, '.dpnb-picker-preset')).toEqual([
      'Rough estimate 1% of what is left ± 4 mdvis at 95% (noise)',
      'For publication 20% of what is left error unknown'
    ]);
    found(view.node, '[data-preset=print]').click();
    expect(slider().value).toBe('2');
    expect(found(view.node, '[data-preset=print]').getAttribute('aria-pressed')).toBe('true');
    expect(found(view.node, '[data-preset=glance]').getAttribute('aria-pressed')).toBe('false');
  });

  it('shows the errors of many statistics as a table, with what they assume below it', () => {
    const errors = [
      ['column', 'count', 'mean'],
      ['age', '± 375', '± 0.12 to ± 0.59']
    ];
    view.update(state({ options: [{ ...option('0.1', 0.9, null), error: 'at 95% (noise)', errors }] }));
    expect(texts(view.node, '.dpnb-picker-errors td')).toEqual(['±\u00a0375', '±\u00a00.12 to ±\u00a00.59']);
    expect(texts(view.node, '.dpnb-picker-note')).toEqual(['at 95% (noise)']);
  });

  it('compares the error with a figure of the reader’s', () => {
    const reference = input('reference');
    expect(get('share').parentElement?.hidden).toBe(true);
    reference.value = '-8';
    reference.dispatchEvent(new Event('input'));
    slide(1);
    expect(get('share').textContent).toBe('± 25% of -8');
    reference.value = '0';
    reference.dispatchEvent(new Event('input'));
    expect(get('share').parentElement?.hidden).toBe(true);
  });

  it('offers no comparison where the error is unknown', () => {
    view.update(state({ options: [option('0.1', 0.9, null)] }));
    expect(get('error').textContent).toBe('unknown');
    expect(get('compare').parentElement?.hidden).toBe(true);
  });

  it('stays where the reader put it when the budget changes', () => {
    slide(2);
    view.update(
      state({
        options: [option('0.1', 0.9, 4), option('0.45', 0.5, 1), { ...option('1', 0, 1), target: { share: '1' } }]
      })
    );
    expect(get('cost').textContent).toBe('4.5% of the budget');
    slide(2);
    view.update(state());
    expect(get('cost').textContent).toBe('100.0% of the budget, all that is left');
  });

  it('follows the kernel’s proposal until the reader chooses', () => {
    view.update(state({ start: 1 }));
    expect(get('cost').textContent).toBe('2% of the budget');
  });

  it('keeps the keys that a control uses, and leaves all others to the notebook around it', () => {
    const heard: string[] = [];
    const hear = (event: Event): void => void heard.push((event as KeyboardEvent).key);
    document.body.addEventListener('keydown', hear);
    for (const control of [slider(), input('reference')]) {
      ['ArrowDown', 'j', 'Enter', 'Escape'].forEach(key => press(control, key));
      expect(control.hasAttribute('data-lm-suppress-shortcuts')).toBe(true);
    }
    [' ', 'Enter'].forEach(key => press(get('release'), key));
    expect(heard).toEqual([]);
    ['j', 'Escape', 'ArrowDown'].forEach(key => press(get('release'), key));
    ['a', 'Enter', 'Escape'].forEach(key => press(get('answer'), key));
    document.body.removeEventListener('keydown', hear);
    expect(heard).toEqual(['j', 'Escape', 'ArrowDown', 'a', 'Enter', 'Escape']);
    expect(view.node.hasAttribute('data-lm-suppress-shortcuts')).toBe(false);
  });

  it('offers losses instead of shares without a budget, and no bar of what is left', () => {
    const withoutBudget = (mu: string): IOption => ({
      ...option(mu, 1, 2),
      cost: `mu ${mu}`,
      after: `no budget: mu ${mu} in total so far`,
      remaining: null,
      max_repetitions: null
    });
    view.update(state({ options: [withoutBudget('0.02'), withoutBudget('0.1'), withoutBudget('0.5')] }));
    slide(1);
    expect(get('head').textContent).toBe('Cost mu 0.1 ');
    expect(texts(get('range-labels'), 'span')).toEqual(['mu 0.02', 'mu 0.5']);
    expect(get('after').textContent).toBe('no budget: mu 0.1 in total so far');
    expect(get('bar').hidden).toBe(true);
    expect(get('times').parentElement?.hidden).toBe(true);
    expect(get('code').textContent).toBe('.release(mu=0.1)');
    view.update(state());
    expect(get('bar').hidden).toBe(false);
    expect(texts(get('range-labels'), 'span')[1]).toBe('100.0%, all that is left');
  });

  it('is loud about a session that is not real', () => {
    view.update(state({ notice: 'REHEARSAL: mock data, not real' }));
    expect(found(view.node, '[role=alert]').textContent).toBe('REHEARSAL: mock data, not real');
  });
});

describe('PickerView, releasing,', () => {
  it('sends the chosen target once, and says that it waits', () => {
    slide(1);
    get('release').click();
    get('release').click();
    expect(release.mock.calls).toEqual([[{ mu: '0.2' }, expect.any(String), false]]);
    expect(get('status').textContent).toContain('Releasing');
    expect(get('release').hasAttribute('disabled')).toBe(true);
  });

  it('tells what a long release is doing, and believes a kernel that tells to be there', () => {
    vi.useFakeTimers();
    slide(1);
    get('release').click();
    for (const second of [1, 9, 17]) {
      vi.advanceTimersByTime(8000);
      view.showProgress(`adding up rows, ${second} s`);
    }
    expect(get('progress').textContent).toBe('adding up rows, 17 s');
    expect(get('status').textContent).toContain('Releasing');
    view.showProgress('');
    expect(get('progress').textContent).toBe('');
    vi.useRealTimers();
  });

  it('sends a share when the whole remaining budget is wanted', () => {
    slide(3);
    get('release').click();
    expect(release).toHaveBeenCalledWith({ share: '1' }, expect.any(String), false);
  });

  it('says what to do when the kernel does not answer', () => {
    vi.useFakeTimers();
    get('release').click();
    vi.advanceTimersByTime(60_000);
    expect(get('status').textContent).toContain('run this cell again');
    slide(2);
    get('release').click();
    expect(release).toHaveBeenCalledOnce();
    vi.useRealTimers();
  });

  it('is replaced by the answer, with the code that gives it again', () => {
    get('release').click();
    view.update(state({ ...ANSWERED, completed_request: lastId() }));
    expect(get('answer-body').innerHTML).toBe('<b>2.7</b>');
    expect(get('choosing').hidden).toBe(true);
    expect(get('hint').textContent).toBe('In code, .release(mu=0.2) returns this answer again at no cost.');
    view.focusAnswer();
    expect(document.activeElement).toBe(get('answer'));
  });

  it('shows a refusal with a link to what it means, and lets the reader choose again', () => {
    get('release').click();
    const refusal = { title: 'Refused', message: 'too <much>', explanation: 'budget-exceeded', text: 'A sentence.' };
    view.update(state({ refusal, completed_request: lastId() }));
    expect(get('refusal').textContent).toBe('Refused: too <much> Why?');
    expect(found(get('refusal'), 'a').getAttribute('href')).toBe('#dpnb-explain-budget-exceeded');
    expect(get('release').hasAttribute('disabled')).toBe(false);
    view.update(state());
    expect(get('refusal').hidden).toBe(true);
  });
});

it('goes on waiting when something else arrives first', () => {
  slide(1);
  get('release').click();
  view.update(state({ start: 2 })); // the answer to an earlier refresh
  get('release').click();
  expect(release).toHaveBeenCalledOnce();
  expect(get('status').textContent).toContain('Releasing');
});

it('remembers choice and wait when it is redrawn', () => {
  const memory = { chosen: null, pending: null };
  const first = new PickerView({ release, releaseCount, askCurator, refresh, reconnect }, memory);
  document.body.replaceChildren(first.node);
  first.update(state());
  found<HTMLInputElement>(first.node, '.dpnb-picker-slider').value = '1';
  found(first.node, '.dpnb-picker-slider').dispatchEvent(new Event('input'));
  found(first.node, '.dpnb-picker-release').click();
  const second = new PickerView({ release, releaseCount, askCurator, refresh, reconnect }, memory);
  second.update(state());
  found(second.node, '.dpnb-picker-release').click();
  expect(release).toHaveBeenCalledOnce();
  expect(found(second.node, '.dpnb-picker-cost').textContent).toBe('2% of the budget');
  first.dispose();
  second.dispose();
});

it('waits no longer in any view once one of them has heard of the outcome', () => {
  vi.useFakeTimers();
  const memory = { chosen: null, pending: null };
  const first = new PickerView({ release, releaseCount, askCurator, refresh, reconnect }, memory);
  const views = [first, new PickerView({ release, releaseCount, askCurator, refresh, reconnect }, memory)];
  views.forEach(one => one.update(state()));
  found(first.node, '.dpnb-picker-release').click();
  views.forEach(one => one.update(state())); // drawn while the release is under way
  views.forEach(one => one.update(state({ ...ANSWERED, completed_request: lastId() })));
  vi.advanceTimersByTime(60_000);
  for (const one of views) {
    expect(found(one.node, '.dpnb-picker-status').textContent).toBe('');
    one.dispose();
  }
  vi.useRealTimers();
});

it('can be read but not used once its kernel is gone, whatever arrives afterwards', () => {
  view.update(state(ANSWERED));
  view.retire();
  view.update(state(ANSWERED));
  expect(get('status').textContent).toContain('Run this cell again');
  expect(view.node.classList.contains('dpnb-mod-inactive')).toBe(true);
  expect(get('answer-body').innerHTML).toBe('<b>2.7</b>');
  const controls = [...view.node.querySelectorAll<HTMLInputElement>('input, button')];
  expect(controls.length).toBeGreaterThan(3);
  expect(controls.every(control => control.disabled)).toBe(true);
  get('refine').click();
  get('release').click();
  expect(release).not.toHaveBeenCalled();
  expect(refresh).not.toHaveBeenCalled();
});

it('offers what was paid and not answered again, exactly as it was asked', () => {
  view.update(state({ options: [], presets: [], unanswered: [{ target: { mu: '7/50' }, label: 'mu=0.14' }] }));
  expect(get('unanswered-release').textContent).toBe('mu=0.14 was charged but not answered: repeat it for free');
  get('unanswered-release').click();
  expect(release).toHaveBeenCalledWith({ mu: '7/50' }, expect.any(String), false);
  view.update(state({ ...ANSWERED, completed_request: lastId() }));
  expect(view.node.querySelector('.dpnb-picker-unanswered-release')).toBeNull();
});

describe('PickerView, answered,', () => {
  beforeEach(() => view.update(state(ANSWERED)));

  it('opens the slider again to refine, asks for what is left now, and says that it pays the difference', () => {
    get('refine').click();
    expect(get('choosing').hidden).toBe(false);
    expect(refresh).toHaveBeenCalledOnce();
    expect(document.activeElement).toBe(slider());
    expect(get('current').textContent).toContain('has cost 2.0% of the budget (mu 0.2)');
    expect(get('release').textContent).toBe('Refine');
    view.update(state(ANSWERED)); // what was asked for arrives
    expect(get('choosing').hidden).toBe(false);
  });

  it('closes the slider when the refined answer comes', () => {
    get('refine').click();
    get('release').click();
    view.update(
      state({ ...ANSWERED, answer: { html: '<b>2.71</b>', text: '2.71', hint: null }, completed_request: lastId() })
    );
    expect(get('choosing').hidden).toBe(true);
    expect(get('answer-body').innerHTML).toBe('<b>2.71</b>');
  });

  it('offers nothing more when nothing is left', () => {
    view.update(state({ ...ANSWERED, options: [], presets: [] }));
    expect(get('refine').hidden).toBe(true);
    expect(get('choosing').hidden).toBe(true);
  });
});

describe('PickerView, before a large cost,', () => {
  const large = { ...option('0.5', 0.5, 0.8), confirm: 'Release 50.0% of what is left?' };
  const own = (name: string): HTMLElement => found(get('buttons'), `.dpnb-picker-${name}`);
  const question = (): HTMLElement => own('confirmation');

  beforeEach(() => {
    view.update(state({ options: [option('0.1', 0.9, 4), large], start: 1 }));
    get('release').click();
  });

  it('asks once, in place, and releases when it is confirmed', () => {
    expect(release).not.toHaveBeenCalled();
    expect(question().textContent).toBe('Release 50.0% of what is left?ConfirmCancel');
    expect(get('release').hidden).toBe(true);
    expect(document.activeElement).toBe(own('cancel'));
    own('confirm').click();
    own('confirm').click();
    expect(release.mock.calls).toEqual([[{ mu: '0.5' }, expect.any(String), true]]);
    expect(question().hidden).toBe(true);
    expect(get('release').hasAttribute('disabled')).toBe(true);
  });

  it('releases nothing for a double click, or a key that is held down', () => {
    own('confirm').dispatchEvent(new MouseEvent('click', { detail: 2, bubbles: true }));
    expect(release).not.toHaveBeenCalled();
    const held = new KeyboardEvent('keydown', { key: 'Enter', repeat: true, bubbles: true, cancelable: true });
    own('confirm').dispatchEvent(held);
    expect(held.defaultPrevented).toBe(true);
    own('confirm').dispatchEvent(new MouseEvent('click', { detail: 1, bubbles: true }));
    expect(release).toHaveBeenCalledOnce();
  });

  it('goes back for Cancel and for Escape, which the notebook does not hear', () => {
    own('cancel').click();
    expect(question().hidden).toBe(true);
    expect(document.activeElement).toBe(get('release'));
    get('release').click();
    const heard = vi.fn();
    document.body.addEventListener('keydown', heard);
    press(own('confirm'), 'Escape');
    document.body.removeEventListener('keydown', heard);
    expect(question().hidden).toBe(true);
    expect(heard).not.toHaveBeenCalled();
    expect(release).not.toHaveBeenCalled();
  });

  it('goes back when the budget or the choice changes, since it no longer says what would be released', () => {
    view.update(
      state({ options: [option('0.1', 0.9, 4), { ...large, confirm: 'Release 70.0% of what is left?' }], start: 1 })
    );
    expect(question().hidden).toBe(true);
    get('release').click();
    slide(0);
    expect(question().hidden).toBe(true);
    get('release').click();
    expect(release.mock.calls).toEqual([[{ mu: '0.1' }, expect.any(String), false]]);
  });

  it('stays while a state arrives that changes nothing', () => {
    view.update(state({ options: [option('0.1', 0.9, 4), large], start: 1 }));
    expect(question().hidden).toBe(false);
  });

  it('is not left open by a kernel that ends', () => {
    view.retire();
    expect(question().hidden).toBe(true);
    own('confirm').click();
    expect(release).not.toHaveBeenCalled();
  });
});

describe('PickerView, for a refinement,', () => {
  it('shows what one release at the total would have given', () => {
    const once = '± 0.3 at mu 0.5';
    view.update(state({ options: [{ ...option('0.5', 0.5, 0.8), in_one_release: once }] }));
    expect(get('once').textContent).toBe(once);
    view.update(state({ options: [option('0.5', 0.5, 0.8)] }));
    expect(get('once').parentElement?.hidden).toBe(true);
  });
});

describe('PickerView, with an unknown error,', () => {
  const count_step = {
    text: 'Expected error unknown: it depends on the number of rows.',
    label: 'Release the number of rows first (0.97% of the budget, ± 47 rows)',
    loss: 'mu 0.044',
    target: { mu: '0.044' },
    confirm: null
  };
  const unknown = state({ options: [option('0.1', 0.9, null)], count_step });

  beforeEach(() => view.update(unknown));

  it('shows one line and a button with the cost', () => {
    expect(get('count').textContent).toBe(
      'Expected error unknown: it depends on the number of rows.' +
        'Release the number of rows first (0.97% of the budget, ± 47 rows)ConfirmCancel(mu 0.044)'
    );
    expect(get('count').hidden).toBe(false);
  });

  it('sends the release of the count once, and blocks the other', () => {
    get('count-release').click();
    get('count-release').click();
    get('release').click();
    expect(releaseCount.mock.calls).toEqual([[{ mu: '0.044' }, expect.any(String), false]]);
    expect(release).not.toHaveBeenCalled();
  });

  it('shows the count below, and the picker with its errors', () => {
    get('count-release').click();
    const id = String(releaseCount.mock.lastCall?.[1]);
    const count_answer = { html: '<b>900</b>', text: '900', hint: 'f.count().release(mu=0.044) returns it' };
    view.update(state({ count_answer, completed_request: id }));
    expect(get('count').hidden).toBe(true);
    expect(get('choosing').hidden).toBe(false);
    expect(get('count-answer').textContent).toBe('900In code, f.count().release(mu=0.044) returns it.');
    expect(view.focusAnswer()).toBe(get('count-answer'));
    expect(get('release').hasAttribute('disabled')).toBe(false);
    view.update(state({ ...ANSWERED, count_answer }));
    expect(get('count-answer').hidden).toBe(false);
    expect(view.focusAnswer()).toBe(get('answer'));
  });

  it('offers nothing else while the count comes first', () => {
    view.update({ ...unknown, options: [] });
    expect(get('count').hidden).toBe(false);
    expect(get('choosing').hidden).toBe(true);
    expect(view.isChoosing).toBe(true); // so that it follows counts that are released elsewhere
    get('count-release').click();
    expect(releaseCount).toHaveBeenCalledTimes(1);
  });

  it('confirms a large count, too', () => {
    view.update({ ...unknown, count_step: { ...count_step, confirm: 'Release 40% of what is left?' } });
    get('count-release').click();
    expect(releaseCount).not.toHaveBeenCalled();
    found(get('count'), '.dpnb-picker-confirm').click();
    expect(releaseCount.mock.calls).toEqual([[{ mu: '0.044' }, expect.any(String), true]]);
  });
});

it('reads what the kernel writes and nothing else', () => {
  expect(isPickerState(state())).toBe(true);
  const broken: unknown[] = [
    null,
    {},
    { ...state(), version: 2 },
    { ...state(), options: [{}] },
    { ...state(), presets: 3 }
  ];
  expect(broken.map(isPickerState)).toEqual(broken.map(() => false));
});

describe('PickerView, with a table elsewhere,', () => {
  const button = (): HTMLElement => found(view.node, '.dpnb-picker-release');
  const question = (): HTMLElement => found(view.node, '.dpnb-picker-buttons .dpnb-picker-question');
  const confirm = (): HTMLElement => found(view.node, '.dpnb-picker-buttons .dpnb-picker-confirm');

  it('releases without a confirmation while it is up to date', () => {
    view.showConnection(CURRENT);
    button().click();
    expect(release).toHaveBeenCalledOnce();
  });

  it('has a release confirmed while it is out of date, which confirms no large cost', () => {
    view.showConnection(LOST);
    button().click();
    expect(release).not.toHaveBeenCalled();
    expect(question().textContent).toBe('The figures are out of date: cost and expected error may differ. Release?');
    confirm().click();
    expect(release).toHaveBeenCalledWith({ mu: '0.1' }, lastId(), false);
  });

  it('asks for both at once', () => {
    view.update(state({ options: [{ ...option('0.5', 0.5, 1), confirm: 'Release for 50% of the budget?' }] }));
    view.showConnection(LOST);
    button().click();
    expect(question().textContent).toMatch(/out of date.*Release for 50% of the budget\?$/);
    confirm().click();
    expect(release).toHaveBeenCalledWith({ mu: '0.5' }, lastId(), true);
  });

  it('closes a confirmation whose words no longer apply', () => {
    view.showConnection(LOST);
    button().click();
    view.showConnection(CURRENT);
    expect(button().hidden).toBe(false);
    button().click();
    expect(release).toHaveBeenCalledOnce();
  });

  it('asks the same before the count', () => {
    const step = { text: 'unknown', label: 'Release the count', loss: 'mu 0.1', target: { mu: '0.1' }, confirm: null };
    view.update(state({ count_step: step }));
    view.showConnection(LOST);
    found(view.node, '.dpnb-picker-count-release').click();
    expect(releaseCount).not.toHaveBeenCalled();
    found(view.node, '.dpnb-picker-count .dpnb-picker-confirm').click();
    expect(releaseCount).toHaveBeenCalledWith({ mu: '0.1' }, lastCountId(), false);
  });

  it('keeps the reader’s choice, and reconnects on request', () => {
    slide(2);
    view.showConnection(LOST);
    expect(slider().value).toBe('2');
    found(view.node, '.dpnb-connection-button').click();
    expect(reconnect).toHaveBeenCalledOnce();
  });
});

describe('asking the curator', () => {
  const ASK = {
    options: [
      { target: { mu: '0.1' }, label: '± 4: 1% of the budget' },
      { target: { mu: '0.2' }, label: '± 2: 4% of the budget' }
    ],
    start: 0,
    max_characters: 500
  };
  const REFUSAL = {
    title: 'Refused',
    message: 'nothing is left of your cap',
    explanation: 'budget-exceeded',
    text: ''
  };
  const details = (): HTMLDetailsElement => found(view.node, '.dpnb-picker-ask');
  const select = (): HTMLSelectElement => found(view.node, '.dpnb-picker-ask-option');
  const button = (): HTMLButtonElement => found(view.node, '.dpnb-picker-ask-button');
  const write = (text: string): void => {
    input('ask-why').value = text;
    input('ask-why').dispatchEvent(new Event('input'));
  };

  it('is not offered without a service', () => {
    view.update(state());
    expect(details().hidden).toBe(true);
    expect(view.isAsking).toBe(false);
  });

  it('opens where a release is refused, also with nothing left to choose', () => {
    view.update(state({ ask: ASK }));
    expect([details().hidden, details().open]).toEqual([false, false]);
    view.update(state({ ask: ASK, refusal: REFUSAL, options: [], presets: [] }));
    expect(details().open).toBe(true);
    expect([view.isChoosing, view.isAsking]).toEqual([false, true]);
  });

  it('sends the chosen precision with a reason, once', () => {
    view.update(state({ ask: ASK, refusal: REFUSAL }));
    expect(button().disabled).toBe(true); // a reason is required
    expect(input('ask-why').maxLength).toBe(500);
    select().selectedIndex = 1;
    write('  the report  ');
    button().click();
    button().click();
    expect(askCurator).toHaveBeenCalledTimes(1);
    expect(askCurator).toHaveBeenCalledWith({ mu: '0.2' }, 'the report', expect.any(String));
    const id = String(askCurator.mock.lastCall?.[2]);
    expect(get('status').textContent).toContain('Asking');
    view.update(state({ ask: ASK, asked: 'Request 3 was sent.', completed_request: id }));
    expect(get('asked').textContent).toBe('Request 3 was sent.');
    expect([input('ask-why').value, get('status').textContent]).toEqual(['', '']);
  });

  it('keeps choice and reason while the budget changes', () => {
    view.update(state({ ask: ASK }));
    select().selectedIndex = 1;
    write('the report');
    view.update(state({ ask: structuredClone(ASK), facts: [] }));
    expect([select().selectedIndex, input('ask-why').value]).toEqual([1, 'the report']);
  });

  it('names its controls, and shows texts as text', () => {
    view.update(state({ ask: { ...ASK, options: [{ target: {}, label: '<img src=x>' }] }, asked: '<b>3</b>' }));
    expect(view.node.querySelector('img, b')).toBeNull();
    expect(texts(details(), 'label')).toEqual(['For', 'Reason, which the curator reads']);
    expect([...details().querySelectorAll('label')].map(one => one.control)).toEqual([select(), input('ask-why')]);
  });

  it('ends with the kernel', () => {
    view.update(state({ ask: ASK }));
    view.retire();
    expect([select().disabled, input('ask-why').disabled, button().disabled]).toEqual([true, true, true]);
  });
});
