import { beforeEach, describe, expect, it, vi } from 'vitest';

import { PickerView } from '../../picker/picker';
import { type IPickerState, type IOption, isPickerState } from '../../protocol/picker';
import { found, press, texts } from '../fakeModel';

const option = (mu: string, remaining: number, error_value: number | null): IOption => ({
  target: { mu },
  label: `mu ${mu}`,
  cost: `mu ${mu}, some of the budget`,
  error: error_value === null ? 'unknown: it depends on nothing' : `± ${error_value} mdvis at 95%`,
  error_value,
  relative_error: null,
  after: `${100 * remaining}% left`,
  remaining,
  max_repetitions: '3'
});

function state(changes: Partial<IPickerState> = {}): IPickerState {
  const all = { ...option('1', 0, 0.1), target: { share: '1' }, label: 'the whole remaining budget' };
  return {
    version: 2,
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
      { id: 'glance', label: 'Rough estimate', meaning: '1% of what remains', option: 0 },
      { id: 'print', label: 'For publication', meaning: '20% of what remains', option: 2 }
    ],
    start: 0,
    facts: ['One privacy unit: adds 1.'],
    code_hint: null,
    ...changes
  };
}

/** The id of the release that was asked for last: the kernel gives it back. */
const lastId = (): string => String(release.mock.lastCall?.[1]);

const ANSWERED: Partial<IPickerState> = {
  phase: 'answered',
  current: 'already known at mu 0.2',
  answer: { html: '<b>2.7</b>', text: '2.7' },
  code_hint: '.release(mu=0.2) returns this answer again at no cost'
};

const release = vi.fn();
const refresh = vi.fn();
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
  view = new PickerView({ release, refresh });
  document.body.replaceChildren(view.node);
  view.update(state());
});

