import { beforeEach, describe, expect, it } from 'vitest';

import { MAX_DRAWN, LogView } from '../../log/log';
import { matches, sorted } from '../../log/logOrder';
import type { ISessionSnapshot } from '../../protocol/snapshot';
import { FakeTools, found, texts } from '../fakeModel';
import { release, releases, sharedSession } from '../fixture';

let tools: FakeTools;
let view: LogView;

beforeEach(() => {
  tools = new FakeTools();
  view = new LogView(tools);
  document.body.replaceChildren(view.node);
});

const show = (changes: Partial<ISessionSnapshot> = {}): HTMLElement => {
  view.update(sharedSession(0, changes));
  return view.node;
};

const ids = (): number[] =>
  [...view.node.querySelectorAll<HTMLElement>('.dpnb-release')].map(row => Number(row.dataset.release));

function filter(text: string): void {
  const input = found<HTMLInputElement>(view.node, '.dpnb-log-filter');
  input.value = text;
  input.dispatchEvent(new Event('input'));
}

function sort(order: string): void {
  const select = found<HTMLSelectElement>(view.node, '.dpnb-log-sort');
  select.value = order;
  select.dispatchEvent(new Event('change'));
}

describe('matches', () => {
  const row = release(3, { query: 'mean of mdvis by coins', cost: 'mu 0.05', status: 'failed' });

  it.each(['', 'mdvis', 'MEAN coins', 'failed', 'mu 0.05', '#3', '#3 failed'])('finds a release by %j', text => {
    expect(matches(row, text)).toBe(true);
  });

  it.each(['age', 'mean age', '#4', '#30', '#3 released', '2026'])('does not find it by %j', text => {
    expect(matches(row, text)).toBe(false);
  });
});

describe('sorted', () => {
  const rows = [
    release(4, { mu: 0.1, query: 'mean 10', status: 'released' }),
    release(3, { mu: 0.3, query: 'Mean 2', status: 'failed' }),
    release(2, { mu: 0.1, query: 'count', status: 'released' }),
    release(1, { mu: 0.02, query: 'sum', status: 'reserved' })
  ];

  it.each([
    ['newest', [4, 3, 2, 1]],
    ['oldest', [1, 2, 3, 4]],
    ['mostExpensive', [3, 4, 2, 1]],
    ['query', [2, 3, 4, 1]],
    ['status', [3, 4, 2, 1]]
  ] as const)('has the %s order', (order, expected) => {
    expect(sorted(rows, order).map(row => row.id)).toEqual(expected);
  });
});

describe('LogView', () => {
  it('shows of each release what it was, cost and told', () => {
    const [first] = [...show().querySelectorAll<HTMLElement>('.dpnb-release')];
    expect(first?.dataset.release).toBe('2');
    expect(first?.dataset.status).toBe('released');
    expect(texts(first ?? document, '.dpnb-release-query')).toEqual(['2. mean of mdvis by coins']);
    expect(texts(first ?? document, '.dpnb-release-cost')).toEqual(['5.58% of the budget (mu 0.05)']);
    expect(texts(first ?? document, '.dpnb-release-estimate')).toEqual(['5 groups']);
    expect(found(view.node, '[data-release="1"] .dpnb-release-estimate').hidden).toBe(true);
    expect(texts(first ?? document, '.dpnb-release-error')).toEqual([' · ± 0.31 at 95% or better (noise)']);
    expect(texts(first ?? document, '.dpnb-release-status')).toEqual(['released']);
    expect(found<HTMLTimeElement>(view.node, 'time').dateTime).toBe('2026-11-21T01:19:58Z');
  });

  it('shows no error where there is none', () => {
    show();
    expect(found(view.node, '[data-release="1"] .dpnb-release-error').hidden).toBe(true);
  });

  it('has names for all its controls', () => {
    show({ n_requests: 9 });
    const controls = [...view.node.querySelectorAll('input, select, ol')];
    expect(controls.every(control => control.getAttribute('aria-label'))).toBe(true);
    expect([...view.node.querySelectorAll('button')].every(button => button.textContent !== '')).toBe(true);
  });

  it('says that nothing was released, or that nothing matches', () => {
    const empty = (): HTMLElement => found(view.node, '.dpnb-log-empty');
    show({ log: [], n_requests: 0 });
    expect([empty().hidden, empty().textContent]).toEqual([false, 'No release yet.']);
    expect(found(view.node, '.dpnb-log-bar').hidden).toBe(true);
    show();
    expect(empty().hidden).toBe(true);
    filter('nowhere');
    expect([empty().hidden, empty().textContent]).toEqual([false, 'No release matches.']);
  });

  it('shows what the filter lets through, and how much that is', () => {
    show();
    filter('count');
    expect(ids()).toEqual([1]);
    expect(texts(view.node, '.dpnb-log-matches')).toEqual(['1 of 2 shown']);
    filter('#2');
    expect(ids()).toEqual([2]);
    filter('');
    expect(ids()).toEqual([2, 1]);
    expect(texts(view.node, '.dpnb-log-matches')).toEqual(['']);
  });

  it('keeps filter and order through updates', () => {
    show();
    filter('question');
    sort('mostExpensive');
    show({ log: [release(9, { mu: 0.01 }), ...releases(3, 4), release(2, { query: 'other' })], n_requests: 4 });
    expect(ids()).toEqual([4, 3, 9]);
    expect(found<HTMLInputElement>(view.node, '.dpnb-log-filter').value).toBe('question');
    expect(found(view.node, 'ol').getAttribute('aria-label')).toBe('Releases, most expensive first');
  });

  it('keeps rows and the keyboard where they are while others come and the order changes', () => {
    tools.cells.add('3f2a-mean');
    show();
    const row = found(view.node, '[data-release="2"]');
    const jump = found(row, '.dpnb-release-jump');
    jump.focus();
    show({ log: [release(3), ...sharedSession().log], n_requests: 3 });
    expect(found(view.node, '[data-release="2"]')).toBe(row);
    expect(document.activeElement).toBe(jump);
    sort('oldest');
    expect(ids()).toEqual([1, 2, 3]);
    expect(document.activeElement).toBe(jump);
  });

  it('shows titles in words, with the exact query and the whole error as tooltips', () => {
    const error = `${'age count ± 1, '.repeat(9)}and 32 more`;
    show({ log: [release(1, { query: 'count by cut(age, [1, 2])', title: 'count, by age', error })], n_requests: 1 });
    const shown = found(view.node, '.dpnb-release-query');
    expect([shown.textContent, shown.title]).toEqual(['1. count, by age', 'count by cut(age, [1, 2])']);
    const short = found(view.node, '.dpnb-release-error');
    expect(short.textContent?.length).toBeLessThan(70);
    expect(short.title).toBe(error);
    expect(matches(release(1, { query: 'cut(age)', title: 'ranges' }), 'cut ranges')).toBe(true);
  });

  it('shows markup as text', () => {
    show({ log: [release(1, { query: '<img src=x>' })], n_requests: 1 });
    expect(view.node.querySelector('img')).toBeNull();
  });
});

