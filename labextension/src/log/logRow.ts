import { button, element, type IView, setText, setTime } from '../dom/dom';
import type { ILogEntry } from '../protocol/snapshot';
import type { ISessionActions } from '../panel/sessionActions';
import { trans } from '../translation';

/** Characters of an expected error: two lines of the panel. */
const MAX_ERROR = 60;

/** One release: its query, answer, cost, error, time and status, and a button that shows its cell. */
export function logRow(actions: ISessionActions): IView<ILogEntry> {
  const query = element('div', 'dpnb-release-query');
  const estimate = element('div', 'dpnb-release-estimate');
  const cost = element('span', 'dpnb-release-cost');
  const error = element('span', 'dpnb-release-error');
  const time = element('time', 'dpnb-release-time');
  const status = element('span', 'dpnb-release-status');
  const jump = new CellButton(actions);
  const facts = element('div', 'dpnb-release-facts', cost, error, ' · ', time, ' · ', status);
  const node = element('li', 'dpnb-release', query, estimate, facts, jump.node);
  return {
    node,
    update: (release): void => {
      node.dataset.release = String(release.id);
      node.dataset.status = release.status;
      setText(query, `${release.id}. ${release.title}`);
      query.title = release.query; // exact: the title is in words
      setText(estimate, release.estimate ?? '');
      estimate.hidden = release.estimate === null;
      const { cost_fraction: share } = release;
      setText(cost, share === null ? release.cost : trans.__('%1 of the budget (%2)', share, release.cost));
      setText(error, release.error === null ? '' : ` · ${shortened(release.error)}`);
      error.title = release.error ?? '';
      error.hidden = release.error === null;
      setTime(time, release.time);
      setText(status, release.status);
      jump.update(release.cell_id, trans.__('Go to cell of release %1', release.id));
    }
  };
}

/** A text whose end is left out if it is long, such as the errors of many statistics; its tooltip has all of it. */
const shortened = (text: string): string => (text.length > MAX_ERROR ? `${text.slice(0, MAX_ERROR - 1)}…` : text);

/** A button that shows a cell; hidden if no open notebook contains the cell. */
export class CellButton {
  readonly node = button('dpnb-release-jump', trans.__('Go to cell'), () => {
    if (this._cell !== null) {
      this._actions.goToCell(this._cell);
    }
  });
  private _cell: string | null = null;

  constructor(private readonly _actions: ISessionActions) {}

  /** @param label What the button does, for screen readers, which read it without its context. */
  update(cell: string | null, label: string): void {
    this._cell = cell;
    this.node.hidden = cell === null || !this._actions.hasCell(cell);
    this.node.setAttribute('aria-label', label);
  }
}
