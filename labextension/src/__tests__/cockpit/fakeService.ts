import { vi } from 'vitest';

import type { IRecordsPage, IServiceState } from '../../protocol/curation';
import type { IAuditRow } from '../../protocol/curation';

/** A request that the page has sent. */
export interface ISent {
  path: string;
  method: string;
  body: unknown;
  csrf: string | null;
}

/** Stands in for the service behind `fetch`. */
export class FakeService {
  readonly sent: ISent[] = [];
  /** Statuses with which the next requests to a path are refused. */
  readonly refusals = new Map<string, [status: number, message: string]>();
  /** With which a request with a body is refused; null if it is not. */
  refuse: (body: unknown) => [status: number, message: string] | null = () => null;
  rows: IAuditRow[] = [];
  plans: string[] = [];
  records: IRecordsPage = { rows: 0, versions: [], backup: null, audit: null, figures: [] };
  private _told: ((text: string) => void) | null = null;
  private _end: (() => void) | null = null;

  constructor(public state: IServiceState) {
    vi.stubGlobal('fetch', (path: string, init: RequestInit) => Promise.resolve(this._answer(path, init)));
  }

  /** The bodies of the acts. */
  get acts(): unknown[] {
    return this.sent.filter(({ path }) => /\/(acts|people)$/.test(path)).map(({ body }) => body);
  }

  /** Send a text over the stream of events. */
  tell(text = 'data: changed\n\n'): void {
    this._told?.(text);
  }

  /** Lose the connection. */
  lose(): void {
    this._end?.();
  }

  private _answer(path: string, { method = 'GET', body, headers, signal }: RequestInit): Response {
    const sent = typeof body === 'string' ? (JSON.parse(body) as unknown) : null;
    const csrf = new Headers(headers).get('X-CSRF-Token');
    if (path !== '/api/events') {
      this.sent.push({ path, method, body: sent, csrf });
    }
    const refusal = this.refusals.get(path) ?? this.refuse(sent);
    if (refusal) {
      const [status, message] = refusal;
      return new Response(JSON.stringify({ message }), { status });
    }
    return path === '/api/events' ? this._stream(signal) : new Response(JSON.stringify(this._content(path)));
  }

  private _content(path: string): unknown {
    if (path === '/login') {
      return { csrf: 'the-csrf', name: 'eve', role: 'curator', ends: '2026-11-21T05:20:00Z' };
    }
    if (path === '/api/state') {
      return this.state;
    }
    if (path.endsWith('/people')) {
      return { table: this.state.tables[0], token: 'dpnb_new' };
    }
    if (path === '/api/tokens') {
      return { name: 'ana', token: 'dpnb_new' };
    }
    if (path.includes('/log?')) {
      const after = Number(path.split('after=')[1]);
      const rows = this.rows.filter(({ id }) => id > after);
      return { rows: rows.slice(0, 2), more: rows.length > 2 };
    }
    if (/\/(records|audits)$/.test(path)) {
      return this.records;
    }
    if (path.includes('/statement?')) {
      return 'a statement';
    }
    if (path.includes('/plan?')) {
      return { row: Number(path.split('row=')[1]), plans: this.plans };
    }
    return this.state.tables[0];
  }

  private _stream(signal: AbortSignal | null | undefined): Response {
    const encoder = new TextEncoder();
    const body = new ReadableStream<Uint8Array>({
      start: (controller): void => {
        this._told = (text): void => controller.enqueue(encoder.encode(text));
        this._end = (): void => controller.error(new TypeError('lost'));
        signal?.addEventListener('abort', () => controller.error(new DOMException('', 'AbortError')));
      }
    });
    return new Response(body);
  }
}