describe('LogView, on cells,', () => {
  it('goes to a cell that is open, and offers no other', () => {
    const rows = [release(2, { cell_id: 'here' }), release(1, { cell_id: 'closed' }), release(3)];
    tools.cells.add('here');
    show({ log: rows, n_requests: 3 });
    const jumps = [...view.node.querySelectorAll<HTMLElement>('.dpnb-release .dpnb-release-jump')];
    expect(jumps.map(jump => jump.hidden)).toEqual([true, false, true]);
    jumps[1]?.click();
    expect(tools.goToCell).toHaveBeenCalledWith('here');
    expect(jumps[1]?.getAttribute('aria-label')).toBe('Go to cell of release 2');
  });

  it('shows one cell’s releases until the others are asked for', () => {
    show();
    filter('count');
    expect(view.showCell('3f2a-mean')).toBe(true);
    expect(ids()).toEqual([2]);
    show();
    expect(ids()).toEqual([2]);
    found(view.node, '.dpnb-log-cell').focus();
    found(view.node, '.dpnb-log-cell').click();
    expect(ids()).toEqual([2, 1]);
    expect(document.activeElement).toBe(found(view.node, 'ol'));
  });

  it('asks the kernel when a cell’s releases are older than what is here', () => {
    show({ cell_costs: [{ cell_id: 'old', text: 'mu 0.1', description: 'Long ago.' }], n_requests: 99 });
    expect(view.showCell('old')).toBe(true);
    expect(tools.requestLog).toHaveBeenCalledWith('rand-hie.dpnb');
  });
});

describe('LogView, of a longer ledger,', () => {
  const all = (): HTMLElement => found(view.node, '.dpnb-log-all');

  it('offers all of it, asks once, and says that it waits', () => {
    show({ n_requests: 120 });
    expect([all().hidden, all().textContent]).toEqual([false, 'Show all 120']);
    tools.requestLog.mockImplementation(session => {
      tools.logs = { [session]: { rows: sharedSession().log, isComplete: false, isPending: true } };
    });
    all().focus();
    all().click();
    all().click();
    expect(tools.requestLog).toHaveBeenCalledOnce();
    expect(all().textContent).toBe('Waiting for the kernel…');
    expect(all().getAttribute('aria-disabled')).toBe('true');
    expect(document.activeElement).toBe(all());
  });

  it('draws the first fifty of what is there, and all of it when the reader wants that', () => {
    tools.logs = { 'rand-hie.dpnb': { rows: releases(1, 120), isComplete: true, isPending: false } };
    show({ n_requests: 120 });
    expect(ids()).toHaveLength(MAX_DRAWN);
    expect(all().hidden).toBe(false);
    all().click();
    expect(ids()).toHaveLength(120);
    expect(all().hidden).toBe(true);
    expect(tools.requestLog).not.toHaveBeenCalled();
  });

  it('searches all that is there, drawn or not', () => {
    tools.logs = { 'rand-hie.dpnb': { rows: releases(1, 120), isComplete: true, isPending: false } };
    show({ n_requests: 120 });
    filter('#3');
    expect(ids()).toEqual([3]);
    expect(all().hidden).toBe(true);
  });

  it('exports the whole log, through the kernel that has the rest', () => {
    show({ n_requests: 120 });
    found(view.node, '.dpnb-log-export').click();
    expect(tools.exportLog).toHaveBeenCalledWith(expect.objectContaining({ id: 'rand-hie.dpnb', name: 'rand-hie' }));
  });
});

describe('LogView, on refusals,', () => {
  it('shows each with its reason, and that it was free', () => {
    tools.cells.add('9c1e-sum');
    show();
    const item = found(view.node, '.dpnb-refusal');
    const { query, message } = sharedSession().refusals[0] ?? { query: '?', message: '?' };
    for (const part of [query, message, 'nothing was charged']) {
      expect(item.textContent).toContain(part);
    }
    const why = found<HTMLAnchorElement>(item, 'a');
    expect(why.getAttribute('href')).toBe('#dpnb-explain-budget-exceeded');
    expect(why.getAttribute('aria-label')).toBe('Why? was this refused: sum of mdvis');
    found(item, '.dpnb-release-jump').click();
    expect(tools.goToCell).toHaveBeenCalledWith('9c1e-sum');
  });

  it('shows nothing when nothing was refused', () => {
    show({ refusals: [] });
    expect(found(view.node, '.dpnb-refusals').hidden).toBe(true);
  });
});
