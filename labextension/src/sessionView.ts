import { element, type IView, setText, Views } from './dom';
import { FiltersView } from './filters';
import { clock } from './format';
import { drawGauge } from './gauge';
import { OdometersView } from './odometers';
import type { IGauge, IRelease, ISession } from './snapshot';

/**
 * One session: its name, what it promises, its gauges, what was spent, and how other filters and odometers see it.
 *
 * The side panel and the widget in a cell both use it.  It is updated in place, so that a gauge moves instead of
 * being replaced and a reader's selection survives.
 */
export class SessionView implements IView<ISession> {
  readonly node = element('section', 'dpnb-session');
  private readonly _name = element('h3', 'dpnb-session-name');
  private readonly _notice = element('p', 'dpnb-notice');
  private readonly _promise = element('p', 'dpnb-promise');
  private readonly _dials = element('div', 'dpnb-gauges');
  private readonly _gauges = new Views(this._dials, gaugeHost);
  private readonly _spent = element('p', 'dpnb-spent');
  private readonly _filters = new FiltersView();
  private readonly _odometers = new OdometersView();
  private readonly _ledger = element('p', 'dpnb-ledger');
  private readonly _history = element('ol', 'dpnb-releases');
  private _shownHistory = '';

  /** @param showHistory Whether the latest releases are listed, each with the number that refusals name. */
  constructor(private readonly showHistory: boolean) {
    this._notice.setAttribute('role', 'alert');
    this._history.setAttribute('aria-label', 'Releases, newest first');
    this.node.append(this._name, this._notice, this._promise, this._dials, this._spent);
    this.node.append(this._filters.node);
    if (showHistory) {
      this._history.tabIndex = 0; // it scrolls, so the keyboard must reach it
      this.node.append(this._history);
    }
    this.node.append(this._odometers.node);
    if (showHistory) {
      this.node.append(this._ledger);
    }
  }

  update(session: ISession): void {
    this.node.dataset.session = session.id;
    this.node.classList.toggle('dpnb-mod-unreal', session.notice !== null);
    this.node.setAttribute('aria-label', `dpnb session ${session.name}`);
    setText(this._name, session.name);
    setText(this._notice, session.notice ?? '');
    this._notice.hidden = session.notice === null;
    setText(this._promise, session.promise);
    setText(this._spent, `Spent: ${session.spent}`);
    setText(this._ledger, `Ledger: ${session.ledger}`);
    this._gauges.update(session.gauges);
    this._filters.update(session.filters);
    this._odometers.update(session.odometers);
    if (this.showHistory) {
      this._drawHistory(session.releases);
    }
  }

  /** Unfold everything, except for what the reader folded by hand. */
  unfold(): void {
    this._filters.fold.unfold();
    this._odometers.fold.unfold();
  }

  private _drawHistory(releases: IRelease[]): void {
    const shown = JSON.stringify(releases);
    if (shown === this._shownHistory) {
      return;
    }
    this._shownHistory = shown;
    const items = releases.map(drawRelease);
    this._history.replaceChildren(...(items.length > 0 ? items : [element('li', 'dpnb-release', 'No release yet.')]));
  }
}

function gaugeHost(): IView<IGauge> {
  const node = element('div', '');
  return { node, update: gauge => drawGauge(node, gauge) };
}

function drawRelease(release: IRelease): HTMLElement {
  const time = element('time', 'dpnb-release-time', clock(release.time));
  time.dateTime = release.time;
  time.title = release.time;
  const facts = element(
    'div',
    'dpnb-release-facts',
    element('span', 'dpnb-release-cost', release.cost),
    ' · ',
    time,
    ' · ',
    element('span', 'dpnb-release-status', release.status)
  );
  const item = element(
    'li',
    'dpnb-release',
    element('div', 'dpnb-release-question', `${release.id}. ${release.question}`),
    facts
  );
  item.dataset.status = release.status;
  return item;
}
