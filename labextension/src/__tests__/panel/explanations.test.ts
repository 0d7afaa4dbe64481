import { Widget } from '@lumino/widgets';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { HIGHLIGHT_MS } from '../../panel/explanations';
import { LedgerPanel } from '../../panel/panel';
import { followExplanationLinks } from '../../panel/explanationLink';
import { FakeModel, FakeTools, found, live, press, texts } from '../fakeModel';
import { sharedSession, sharedSnapshot } from '../fixture';

let model: FakeModel;
let panel: LedgerPanel;

beforeEach(() => {
  model = new FakeModel();
  panel = new LedgerPanel(model, new FakeTools());
  document.body.replaceChildren();
  Widget.attach(panel, document.body);
});

const entry = (id: string): HTMLElement => found(panel.node, `[data-explanation=${id}]`);
const fold = (): HTMLDetailsElement => found<HTMLDetailsElement>(panel.node, '.dpnb-explanations');

describe('the panel, in plain words,', () => {
  it('has a term and a sentence for everything that the kernel explains', async () => {
    await model.show(live());
    const { explanations } = sharedSnapshot();
    expect(texts(panel.node, '.dpnb-explanation-title')).toEqual(explanations.map(({ title }) => title));
    expect(texts(panel.node, '.dpnb-explanation dd')).toEqual(explanations.map(({ text }) => text));
    expect(entry('unknown').id).toBe('dpnb-explain-unknown');
    expect(fold().open).toBe(false);
  });

  it('marks those that something on show refers to, in words as well', async () => {
    await model.show(live());
    const marked = [...panel.node.querySelectorAll<HTMLElement>('.dpnb-mod-used')];
    expect(marked.map(node => node.dataset.explanation)).toEqual([
      'budget-exceeded',
      'rehearsal',
      'odometers-paused',
      'excluded-units'
    ]);
    expect(found(entry('unknown'), '.dpnb-explanation-used').hidden).toBe(true);
    await model.show(live([sharedSession(1)]));
    expect(entry('budget-exceeded').classList.contains('dpnb-mod-used')).toBe(false);
    expect(entry('odometers-paused').classList.contains('dpnb-mod-used')).toBe(false);
  });

  it('opens at the one that is asked for, lights it up for a moment, and gives it the keyboard', async () => {
    await model.show(live());
    vi.useFakeTimers();
    panel.showExplanation('rehearsal');
    expect(fold().open).toBe(true);
    expect(document.activeElement).toBe(entry('rehearsal'));
    expect(entry('rehearsal').classList.contains('dpnb-mod-highlighted')).toBe(true);
    panel.showExplanation('unknown');
    expect(entry('rehearsal').classList.contains('dpnb-mod-highlighted')).toBe(false);
    vi.advanceTimersByTime(HIGHLIGHT_MS);
    expect(panel.node.querySelector('.dpnb-mod-highlighted')).toBeNull();
    vi.useRealTimers();
  });

  it('opens as a whole when none is named, or one that it does not have', async () => {
    await model.show(live());
    panel.showExplanation(null);
    expect(fold().open).toBe(true);
    expect(document.activeElement).toBe(found(fold(), 'summary'));
    panel.showExplanation('"]');
    expect(document.activeElement).toBe(found(fold(), 'summary'));
  });

  it('finds what the kernel told since the last frame', () => {
    model.view = live();
    panel.showExplanation('rehearsal');
    expect(document.activeElement).toBe(entry('rehearsal'));
  });

  it('is not there while no kernel explains anything, and says so when it is asked for', async () => {
    await model.show({ kind: 'restarted' });
    expect(fold().hidden).toBe(true);
    panel.showExplanation('rehearsal');
    expect(fold().hidden).toBe(false);
    expect(found(fold(), '.dpnb-explanations-missing').hidden).toBe(false);
    expect(fold().textContent).toContain('has not sent explanations yet');
    await model.show(live());
    expect(found(fold(), '.dpnb-explanations-missing').hidden).toBe(true);
  });

  it('links every warning to its explanation, and what needs no warning to none', async () => {
    await model.show(live());
    const links = [...panel.node.querySelectorAll<HTMLAnchorElement>('.dpnb-notice a')];
    expect(links.map(link => link.hidden)).toEqual([true, false]);
    expect(links[1]?.getAttribute('href')).toBe('#dpnb-explain-rehearsal');
    expect(found(panel.node, '[data-session=rehearsal-of-rand-hie] [role=alert]').textContent).toBe(
      'REHEARSAL: mock data, not real'
    );
  });
});

