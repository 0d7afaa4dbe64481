import { beforeEach, describe, expect, it } from 'vitest';

import { MechanismsView, PARTS_SHOWN } from '../../panel/mechanisms';
import type { IMechanism, IPart } from '../../protocol/snapshot';
import { found, texts } from '../fakeModel';
import { sharedSession } from '../fixture';

const { mechanisms } = sharedSession();

let view: MechanismsView;

beforeEach(() => {
  view = new MechanismsView();
  document.body.replaceChildren(view.node);
});

function show(items: IMechanism[] = mechanisms): HTMLElement {
  view.update(items);
  return view.node;
}

const row = (id: string): HTMLElement => found(view.node, `[data-mechanism="${id}"]`);

/** The mechanisms that are there, from top to bottom. */
const ids = (): (string | undefined)[] =>
  [...view.node.querySelectorAll<HTMLElement>('.dpnb-mechanism')].map(node => node.dataset.mechanism);

/** The shared mechanisms, one of them changed. */
const changed = (id: string, changes: Partial<IMechanism>): IMechanism[] =>
  mechanisms.map(one => (one.id === id ? { ...one, ...changes } : one));

const parts = (count: number): IPart[] =>
  Array.from({ length: count }, (_, index) => ({
    name: `site ${index + 1}`,
    value: 1 / (index + 1),
    text: '1.0% (mu 0.1)'
  }));

describe('MechanismsView', () => {
  it('has a row for each, with its name, its kind, its state and how it stands', () => {
    show();
    expect(texts(view.node, 'h4')).toEqual(['Interactive mechanisms']);
    expect(texts(row('9'), '.dpnb-mechanism-line span')).toEqual(['colleague', 'sub-session', 'open']);
    expect(found(row('9'), '.dpnb-mechanism-text').textContent).toBe('61.2% left of 9.0% of the budget (mu 0.3)');
    expect(row('11').dataset.state).toBe('exhausted');
  });

  it('is not there when there is none', () => {
    expect(show([]).hidden).toBe(true);
    expect(show().hidden).toBe(false);
    expect(show([]).hidden).toBe(true);
    expect(ids()).toEqual([]);
  });

  it('has the open ones first, and leaves the others in their order', () => {
    const states = ['closed', 'open', 'unavailable', 'exhausted', 'open'];
    const [first] = mechanisms;
    show(states.flatMap((state, index) => (first ? [{ ...first, id: String(index), state }] : [])));
    expect(ids()).toEqual(['1', '4', '0', '2', '3']);
  });

  it('shows a state that it has never heard of by its name', () => {
    show(changed('7', { state: 'later' }));
    expect(found(row('7'), '.dpnb-mechanism-state').textContent).toBe('later');
    expect(ids()).toEqual(['9', '7', '11']);
  });

  it('says in full sentences what each is, to the eye that hovers and to the ear', () => {
    show();
    expect(row('7').title).toBe(mechanisms[0]?.description);
    expect(found(row('7'), '.dpnb-visually-hidden').textContent).toBe(mechanisms[0]?.description);
  });

  it('keeps its elements while figures move, also when one closes, and drops those that are gone', () => {
    show();
    const before = row('7');
    show(changed('7', { state: 'closed', text: 'done' }));
    expect(ids()).toEqual(['9', '7', '11']);
    expect(row('7')).toBe(before);
    expect(found(before, '.dpnb-mechanism-text').textContent).toBe('done');
    show(mechanisms.slice(1));
    expect(ids()).toEqual(['9', '11']);
  });

  it('shows markup as text', () => {
    const names = { name: '<img src=x>', kind: '<b>k</b>', state: '<i>s</i>', text: '<u>t</u>' };
    show(changed('7', { ...names, parts: [{ name: '<em>a</em>', value: 1, text: '<q>b</q>' }] }));
    expect(view.node.querySelector('img, b, i, u, em, q')).toBeNull();
    expect(view.node.textContent).toContain('<img src=x>');
  });
});

describe('MechanismsView, of parts,', () => {
  it('draws a bar for each, with the same in words beside it', () => {
    show();
    const list = found(row('7'), '.dpnb-part-list');
    expect(list.getAttribute('aria-label')).toBe('Parts of by site');
    expect(texts(list, '.dpnb-part-line')).toEqual([
      'site 1 4.0% (mu 0.2)',
      'site 2 1.0% (mu 0.1)',
      'site 5 0.25% (mu 0.05)'
    ]);
    const bars = [...list.querySelectorAll<HTMLElement>('.dpnb-bar')];
    expect(bars.map(bar => found(bar, '.dpnb-bar-fill').style.width)).toEqual(['100%', '50%', '25%']);
    expect(bars.every(bar => bar.getAttribute('aria-hidden') === 'true')).toBe(true);
  });

  it('has nothing where a mechanism has no parts', () => {
    show();
    expect(found(row('9'), '.dpnb-parts').hidden).toBe(true);
    expect(row('9').querySelector('details')).toBeNull();
  });

  it.each([
    [PARTS_SHOWN, false],
    [PARTS_SHOWN + 1, true]
  ])('of %s parts: folded away is %s', (count, isFolded) => {
    show(changed('7', { parts: parts(count) }));
    expect(row('7').querySelectorAll('.dpnb-part')).toHaveLength(count);
    const fold = found(row('7'), '.dpnb-part-list').closest('details');
    expect(fold !== null).toBe(isFolded);
    if (fold) {
      expect(fold.open).toBe(false);
      expect(found(fold, 'summary').textContent).toBe(`Parts (${count})`);
    }
  });

  it('leaves what the reader unfolded open when parts come, and when the row moves', () => {
    show(changed('7', { parts: parts(7) }));
    const fold = found<HTMLDetailsElement>(row('7'), 'details');
    fold.open = true;
    found(fold, 'summary').focus();
    show(changed('7', { parts: parts(8) }));
    show(changed('7', { parts: parts(8), state: 'closed' }));
    expect(found(row('7'), 'details')).toBe(fold);
    expect(fold.open).toBe(true);
    expect(found(fold, 'summary').textContent).toBe('Parts (8)');
    expect(document.activeElement).toBe(found(fold, 'summary'));
    expect(row('9').querySelector('details')).toBeNull();
  });

  it('folds when the seventh part comes, and unfolds when it goes', () => {
    show(changed('7', { parts: parts(6) }));
    show(changed('7', { parts: parts(7) }));
    expect(found(row('7'), '.dpnb-part-list').closest('details')).not.toBeNull();
    show(changed('7', { parts: parts(2) }));
    expect(row('7').querySelector('details')).toBeNull();
    expect(row('7').querySelectorAll('.dpnb-part')).toHaveLength(2);
  });
});
