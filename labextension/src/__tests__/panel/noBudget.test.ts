import { describe, expect, it } from 'vitest';

import { statusLine } from '../../dom/format';
import { toCsv } from '../../log/csv';
import { SessionView } from '../../panel/sessionView';
import { StatusItem } from '../../panel/statusItem';
import { sessionWithoutBudget, sharedSession, sharedSnapshot } from '../fixture';
import { Setting } from '../../setting';
import { FakeModel, FakeTools, found, texts } from '../fakeModel';

const NOTICE = 'NO BUDGET: nothing limits the privacy loss';

function shown(session = sessionWithoutBudget()): HTMLElement {
  const view = new SessionView(new FakeTools(), new FakeTools());
  view.update(session);
  return view.node;
}

describe('a session without a budget', () => {
  it('shows a warning above its numbers, and in the place of the budget that is left', () => {
    const node = shown();
    expect(found(node, '.dpnb-notice-text').textContent).toBe(NOTICE);
    expect(node.classList).toContain('dpnb-mod-not-private');
    const gauge = found(node, '.dpnb-gauges .dpnb-gauge');
    expect(gauge.dataset.kind).toBe('no-budget');
    expect(gauge.textContent).toBe('No budgetnothing limits the privacy loss');
  });

  it('has no meter, since nothing has a scale', () => {
    expect(shown().querySelector('[role="meter"]')).toBeNull();
    expect(shown(sharedSession()).querySelector('[role="meter"]')).not.toBeNull();
  });

  it('shows what the odometer reports, not only in the details, and what was spent', () => {
    const node = shown();
    expect(found(node, '.dpnb-losses .dpnb-gauge-text').textContent).toBe('loss so far at most 22.24');
    expect(found(node, '.dpnb-losses').closest('details')).toBeNull();
    expect(found(node, '.dpnb-spent').textContent).toBe('mu 3 spent');
    expect(found(node, '.dpnb-spent-loss').hidden).toBe(true);
  });

  it('shows the odometers over time instead of the budget', () => {
    const node = shown();
    expect(node.querySelector('.dpnb-budget-over-time')).toBeNull();
    expect(node.querySelectorAll('.dpnb-loss-over-time .dpnb-timeline-curve').length).toBeGreaterThan(0);
    expect(found(node, '.dpnb-loss-over-time .dpnb-timeline-tip').textContent).toContain('Mixture 22.2355');
    const other = shown(sharedSession());
    expect(other.querySelector('.dpnb-budget-over-time')).not.toBeNull();
    expect(other.querySelector('.dpnb-loss-over-time')).toBeNull();
  });

  it('compares no odometer with the guarantee of a filter', () => {
    const note = (node: HTMLElement): string | null => found(node, '[data-reading=time-uniform] p').textContent;
    expect(note(shown())).toBe('time-uniform: valid at every moment; choose one in advance');
    expect(note(shown(sharedSession()))).toContain("larger than the filter's guarantee");
  });

  it('writes the cost of each release as a loss, in the list and in the file', () => {
    const node = shown();
    expect(texts(node, '.dpnb-release-cost')).toEqual(['mu 2.959', 'mu 0.5']);
    expect(toCsv(sessionWithoutBudget().log).split('\r\n')[1]).toContain('count of rows,,mu 0.5,0.5');
  });

  it('is marked in the status bar', () => {
    const snapshot = sharedSnapshot({ sessions: [sessionWithoutBudget()] });
    expect(statusLine({ kind: 'live', snapshot })).toBe(`dpnb loss so far at most 22.24 · ${NOTICE}`);
    const headline = new Setting<string>(null, 'dpnb:status', 'headline', 'remaining');
    const model = new FakeModel();
    model.view = { kind: 'live', snapshot };
    const item = new StatusItem(model, headline, () => undefined);
    expect(found(item.node, '.dpnb-status').classList).toContain('dpnb-mod-not-private');
  });
});