describe('the panel, where each unit has a budget of its own,', () => {
  const notices = (): HTMLElement[] => [...panel.node.querySelectorAll<HTMLElement>('.dpnb-participation')];

  it('says below the gauge who takes part, and links to the reason; elsewhere it says nothing', async () => {
    await model.show(live());
    const [said, silent] = notices();
    expect(said?.hidden).toBe(false);
    expect(said?.previousElementSibling?.classList.contains('dpnb-overview')).toBe(true);
    expect(said && found(said, '[role=status]').textContent).toBe(sharedSession().participation);
    expect(said && found(said, 'a').getAttribute('href')).toBe(`#${entry('excluded-units').id}`);
    expect(silent?.hidden).toBe(true);
  });
});

describe('the panel, while odometers pause,', () => {
  const notices = (): HTMLElement[] => [...panel.node.querySelectorAll<HTMLElement>('.dpnb-paused')];

  it('says so instead of a reading, in the details, and links to the reason', async () => {
    await model.show(live());
    const [said, silent] = notices();
    expect(said?.hidden).toBe(false);
    expect(found(panel.node, '.dpnb-losses').childElementCount).toBe(0);
    expect(said?.closest('.dpnb-accounting')).not.toBeNull();
    expect(said && found(said, '[role=status]').textContent).toBe(sharedSession().odometers_paused);
    expect(said && found(said, 'a').getAttribute('href')).toBe(`#${entry('odometers-paused').id}`);
    expect(silent?.hidden).toBe(true);
  });

  it('stops saying so when they go on', async () => {
    await model.show(live());
    const [said] = notices();
    await model.show(live([sharedSession(0, { odometers_paused: null }), sharedSession(1)]));
    expect(notices()[0]).toBe(said);
    expect(said?.hidden).toBe(true);
    expect(said?.textContent).not.toContain('by site');
    expect(found(panel.node, '.dpnb-losses [role=meter]').dataset.gauge).toBe('mixture');
  });
});

describe('followExplanationLinks', () => {
  const show = vi.fn<(explanation: string) => void>();
  let stop: () => void;
  let output: HTMLElement;
  const later = vi.fn();

  beforeEach(() => {
    show.mockClear();
    later.mockClear();
    stop = followExplanationLinks(show);
    output = document.createElement('div');
    output.innerHTML =
      '<a id="why" href="#dpnb-explain-budget-exceeded" target="_self"><b>Why?</b></a>' +
      '<a id="odd" href="#dpnb-explain-a%20b">odd</a><a id="bad" href="#dpnb-explain-%">bad</a>' +
      '<a id="other" href="#elsewhere">other</a>';
    output.addEventListener('click', later);
    document.body.append(output);
  });

  afterEach(() => stop());

  it('shows what a link names, wherever the link is, and nobody else hears of the click', () => {
    const event = new MouseEvent('click', { bubbles: true, cancelable: true });
    found(output, '#why b').dispatchEvent(event);
    expect(show).toHaveBeenCalledWith('budget-exceeded');
    expect(event.defaultPrevented).toBe(true);
    expect(later).not.toHaveBeenCalled();
  });

  it('follows the Enter key as well, and no other', () => {
    press(found(output, '#why'), ' ');
    expect(show).not.toHaveBeenCalled();
    expect(press(found(output, '#why'), 'Enter').defaultPrevented).toBe(true);
    expect(show).toHaveBeenCalledOnce();
  });

  it('reads names that a link has to escape, and is not disturbed by bad ones', () => {
    found(output, '#odd').click();
    found(output, '#bad').click();
    expect(show.mock.calls).toEqual([['a b'], ['%']]);
  });

  it('leaves other links alone', () => {
    found(output, '#other').click();
    expect(show).not.toHaveBeenCalled();
    expect(later).toHaveBeenCalledOnce();
  });

  it('stops when it is told to', () => {
    stop();
    found(output, '#why').click();
    expect(show).not.toHaveBeenCalled();
  });
});
