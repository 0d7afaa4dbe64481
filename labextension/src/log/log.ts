import { arrange, button, element, type IView, setText } from '../dom/dom';
import { isOrder, matches, type Order, orderNames, sorted } from './logOrder';
import { logRow } from './logRow';
import { RefusalsView } from '../panel/refusals';
import type { ILogEntry, ISessionSnapshot } from '../protocol/snapshot';
import type { ISessionActions } from '../panel/sessionActions';
import { trans } from '../translation';

/** Number of rows that are drawn unless all are requested: what comes below the log stays near, without a scroll bar. */
export const MAX_DRAWN = 10;

/**
 * The log of one session's releases, which can be filtered, sorted, completed and exported; below it the refusals.
 *
 * Updates do not change the reader's filter and order.
 */
export class LogView implements IView<ISessionSnapshot> {
  readonly node = element('section', 'dpnb-log');
  private readonly _title = element('h4', 'dpnb-heading');
  private readonly _filter = element('input', 'dpnb-log-filter');
  private readonly _sort = element('select', 'dpnb-log-sort');
  private readonly _export = button('dpnb-log-export', trans.__('Export as CSV'), () => this._onExport());
  private readonly _bar = element('div', 'dpnb-log-bar', this._filter, this._sort, this._export);
  private readonly _oneCell = button('dpnb-log-cell', trans.__('Releases of one cell only: show all'), () =>
    this._only(null)
  );
  private readonly _matchCount = element('p', 'dpnb-log-matches');
  private readonly _list = element('ol', 'dpnb-releases');
  private readonly _empty = element('p', 'dpnb-log-empty');
  private readonly _all = button('dpnb-log-all', '', () => this._onAll());
  private readonly _refusals: RefusalsView;
  private readonly _rows = new Map<number, IView<ILogEntry>>();
  private _session: ISessionSnapshot | null = null;
  private _order: Order = 'newest';
  private _cell: string | null = null;
  private _showsAll = false;

  constructor(private readonly _actions: ISessionActions) {
    this._refusals = new RefusalsView(_actions);
    this._filter.type = 'search';
    this._filter.placeholder = trans.__('Filter: words or #3');
    this._filter.setAttribute('aria-label', trans.__('Filter the releases by words, or by number as in #3'));
    this._filter.addEventListener('input', () => this._draw());
    this._sort.setAttribute('aria-label', trans.__('Sort the releases'));
    this._sort.append(...Object.entries(orderNames()).map(([order, name]) => new Option(name, order)));
    this._sort.addEventListener('change', () => this._onSort());
    this._matchCount.setAttribute('role', 'status');
    this._list.tabIndex = -1; // a command moves the focus to it
    this.node.setAttribute('aria-label', trans.__('Log of releases'));
    this.node.append(this._title, this._bar, this._oneCell, this._matchCount);
    this.node.append(this._list, this._empty, this._all, this._refusals.node);
  }

  update(session: ISessionSnapshot): void {
    this._session = session;
    this._refusals.update(session.refusals);
    this._draw();
  }

  /** Show only the releases of one cell; false, without a change, if this session has none. */
  showCell(cell: string): boolean {
    const session = this._session;
    const isKnown = this._knownRows.some(row => row.cell_id === cell);
    if (!session || !(isKnown || session.cell_costs.some(cost => cost.cell_id === cell))) {
      return false;
    }
    if (!isKnown) {
      this._actions.requestLog(session.id); // they are older than the known rows
    }
    this._filter.value = '';
    this._only(cell);
    return true;
  }

  /** Scroll to the log and move the focus to it. */
  focus(): void {
    this.node.scrollIntoView({ block: 'start' });
    (this._oneCell.hidden ? this._list : this._oneCell).focus({ preventScroll: true });
  }

  /** All known rows, before filtering. */
  private get _knownRows(): readonly ILogEntry[] {
    if (!this._session) {
      return [];
    }
    const { rows } = this._actions.log(this._session.id);
    return rows.length > 0 ? rows : this._session.log;
  }

  private _draw(): void {
    const session = this._session;
    if (!session) {
      return;
    }
    const filter = this._filter.value.trim();
    const known = this._knownRows;
    const shown = known.filter(row => matches(row, filter) && (this._cell === null || row.cell_id === this._cell));
    setText(
      this._title,
      session.n_requests > 0 ? trans.__('Log of releases (%1)', session.n_requests) : trans.__('Log of releases')
    );
    this._bar.hidden = known.length === 0;
    this._oneCell.hidden = this._cell === null;
    const isFiltered = filter !== '' || this._cell !== null;
    setText(this._matchCount, isFiltered ? trans.__('%1 of %2 shown', shown.length, known.length) : '');
    setText(this._empty, known.length === 0 ? trans.__('No release yet.') : trans.__('No release matches.'));
    this._empty.hidden = shown.length > 0;
    this._list.hidden = shown.length === 0;
    this._list.setAttribute('aria-label', trans.__('Releases, %1', orderNames()[this._order].toLowerCase()));
    const ordered = sorted(shown, this._order);
    this._drawRows(this._showsAll ? ordered : ordered.slice(0, MAX_DRAWN));
    this._drawAll(session, known.length < session.n_requests || (!this._showsAll && shown.length > MAX_DRAWN));
  }

  private _drawRows(shown: ILogEntry[]): void {
    const ids = new Set(shown.map(row => row.id));
    [...this._rows.keys()].filter(id => !ids.has(id)).forEach(id => this._rows.delete(id));
    const nodes = shown.map(release => {
      const row = this._rows.get(release.id) ?? logRow(this._actions);
      this._rows.set(release.id, row);
      row.update(release);
      return row.node;
    });
    arrange(this._list, nodes);
  }

  private _drawAll(session: ISessionSnapshot, isMore: boolean): void {
    const { isPending } = this._actions.log(session.id);
    this._all.hidden = !isMore;
    // Not disabled, which would remove the focus from it.
    this._all.setAttribute('aria-disabled', String(isPending));
    setText(this._all, isPending ? trans.__('Waiting for the kernel…') : trans.__('Show all %1', session.n_requests));
  }

  private _only(cell: string | null): void {
    const hadFocus = document.activeElement === this._oneCell;
    this._cell = cell;
    this._draw();
    if (hadFocus && this._oneCell.hidden) {
      this._list.focus({ preventScroll: true });
    }
  }

  private _onSort(): void {
    if (isOrder(this._sort.value)) {
      this._order = this._sort.value;
      this._draw();
    }
  }

  private _onAll(): void {
    const session = this._session;
    if (session && !this._actions.log(session.id).isPending) {
      this._showsAll = true;
      if (!this._actions.log(session.id).isComplete) {
        this._actions.requestLog(session.id);
      }
      this._draw();
    }
  }

  private _onExport(): void {
    if (this._session) {
      this._actions.exportLog(this._session);
      this._draw();
    }
  }
}
