import { isFound, logCsv, LogRows } from './logRows';
import { LongText } from './longText';
import { PlanView } from './planView';
import type { Service } from './service';
import { cellFor, heading, moment } from './tableParts';
import { arrange, button, element, type IView, setText, setTime } from '../dom/dom';
import { csvName, download } from '../log/csv';
import type { ITableState, IAuditRow } from '../protocol/curation';
import { trans } from '../translation';

/** Number of rows that are drawn at first, and more with each request for more. */
export const DRAWN = 50;

/** Who asked what when, at which cost; the answers are not here. */
export class LogView implements IView<ITableState> {
  readonly node: HTMLElement;
  private readonly _search = element('input', 'dpnb-input');
  private readonly _found = element('p', 'dpnb-log-found');
  private readonly _body = element('tbody', '');
  private readonly _table: HTMLTableElement;
  private readonly _empty = element('p', 'dpnb-quiet');
  private readonly _more = button('dpnb-button', trans.__('Show more'), () => this._onMore());
  private readonly _views = new Map<number, IView<IAuditRow>>();
  private readonly _rows = new LogRows();
  private _name = '';
  private _drawn = DRAWN;
  private _reading: Promise<void> | null = null;
  private _isAgain = false;

  constructor(
    private readonly _service: Service,
    private readonly _fail: (error: unknown) => void
  ) {
    const title = element('h2', 'dpnb-title', trans.__('Log'));
    title.id = 'dpnb-log-title';
    this._search.type = 'search';
    this._search.placeholder = trans.__('Search: words or #3');
    this._search.setAttribute('aria-label', trans.__('Search the log by words, or by number as in #3'));
    this._search.addEventListener('input', () => this._draw());
    this._found.setAttribute('role', 'status');
    const save = button('dpnb-button', trans.__('Export as CSV'), () => this._onExport());
    const headings = [trans.__('#'), trans.__('Time'), trans.__('Who'), trans.__('What'), trans.__('Cost')];
    const head = element('tr', '', ...[...headings, trans.__('Status')].map(heading));
    const caption = element('caption', 'dpnb-visually-hidden', trans.__('Requests and acts, newest first'));
    this._table = element('table', 'dpnb-log-table', caption, element('thead', '', head), this._body);
    this.node = element('section', 'dpnb-block', title);
    this.node.setAttribute('aria-labelledby', title.id);
    const bar = element('div', 'dpnb-bar-row', this._search, save);
    this.node.append(bar, this._found, this._table, this._empty, this._more);
  }

  update(table: ITableState): void {
    this._name = table.name;
    this._draw();
    void this.read();
  }

  /** Read what is new; while that is under way, once more afterwards. */
  async read(): Promise<void> {
    if (this._reading !== null) {
      this._isAgain = true;
      return this._reading;
    }
    this._reading = this._read();
    try {
      await this._reading;
    } catch (error) {
      this._fail(error);
    } finally {
      this._reading = null;
    }
    if (this._isAgain) {
      this._isAgain = false;
      await this.read();
    }
  }

  private async _read(): Promise<void> {
    let after = this._rows.settled;
    for (;;) {
      const page = await this._service.log(this._name, after);
      this._rows.add(page.rows);
      this._draw();
      after = Math.max(after, ...page.rows.map(row => row.id));
      if (!page.more || page.rows.length === 0) {
        return;
      }
    }
  }

  private _draw(): void {
    const search = this._search.value.trim();
    const found = this._rows.all.filter(row => isFound(row, search));
    const shown = found.slice(0, this._drawn);
    const ids = new Set(shown.map(row => row.id));
    [...this._views.keys()].filter(id => !ids.has(id)).forEach(id => this._views.delete(id));
    const nodes = shown.map(row => {
      const view = this._views.get(row.id) ?? this._rowView();
      this._views.set(row.id, view);
      view.update(row);
      return view.node;
    });
    arrange(this._body, nodes);
    setText(this._found, search === '' ? '' : trans.__('%1 of %2 rows', found.length, this._rows.size));
    this._table.hidden = shown.length === 0;
    this._empty.hidden = shown.length > 0;
    setText(this._empty, search === '' ? trans.__('Nothing has happened yet.') : trans.__('No row matches.'));
    this._more.hidden = found.length <= this._drawn;
  }

  private _onMore(): void {
    this._drawn += 4 * DRAWN;
    this._draw();
  }

  private _onExport(): void {
    void this.read().then(() => download(csvName(this._name), logCsv(this._rows.all)));
  }

  private _rowView(): IView<IAuditRow> {
    const id = element('th', 'dpnb-log-id');
    id.scope = 'row';
    const time = element('time', '');
    const day = element('td', 'dpnb-log-time', time);
    const who = element('td', 'dpnb-log-who dpnb-foreign');
    const words = new LongText('dpnb-log-words');
    const plan = new PlanView(this._service, this._fail);
    const what = element('td', 'dpnb-log-what', words.node, plan.node);
    const cost = cellFor(trans.__('Cost'), 'dpnb-log-cost');
    const status = cellFor(trans.__('Status'), 'dpnb-log-status');
    const node = element('tr', 'dpnb-log-row', id, day, who, what, cost, status);
    return {
      node,
      update: (row): void => {
        node.dataset.status = row.status;
        setText(id, String(row.id));
        setTime(time, row.time);
        setText(time, moment(row.time));
        setText(who, row.actor ?? '–');
        words.update(row.words);
        plan.update({ table: this._name, row: row.has_plan ? row.id : null });
        setText(cost, row.cost);
        setText(status, row.status);
      }
    };
  }
}
