import { element, setText } from './dom';
import { clock } from './format';
import { drawGauge } from './gauge';
import type { IGauge, IRelease, ISession } from './snapshot';

/**
 * One session: its name, what it promises, its gauges and what was spent.
 *
 * The side panel and the widget in a cell both use it.  It is updated in place, so that a gauge moves instead of
 * being replaced and a reader's selection survives.
 */
export class SessionView {
  readonly node = element('section', 'dpnb-session');
  private readonly _name = element('h3', 'dpnb-session-name');
  private readonly _notice = element('p', 'dpnb-notice');
  private readonly _promise = element('p', 'dpnb-promise');
  private readonly _gauges = element('div', 'dpnb-gauges');
  private readonly _spent = element('p', 'dpnb-spent');
  private readonly _ledger = element('p', 'dpnb-ledger');
  private readonly _history = element('ol', 'dpnb-releases');
  private _shownHistory = '';

  /** @param showHistory Whether the latest releases are listed below the gauges. */
  constructor(private readonly showHistory: boolean) {
    this._notice.setAttribute('role', 'alert');
    this._history.setAttribute('aria-label', 'Releases, newest first');
    this.node.append(this._name, this._notice, this._promise, this._gauges, this._spent);
    if (showHistory) {
      this.node.append(this._history, this._ledger);
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
    this._drawGauges(session.gauges);
    if (this.showHistory) {
      this._drawHistory(session.releases);
    }
  }

  private _drawGauges(gauges: IGauge[]): void {
    gauges.forEach((gauge, index) => {
      const host = this._gauges.children[index] ?? this._gauges.appendChild(element('div', ''));
      drawGauge(host as HTMLElement, gauge);
    });
    while (this._gauges.children.length > gauges.length) {
      this._gauges.lastElementChild?.remove();
    }
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
  const item = element('li', 'dpnb-release', element('div', 'dpnb-release-question', release.question), facts);
  item.dataset.status = release.status;
  return item;
}
