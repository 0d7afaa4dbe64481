import { Actions } from './actions';
import { Refused, type Service } from './service';
import { hashOf, TablesNav } from './tablesNav';
import { TableView } from './tableView';
import { TokensView } from './tokensView';
import { arrange, button, element, setText } from '../dom/dom';
import { clock } from '../dom/format';
import type { IServiceState } from '../protocol/curation';
import type { ITableState } from '../protocol/curation';
import { trans } from '../translation';

/** The page after a login. */
export class PageView {
  readonly node = element('div', 'dpnb-page');
  private readonly _live = element('p', 'dpnb-live');
  private readonly _person = element('p', 'dpnb-person dpnb-foreign');
  private readonly _nav = new TablesNav();
  private readonly _main = element('main', 'dpnb-main');
  private readonly _said = element('p', 'dpnb-said');
  private readonly _actions: Actions;
  private readonly _tokens: TokensView;
  private readonly _views = new Map<string, TableView>();
  private readonly _none = element('p', 'dpnb-quiet', trans.__('The service has no table now.'));
  private readonly _onHash = (): void => this._draw();
  private _state: IServiceState | null = null;
  private _isLive: boolean | null = null;
  private _isReading = false;
  private _isAgain = false;

  /** @param _onEnd Called with a message when the login has ended. */
  constructor(
    private readonly _service: Service,
    private readonly _onEnd: (message: string) => void
  ) {
    this._actions = new Actions(
      _service,
      text => setText(this._said, text),
      () => void this.read()
    );
    this._tokens = new TokensView(this._actions, () =>
      this._state?.role === 'owner'
        ? ['auditor', 'curator', 'owner', 'monitor', 'analyst']
        : ['auditor', 'monitor', 'analyst']
    );
    this._live.setAttribute('role', 'status');
    this._said.setAttribute('role', 'status');
    this._main.id = 'dpnb-main';
    this._main.tabIndex = -1;
    const skip = element('a', 'dpnb-skip', trans.__('Skip to the table'));
    skip.href = '#dpnb-main';
    skip.addEventListener('click', event => {
      event.preventDefault(); // the address names the table
      this._main.focus();
    });
    const logout = button('dpnb-button', trans.__('Log out'), () => void this._onLogout());
    const brand = element('p', 'dpnb-brand', trans.__('dpnb cockpit'));
    const header = element('header', 'dpnb-header', brand, this._live, this._person, logout);
    this.node.append(skip, header, this._said, this._nav.node, this._main);
    window.addEventListener('hashchange', this._onHash);
  }

  /** Stop: another page takes its place. */
  close(): void {
    window.removeEventListener('hashchange', this._onHash);
  }

  /** Say whether changes arrive. */
  live(isLive: boolean): void {
    this._isLive = isLive;
    this._drawLive();
  }

  /** Read the state; while that is under way, once more afterwards. */
  async read(): Promise<void> {
    if (this._isReading) {
      this._isAgain = true;
      return;
    }
    this._isReading = true;
    try {
      this._state = await this._service.state();
      this._draw();
    } catch (error) {
      this._fail(error);
    } finally {
      this._isReading = false;
    }
    if (this._isAgain) {
      this._isAgain = false;
      await this.read();
    }
  }

  private readonly _fail = (error: unknown): void => {
    if (error instanceof Refused && error.isLogin) {
      this._onEnd(error.message);
    } else if (error instanceof Refused) {
      setText(this._said, error.message);
    } // otherwise the connection is lost, which the stream of events notices
  };

  private _draw(): void {
    const state = this._state;
    if (!state) {
      return;
    }
    setText(this._person, trans.__('%1 · %2', state.name, state.role));
    const shown = state.tables.find(({ name }) => hashOf(name) === location.hash) ?? state.tables[0];
    if (shown && location.hash !== hashOf(shown.name)) {
      history.replaceState(null, '', hashOf(shown.name));
    }
    this._actions.revocable = new Set(state.tokens.filter(one => one.may_rotate).map(({ name }) => name));
    this._nav.update(state.tables);
    document.title = shown ? trans.__('%1 · dpnb cockpit', shown.name) : trans.__('dpnb cockpit');
    arrange(this._main, [
      shown ? this._viewOf(shown, state.may_act) : this._none,
      ...(state.may_act ? [this._tokens.node] : [])
    ]);
    this._tokens.update(state.tokens);
    this._drawLive();
  }

  private _viewOf(table: ITableState, mayAct: boolean): HTMLElement {
    const view = this._views.get(table.name) ?? new TableView(this._service, mayAct ? this._actions : null, this._fail);
    this._views.set(table.name, view);
    view.update(table);
    return view.node;
  }

  private _drawLive(): void {
    const isOut = this._isLive === false;
    this._main.classList.toggle('dpnb-mod-out-of-date', isOut);
    this._live.dataset.live = String(!isOut);
    const since = this._state ? clock(this._state.time) : '';
    setText(
      this._live,
      isOut ? trans.__('Out of date since %1: connection lost, trying again', since) : trans.__('Live')
    );
  }

  private async _onLogout(): Promise<void> {
    try {
      await this._service.logout();
      this._onEnd(trans.__('You have logged out.'));
    } catch (error) {
      this._fail(error);
    }
  }
}
