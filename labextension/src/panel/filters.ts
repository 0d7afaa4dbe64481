import { element, type IView, setText, Views } from '../dom/dom';
import { setTextWithTerms } from '../dom/terms';
import { levelOf } from './gauge';
import type { IFilterReading } from '../protocol/snapshot';
import { trans } from '../translation';

/** The budget that would remain under each filter after the same history, as a table; the enforced filter is first. */
export class FiltersView implements IView<IFilterReading[]> {
  readonly node = element('section', 'dpnb-filters');
  private readonly _rows: Views<IFilterReading>;

  constructor() {
    const title = trans.__('Same guarantee under each filter');
    const rows = element('tbody', '');
    const header = element('tr', '', columnHeader(trans.__('Filter')), columnHeader(trans.__('Remaining')));
    const table = element('table', 'dpnb-filter-table', element('thead', '', header), rows);
    table.setAttribute('aria-label', title);
    const heading = element('h5', 'dpnb-subheading');
    setTextWithTerms(heading, title);
    this.node.append(heading, table);
    this._rows = new Views(rows, filterRow);
  }

  update(filters: IFilterReading[]): void {
    this.node.hidden = filters.length === 0;
    this._rows.update([...filters].sort((a, b) => Number(b.enforced) - Number(a.enforced)));
  }
}

function filterRow(): IView<IFilterReading> {
  const name = element('span', 'dpnb-filter-name');
  const enforced = element('span', 'dpnb-filter-enforced', trans.__('enforced'));
  const fill = element('div', 'dpnb-bar-fill');
  const text = element('div', 'dpnb-filter-text');
  const sentence = element('div', 'dpnb-visually-hidden');
  const bar = element('div', 'dpnb-bar', fill);
  bar.setAttribute('aria-hidden', 'true'); // the text states the same
  const label = element('th', 'dpnb-filter-label', name, ' ', enforced);
  label.scope = 'row';
  const node = element('tr', 'dpnb-filter', label, element('td', 'dpnb-filter-left', text, bar, sentence));
  return {
    node,
    update: (filter): void => {
      node.dataset.filter = filter.id;
      node.dataset.enforced = String(filter.enforced);
      // A warning only where something can be refused.
      node.dataset.level = filter.enforced ? levelOf(filter.value) : 'plain';
      node.title = filter.description;
      setText(name, filter.label);
      enforced.hidden = !filter.enforced;
      setText(text, filter.text);
      fill.style.width = `${100 * filter.value}%`;
      setText(sentence, filter.description);
    }
  };
}

function columnHeader(text: string): HTMLElement {
  const header = element('th', '', element('span', 'dpnb-visually-hidden', text));
  header.scope = 'col';
  return header;
}