describe('PickerView, asking,', () => {
  it('shows the figures of the place where the slider stands', () => {
    slide(1);
    expect(get('budget').textContent).toBe('mu 0.2');
    expect(get('cost').textContent).toBe('mu 0.2, some of the budget');
    expect(get('error').textContent).toBe('± 2 mdvis at 95%');
    expect(get('after').textContent).toBe('80% left');
    expect(get('code').textContent).toBe('.release(mu=0.2)');
    expect(slider().getAttribute('aria-valuetext')).toBe('mu 0.2: ± 2 mdvis at 95%; 80% left');
  });

  it('has a preset for each name, which says what it means and gives, and moves the slider', () => {
    expect(texts(view.node, '.dpnb-picker-preset')).toEqual([
      'Rough estimate 1% of what remains ± 4 mdvis at 95%',
      'For publication 20% of what remains ± 0.8 mdvis at 95%'
    ]);
    found(view.node, '[data-preset=print]').click();
    expect(slider().value).toBe('2');
    expect(found(view.node, '[data-preset=print]').getAttribute('aria-pressed')).toBe('true');
    expect(found(view.node, '[data-preset=glance]').getAttribute('aria-pressed')).toBe('false');
  });

  it('compares the error with a figure of the reader’s', () => {
    const reference = input('reference');
    expect(get('share').hidden).toBe(true);
    reference.value = '-8';
    reference.dispatchEvent(new Event('input'));
    slide(1);
    expect(get('share').textContent).toBe('± 25% of -8');
    reference.value = '0';
    reference.dispatchEvent(new Event('input'));
    expect(get('share').hidden).toBe(true);
  });

  it('offers no comparison where the error is unknown', () => {
    view.update(state({ options: [option('0.1', 0.9, null)] }));
    expect(get('error').textContent).toBe('unknown: it depends on nothing');
    expect(get('reference').parentElement?.hidden).toBe(true);
  });

  it('stays where the reader put it when the budget changes', () => {
    slide(2);
    view.update(
      state({
        options: [option('0.1', 0.9, 4), option('0.45', 0.5, 1), { ...option('1', 0, 1), target: { share: '1' } }]
      })
    );
    expect(get('budget').textContent).toBe('mu 0.45');
    slide(2);
    view.update(state());
    expect(get('budget').textContent).toBe('the whole remaining budget');
  });

  it('follows the kernel’s proposal until the reader chooses', () => {
    view.update(state({ start: 1 }));
    expect(get('budget').textContent).toBe('mu 0.2');
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
    expect(release.mock.calls).toEqual([[{ mu: '0.2' }, expect.any(String)]]);
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
    expect(release).toHaveBeenCalledWith({ share: '1' }, expect.any(String));
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
    expect(get('answer').innerHTML).toBe('<b>2.7</b>');
    expect(get('choosing').hidden).toBe(true);
    expect(get('status').textContent).toBe('In code, .release(mu=0.2) returns this answer again at no cost.');
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
  const first = new PickerView({ release, refresh }, memory);
  document.body.replaceChildren(first.node);
  first.update(state());
  found<HTMLInputElement>(first.node, '.dpnb-picker-slider').value = '1';
  found(first.node, '.dpnb-picker-slider').dispatchEvent(new Event('input'));
  found(first.node, '.dpnb-picker-release').click();
  const second = new PickerView({ release, refresh }, memory);
  second.update(state());
  found(second.node, '.dpnb-picker-release').click();
  expect(release).toHaveBeenCalledOnce();
  expect(found(second.node, '.dpnb-picker-budget').textContent).toBe('mu 0.2');
  first.dispose();
  second.dispose();
});

it('waits no longer in any view once one of them has heard of the outcome', () => {
  vi.useFakeTimers();
  const memory = { chosen: null, pending: null };
  const first = new PickerView({ release, refresh }, memory);
  const views = [first, new PickerView({ release, refresh }, memory)];
  views.forEach(one => one.update(state()));
  found(first.node, '.dpnb-picker-release').click();
  views.forEach(one => one.update(state())); // drawn while the release is under way
  views.forEach(one => one.update(state({ ...ANSWERED, completed_request: lastId() })));
  vi.advanceTimersByTime(60_000);
  for (const one of views) {
    expect(found(one.node, '.dpnb-picker-status').textContent).toContain('returns this answer again');
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
  expect(get('answer').innerHTML).toBe('<b>2.7</b>');
  const controls = [...view.node.querySelectorAll<HTMLInputElement>('input, button')];
  expect(controls.length).toBeGreaterThan(3);
  expect(controls.every(control => control.disabled)).toBe(true);
  get('refine').click();
  get('release').click();
  expect(release).not.toHaveBeenCalled();
  expect(refresh).not.toHaveBeenCalled();
});

it('offers what was paid and not answered again, exactly as it was asked', () => {
  view.update(state({ options: [], presets: [], unanswered: [{ target: { mu: '7/50' }, label: 'mu 0.14' }] }));
  expect(get('unanswered-release').textContent).toBe('mu 0.14 was charged but not answered: repeat it for free');
  get('unanswered-release').click();
  expect(release).toHaveBeenCalledWith({ mu: '7/50' }, expect.any(String));
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
    expect(get('current').textContent).toContain('already known at mu 0.2');
    expect(get('release').textContent).toBe('Refine');
    view.update(state(ANSWERED)); // what was asked for arrives
    expect(get('choosing').hidden).toBe(false);
  });

  it('closes the slider when the refined answer comes', () => {
    get('refine').click();
    get('release').click();
    view.update(state({ ...ANSWERED, answer: { html: '<b>2.71</b>', text: '2.71' }, completed_request: lastId() }));
    expect(get('choosing').hidden).toBe(true);
    expect(get('answer').innerHTML).toBe('<b>2.71</b>');
  });

  it('offers nothing more when nothing is left', () => {
    view.update(state({ ...ANSWERED, options: [], presets: [] }));
    expect(get('refine').hidden).toBe(true);
    expect(get('choosing').hidden).toBe(true);
  });
});

it('reads what the kernel writes and nothing else', () => {
  expect(isPickerState(state())).toBe(true);
  const broken: unknown[] = [
    null,
    {},
    { ...state(), version: 1 },
    { ...state(), options: [{}] },
    { ...state(), presets: 3 }
  ];
  expect(broken.map(isPickerState)).toEqual(broken.map(() => false));
});
