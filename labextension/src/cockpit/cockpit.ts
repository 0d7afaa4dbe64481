import { Follower } from './follow';
import { LoginView } from './loginView';
import { PageView } from './pageView';
import { Service } from './service';

/** The cockpit in an element of a page: a login, and after it the tables. */
export class Cockpit {
  private readonly _login: LoginView;
  private _page: PageView | null = null;
  private _follower: Follower | null = null;

  constructor(
    private readonly _host: HTMLElement,
    private readonly _service = new Service()
  ) {
    this._login = new LoginView(_service, () => this._open());
    if (_service.hasLogin) {
      this._open();
    } else {
      this._end('');
    }
  }

  /** Follow the service no longer. */
  close(): void {
    this._follower?.stop();
    this._page?.close();
    this._follower = this._page = null;
  }

  private _open(): void {
    const page = new PageView(this._service, message => this._end(message));
    this._page = page;
    this._host.replaceChildren(page.node);
    this._follower = new Follower(this._service, {
      changed: (): void => void page.read(),
      live: (isLive): void => page.live(isLive),
      ended: (): void => void page.read() // whose refusal says why
    });
    void page.read();
  }

  /** Ask for a token; nothing of the tables stays on the page. */
  private _end(message: string): void {
    this.close();
    this._service.forget();
    document.querySelectorAll('dialog').forEach(dialog => dialog.remove());
    this._host.replaceChildren(this._login.node);
    this._login.open(message);
  }
}
