import { describe, expect, it } from 'vitest';

import { BudgetRequestsView } from '../../panel/budgetRequests';
import { SessionView } from '../../panel/sessionView';
import type { IBudgetRequestEntry } from '../../protocol/snapshot';
import { sharedSession } from '../fixture';
import { FakeTools, found, texts } from '../fakeModel';

const { budget_requests: requests } = sharedSession();

const first = (changes: Partial<IBudgetRequestEntry>): IBudgetRequestEntry[] =>
  requests.slice(0, 1).map(one => ({ ...one, ...changes }));

function shown(items: IBudgetRequestEntry[] = requests, view = new BudgetRequestsView()): HTMLElement {
  view.update(items);
  return view.node;
}

describe('BudgetRequestsView', () => {
  it('lists the requests with what was asked and decided', () => {
    const node = shown();
    expect(texts(node, '.dpnb-budget-request-status')).toEqual(['pending', 'approved in part']);
    expect(texts(node, '.dpnb-budget-request-queries li')).toEqual(requests.flatMap(one => one.queries));
    const [pending, decided] = [...node.querySelectorAll<HTMLElement>('.dpnb-budget-request-decision')];
    expect(pending?.hidden).toBe(true);
    expect(decided?.textContent).toBe(`Curator: ${requests[1]?.decision}`);
  });

  it('shows an answer in place, where a screen reader reads it', () => {
    const view = new BudgetRequestsView();
    const item = found(shown(requests, view), '.dpnb-budget-request');
    const node = shown([...first({ status: 'declined', decision: 'not now' }), ...requests.slice(1)], view);
    expect(found(node, '.dpnb-budget-request')).toBe(item);
    expect(item.dataset.status).toBe('declined');
    expect(item.textContent).toContain('not now');
    expect(item.closest('[aria-live]')?.getAttribute('aria-live')).toBe('polite');
  });

  it('shows texts as text, and who asks where a budget is shared', () => {
    const hostile = '<img src=x onerror=alert(1)>';
    const node = shown(first({ why: hostile, decision: hostile, queries: [hostile], analyst: hostile }));
    expect(node.querySelector('img')).toBeNull();
    expect(texts(node, '.dpnb-budget-request-status')).toEqual([`pending, of ${hostile}`]);
  });

  it('is a named part of the session, and hidden without requests', () => {
    const view = new SessionView(null, new FakeTools());
    view.update(sharedSession());
    const node = found(view.node, '.dpnb-budget-requests');
    expect([node.hidden, node.getAttribute('aria-label')]).toEqual([false, 'Requests for budget']);
    view.update(sharedSession(1));
    expect(node.hidden).toBe(true);
  });
});
