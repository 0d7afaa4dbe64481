import type { Act, PersonAct, TokenAct } from './acts';
import { isFields, isText } from '../protocol/guards';
import {
  type ILogin,
  type INewToken,
  type IPeopleChanged,
  type IRecordsPage,
  type IServiceState,
  isLogin,
  isNewToken,
  isPeopleChanged,
  isRecordsPage,
  isServiceState
} from '../protocol/curation';
import {
  type IAuditPage,
  type IPlanPage,
  isAuditPage,
  isPlanPage,
  isTableState,
  type ITableState
} from '../protocol/curation';
import { trans } from '../translation';

/** Where the second value of a login is kept: other pages cannot read it, and it ends with the tab. */
const KEY = 'dpnb-cockpit-csrf';

/** A request that the service refused; the message is for the reader. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    message: string
  ) {
    super(message);
  }

  /** Whether the login has ended. */
  get isLogin(): boolean {
    return this.status === 401;
  }
}

/** The service, over the routes of the cockpit. */
export class Service {
  /** Whether this tab has logged in; the login may have ended since. */
  get hasLogin(): boolean {
    return this._csrf !== '';
  }

  /** The token is sent once and kept nowhere; the cookie that comes back cannot be read here. */
  async login(token: string): Promise<ILogin> {
    const login = await this._post('/login', { token }, isLogin);
    sessionStorage.setItem(KEY, login.csrf);
    return login;
  }

  async logout(): Promise<void> {
    await this._request('/api/logout', { method: 'POST', body: '{}' });
    this.forget();
  }

  forget(): void {
    sessionStorage.removeItem(KEY);
  }

  async state(): Promise<IServiceState> {
    return this._read('/api/state', isServiceState);
  }

  async log(table: string, after: number): Promise<IAuditPage> {
    return this._read(`${tablePath(table)}/log?after=${after}`, isAuditPage);
  }

  async plans(table: string, row: number): Promise<IPlanPage> {
    return this._read(`${tablePath(table)}/plan?row=${row}`, isPlanPage);
  }

  /** The disclosure statement of a table, or of the part of one analyst, as a file. */
  async statement(table: string, format: string, analyst: string): Promise<string> {
    const query = new URLSearchParams({ format, ...(analyst === '' ? {} : { analyst }) });
    return (await this._request(`${tablePath(table)}/statement?${query.toString()}`, {})).text();
  }

  async records(table: string): Promise<IRecordsPage> {
    return this._read(`${tablePath(table)}/records`, isRecordsPage);
  }

  /** Start an audit of the ledger of a table, unless one runs. */
  async audit(table: string): Promise<IRecordsPage> {
    return this._post(`${tablePath(table)}/audits`, {}, isRecordsPage);
  }

  async act(table: string, act: Act): Promise<ITableState> {
    return this._post(`${tablePath(table)}/acts`, act, isTableState);
  }

  /** An act about an analyst, which may make a token. */
  async person(table: string, act: PersonAct): Promise<IPeopleChanged> {
    return this._post(`${tablePath(table)}/people`, act, isPeopleChanged);
  }

  /** An act about a token; the token is empty if none was made. */
  async token(act: TokenAct): Promise<INewToken> {
    return this._post('/api/tokens', act, isNewToken);
  }

  /** The text of the stream of events, until it ends; the signal stops it. */
  async *events(signal: AbortSignal): AsyncGenerator<string> {
    const response = await this._request('/api/events', { signal });
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const piece = await reader?.read();
      if (piece === undefined || piece.done) {
        return;
      }
      yield piece.value;
    }
  }

  private get _csrf(): string {
    return sessionStorage.getItem(KEY) ?? '';
  }

  private async _read<T>(path: string, isValue: (value: unknown) => value is T): Promise<T> {
    return checked(await (await this._request(path, {})).json(), isValue);
  }

  private async _post<T>(path: string, content: unknown, isValue: (value: unknown) => value is T): Promise<T> {
    const response = await this._request(path, { method: 'POST', body: JSON.stringify(content) });
    return checked(await response.json(), isValue);
  }

  private async _request(path: string, init: RequestInit): Promise<Response> {
    const headers = { 'content-type': 'application/json', 'x-csrf-token': this._csrf };
    const response = await fetch(path, { ...init, headers, cache: 'no-store', redirect: 'error' });
    if (!response.ok) {
      throw new Refused(response.status, await messageOf(response));
    }
    return response;
  }
}

const tablePath = (table: string): string => `/api/tables/${encodeURIComponent(table)}`;

async function messageOf(response: Response): Promise<string> {
  try {
    const content: unknown = await response.json();
    if (isFields(content) && isText(content.message)) {
      return content.message;
    }
  } catch {
    // not ours: the text below
  }
  return trans.__('The service refused the request (%1).', response.status);
}

function checked<T>(value: unknown, isValue: (value: unknown) => value is T): T {
  if (!isValue(value)) {
    throw new Refused(0, trans.__('The service and this page have different versions: reload the page.'));
  }
  return value;
}
