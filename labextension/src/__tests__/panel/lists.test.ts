import { describe, expect, it } from 'vitest';

import { FiltersView } from '../../panel/filters';
import { OdometersView } from '../../panel/odometers';
import type { IFilterReading, IOdometerReading } from '../../protocol/snapshot';
import { sharedSession } from '../fixture';

const { filters, odometers } = sharedSession();

describe('FiltersView', () => {
  function shown(items: IFilterReading[] = filters, view = new FiltersView()): HTMLElement {
    view.update(items);
    return view.node;
  }

  const row = (node: HTMLElement, id: string): HTMLElement | null => node.querySelector(`[data-filter=${id}]`);

  it('is a table with a header for each row and column', () => {
    const table = shown().querySelector('table');
    expect(table?.getAttribute('aria-label')).toBe('Same guarantee under each filter');
    expect(table?.querySelectorAll('th[scope=col]')).toHaveLength(2);
    expect(table?.querySelectorAll('th[scope=row]')).toHaveLength(filters.length);
  });

  it('has the enforced filter first, and it alone is marked', () => {
    const node = shown([...filters].reverse());
    const ids = [...node.querySelectorAll<HTMLElement>('tbody tr')].map(tr => tr.dataset.filter);
    expect(ids).toEqual(['gdp', 'basic', 'rogers', 'approx-dp', 'rdp', 'zcdp']);
    const marks = [...node.querySelectorAll<HTMLElement>('.dpnb-filter-enforced')];
    expect(marks.map(mark => mark.hidden)).toEqual([false, true, true, true, true, true]);
  });

  it('says in a full sentence what the figure is, to the eye that hovers and to the ear', () => {
    const zcdp = row(shown(), 'zcdp');
    expect(zcdp?.title).toBe(filters[1]?.description);
    expect(zcdp?.querySelector('.dpnb-visually-hidden')?.textContent).toBe(filters[1]?.description);
    expect(zcdp?.querySelector('.dpnb-bar')?.getAttribute('aria-hidden')).toBe('true');
  });

  it.each([
    ['gdp', '83.3%', 'good'],
    ['rogers', '4%', 'plain'],
    ['basic', '0%', 'plain']
  ])('draws the share of %s as a bar of %s that looks %s', (id, width, level) => {
    const drawn = row(shown(), id);
    expect(drawn?.querySelector<HTMLElement>('.dpnb-bar-fill')?.style.width).toBe(width);
    expect(drawn?.dataset.level).toBe(level);
  });

  it('moves the rows that are there, and drops those that are gone', () => {
    const view = new FiltersView();
    const before = row(shown(filters, view), 'gdp');
    const changed = filters.slice(0, 2).map(filter => ({ ...filter, value: 0.1, text: '10.0% left' }));
    const node = shown(changed, view);
    expect(row(node, 'gdp')).toBe(before);
    expect(before?.textContent).toContain('10.0% left');
    expect(node.querySelectorAll('tbody tr')).toHaveLength(2);
  });

  it('shows nothing when there is nothing to compare', () => {
    expect(shown([]).hidden).toBe(true);
    expect(shown().hidden).toBe(false);
  });

  it('shows markup as text', () => {
    const [first] = filters;
    const node = shown(first && [{ ...first, label: '<img src=x>', text: '<b>all</b>' }]);
    expect(node.querySelector('img, b')).toBeNull();
    expect(node.textContent).toContain('<img src=x>');
  });
});

describe('OdometersView', () => {
  function shown(items: IOdometerReading[] = odometers, view = new OdometersView()): HTMLElement {
    view.update({ odometers: items, filters: sharedSession().filters });
    return view.node;
  }

  const readings = (node: HTMLElement): (string | undefined)[] =>
    [...node.querySelectorAll<HTMLElement>('.dpnb-reading')].map(group => group.dataset.reading);

  it('groups the odometers by reading, each with a line that says how to read it', () => {
    const [mixture, ...others] = odometers;
    const node = shown(mixture && [...others, mixture]);
    expect(readings(node)).toEqual(['time-uniform', 'accumulator']);
    const notes = [...node.querySelectorAll('.dpnb-reading-note')].map(note => note.textContent);
    expect(notes[0]).toBe(
      "time-uniform: valid at every moment, and therefore larger than the filter's guarantee; choose one in advance"
    );
    expect(notes[1]).toBe(
      'accumulator: the answers are within every budget of at least this bound that was fixed in advance'
    );
    const first = node.querySelector('ul');
    expect(first?.getAttribute('aria-label')).toBe('Odometers, time-uniform');
    expect([...(first?.children ?? [])].map(item => (item as HTMLElement).dataset.odometer)).toContain('mixture');
  });

  it('has the sentence of each odometer in sight', () => {
    const item = shown().querySelector('[data-odometer=gdp-accumulator]');
    expect(item?.querySelector('.dpnb-odometer-text')?.textContent).toBe('mu 0.0866');
    expect(item?.querySelector('.dpnb-odometer-sentence')?.textContent).toBe(odometers[3]?.description);
  });

  it('shows a reading that it has never heard of by its name', () => {
    const node = shown(odometers.map(odometer => ({ ...odometer, kind: 'later' })));
    expect(node.querySelector('.dpnb-reading-note')?.textContent).toBe('later');
  });

  it('keeps its elements while figures move, and drops groups that are gone', () => {
    const view = new OdometersView();
    const before = shown(odometers, view).querySelector('[data-odometer=mixture]');
    const [mixture] = odometers;
    const node = shown(mixture && [{ ...mixture, text: 'loss so far at most 0.6' }], view);
    expect(node.querySelector('[data-odometer=mixture]')).toBe(before);
    expect(before?.textContent).toContain('at most 0.6');
    expect(readings(node)).toEqual(['time-uniform']);
  });

  it('shows nothing when there is no odometer', () => {
    expect(shown([]).hidden).toBe(true);
    expect(shown().hidden).toBe(false);
  });
});
