import { percentDown } from './amounts';
import { element, type IView, setText, Views } from '../dom/dom';
import type { ITableState } from '../protocol/curation';
import { trans } from '../translation';

/** A link to each table, with what needs attention; the address names the table that is shown. */
export class TablesNav implements IView<ITableState[]> {
  readonly node = element('nav', 'dpnb-nav');
  private readonly _links: Views<ITableState>;

  constructor() {
    const list = element('ul', '');
    this._links = new Views(list, link);
    this.node.setAttribute('aria-label', trans.__('Tables'));
    this.node.append(list);
  }

  update(tables: ITableState[]): void {
    this._links.update(tables);
    this.node.hidden = tables.length < 2;
  }
}

/** The address of a table within the page. */
export const hashOf = (table: string): string => `#${encodeURIComponent(table)}`;

const leftOf = ({ headroom, gauges }: ITableState): string =>
  headroom === null ? (gauges[0]?.text ?? '') : trans.__('%1 of the budget left', percentDown(headroom));

function link(): IView<ITableState> {
  const name = element('span', 'dpnb-foreign');
  const facts = element('span', 'dpnb-quiet');
  const anchor = element('a', 'dpnb-nav-link', name, facts);
  return {
    node: element('li', '', anchor),
    update: (table): void => {
      anchor.href = hashOf(table.name);
      if (location.hash === anchor.hash) {
        anchor.setAttribute('aria-current', 'page');
      } else {
        anchor.removeAttribute('aria-current');
      }
      const pending = table.requests.filter(one => one.status === 'pending').length;
      const words = [
        leftOf(table),
        table.frozen === null ? '' : trans.__('frozen'),
        pending === 0 ? '' : trans._n('%1 request', '%1 requests', pending)
      ];
      setText(name, table.name);
      setText(facts, words.filter(word => word !== '').join(' · '));
    }
  };
}
