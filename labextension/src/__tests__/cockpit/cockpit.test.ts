import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { Cockpit } from '../../cockpit/cockpit';
import { RETRY_MS, SILENCE_MS } from '../../cockpit/follow';
import { SHOWN } from '../../cockpit/longText';
import type { IServiceState } from '../../protocol/curation';
import { FakeService } from './fakeService';
import { amount, asked, NONE, part, row, state, table } from './state';

let host: HTMLElement;
let service: FakeService;
let cockpit: Cockpit | null = null;

const wait = (check: () => void): Promise<void> => vi.waitFor(check, { timeout: 5000, interval: 2 });
const find = (selector: string): HTMLElement => {
  const node = document.querySelector<HTMLElement>(selector);
  if (!node) {
    throw new Error(`there is no ${selector}`);
  }
  return node;
};
const texts = (selector: string): (string | null)[] =>
  [...document.querySelectorAll(selector)].map(node => node.textContent);
const named = (name: string): HTMLButtonElement => {
  const found = [...document.querySelectorAll('button')].filter(
    one => (one.getAttribute('aria-label') ?? one.textContent) === name
  );
  const last = found[found.length - 1];
  if (!last) {
    throw new Error(`there is no button ${name}`);
  }
  return last;
};
const write = (selector: string, text: string): void => {
  const field = find(selector);
  if (field instanceof HTMLInputElement || field instanceof HTMLTextAreaElement || field instanceof HTMLSelectElement) {
    field.value = text;
    field.dispatchEvent(new Event('input', { bubbles: true }));
  }
};

async function open(shown: IServiceState = state()): Promise<void> {
  service = new FakeService(shown);
  cockpit = new Cockpit(host);
  write('#dpnb-token', 'dpnb_secret');
  named('Log in').click();
  await wait(() => find('.dpnb-table'));
}

/** What jsdom lacks. */
function stubDialogs(): void {
  HTMLDialogElement.prototype.showModal = function (): void {
    this.open = true;
  };
  HTMLDialogElement.prototype.close = function (): void {
    this.open = false;
    this.dispatchEvent(new Event('close'));
  };
}

beforeEach(() => {
  stubDialogs();
  sessionStorage.clear();
  location.hash = '';
  host = document.createElement('div');
  document.body.replaceChildren(host);
});

afterEach(() => {
  cockpit?.close();
  cockpit = null;
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

describe('a login', () => {
  it('sends the token once, and keeps it nowhere', async () => {
    await open();
    expect(service.sent[0]).toMatchObject({ path: '/login', body: { token: 'dpnb_secret' } });
    expect(service.sent[1]).toMatchObject({ path: '/api/state', csrf: 'the-csrf' });
    expect(document.documentElement.outerHTML + JSON.stringify(Object.entries(sessionStorage))).not.toContain(
      'dpnb_secret'
    );
    expect(find('.dpnb-person').textContent).toBe('eve · curator');
  });

  it('says why it is refused, and asks again', async () => {
    service = new FakeService(state());
    service.refusals.set('/login', [401, 'The token is unknown.']);
    cockpit = new Cockpit(host);
    write('#dpnb-token', 'wrong');
    named('Log in').click();
    await wait(() => expect(find('.dpnb-login-fault').textContent).toBe('The token is unknown.'));
    expect((find('#dpnb-token') as HTMLInputElement).value).toBe('');
    expect(document.activeElement).toBe(find('#dpnb-token'));
  });

  it('leaves nothing of the tables on the page when it has ended', async () => {
    await open();
    service.refusals.set('/api/state', [401, 'The login has ended. Log in again.']);
    service.tell();
    await wait(() => find('#dpnb-token'));
    expect(find('.dpnb-login-fault').textContent).toBe('The login has ended. Log in again.');
    expect(host.textContent).not.toContain('visits');
    expect(sessionStorage.length).toBe(0);
  });

  it('ends by logging out', async () => {
    await open();
    named('Log out').click();
    await wait(() => expect(find('.dpnb-login-fault').textContent).toBe('You have logged out.'));
    expect(service.sent.some(({ path }) => path === '/api/logout')).toBe(true);
  });
});

describe('the page', () => {
  it('shows a table, and follows its changes', async () => {
    await open();
    expect(find('h1').textContent).toBe('visits');
    expect(texts('.dpnb-part-name')).toEqual(['ana']);
    service.state = state({ tables: [table({ spent: '30% spent' })] });
    service.tell();
    await wait(() => expect(find('.dpnb-spent-percent').textContent).toBe('30% spent'));
    expect(find('.dpnb-live').textContent).toBe('Live');
  });

  it('says that it is out of date when the connection is lost, and that it is not afterwards', async () => {
    await open();
    service.tell();
    await wait(() => expect(find('.dpnb-live').dataset.live).toBe('true'));
    vi.useFakeTimers();
    service.lose();
    await wait(() => expect(find('.dpnb-live').textContent).toContain('Out of date since'));
    expect(find('main').classList.contains('dpnb-mod-out-of-date')).toBe(true);
    await vi.advanceTimersByTimeAsync(RETRY_MS[0]);
    await wait(() => {
      service.tell();
      expect(find('.dpnb-live').textContent).toBe('Live');
    });
  });

  it('says that it is out of date when the service is silent', async () => {
    await open();
    service.tell();
    await wait(() => expect(find('.dpnb-live').dataset.live).toBe('true'));
    vi.useFakeTimers();
    service.tell(': still here\n\n');
    await vi.advanceTimersByTimeAsync(SILENCE_MS + 100);
    expect(find('.dpnb-live').dataset.live).toBe('false');
  });

  it('shows each of several tables under its own address', async () => {
    await open(state({ tables: [table(), table({ name: 'a/b <i>', requests: [asked(3)], frozen: 'x' })] }));
    expect(location.hash).toBe('#visits');
    expect(texts('.dpnb-nav-link')[1]).toContain('frozen · 1 request');
    location.hash = '#a%2Fb%20%3Ci%3E';
    await wait(() => expect(find('h1').textContent).toBe('a/b <i>'));
    expect(document.querySelector('h1 i')).toBeNull();
  });

  it('says who decided a request, what was granted and until when', async () => {
    const decided = asked(2, {
      status: 'approved in part',
      decided_by: 'eve',
      decided: '2026-11-21T02:20:00.000Z',
      until: '2026-12-21T02:20:00.000Z',
      granted: amount('mu 0.1'),
      reason: 'a start',
      spent: null
    });
    await open(state({ tables: [table({ requests: [decided] })] }));
    expect(find('.dpnb-request-decision').textContent).toMatch(
      /^approved in part by eve, .*2026.*: mu 0\.1 until .*2026.* \(a start\)$/
    );
  });

  it('has no act for an auditor', async () => {
    await open(state({ role: 'auditor', may_act: false, tokens: [], tables: [table({ requests: [asked(3)] })] }));
    const buttons = [...document.querySelectorAll('button')].filter(one => one.closest('[hidden]') === null);
    expect(buttons.map(one => one.textContent).filter(text => text !== 'Show more')).toEqual([
      'Log out',
      'Statement…',
      'Export as CSV',
      'Audit the ledger'
    ]);
  });

  it('shows what analysts wrote as texts', async () => {
    const hostile = '<img src=x onerror="globalThis.hit = 1"><script>globalThis.hit = 1</script>';
    const request = asked(3, {
      why: hostile,
      analyst: hostile,
      queries: [{ words: hostile, target: hostile, cost: amount(hostile), error: hostile }],
      cap_after: amount(hostile)
    });
    const decided = asked(2, {
      status: 'declined',
      decided_by: hostile,
      decided: hostile,
      until: hostile,
      granted: amount(hostile),
      reason: hostile,
      spent: null
    });
    const hostileTable = table({
      requests: [request, decided],
      parts: [part(hostile, { project: hostile })],
      frozen: hostile,
      moments: [
        { id: 0, time: '2026-11-21T01:20:00Z', spent: 0, text: hostile },
        { id: 1, time: '2026-11-21T01:20:00Z', spent: 0.1, text: hostile }
      ]
    });
    service = new FakeService(state({ tables: [hostileTable] }));
    service.rows = [row(1, { words: hostile, actor: hostile, cost: hostile, status: hostile, kind: hostile })];
    sessionStorage.setItem('dpnb-cockpit-csrf', 'kept');
    cockpit = new Cockpit(host);
    await wait(() => find('.dpnb-log-row'));
    expect(document.querySelectorAll('img, script, i')).toHaveLength(0);
    expect(find('.dpnb-request-why').textContent).toBe(hostile);
    expect(find('.dpnb-log-words').textContent).toBe(hostile);
  });
});

describe('an act', () => {
  const confirm = (): HTMLElement => find('dialog button[type=submit]');

  it('is asked once, with what will happen, and then sent', async () => {
    await open();
    named('Freeze visits').click();
    expect(find('dialog').textContent).toContain('Recorded answers stay free.');
    expect(document.activeElement).toBe(find('#dpnb-field-why'));
    write('#dpnb-field-why', ' an audit ');
    expect(service.acts).toEqual([]);
    confirm().click();
    confirm().click(); // impatient
    await wait(() => expect(document.querySelector('dialog')).toBeNull());
    expect(service.acts).toEqual([{ act: 'freeze', why: 'an audit' }]);
    expect(find('.dpnb-said').textContent).toBe('visits is frozen.');
  });

  it('is not sent when it is cancelled, nor without a reason that it needs', async () => {
    await open();
    named('Freeze visits').click();
    confirm().click();
    named('Cancel').click();
    await wait(() => expect(document.querySelector('dialog')).toBeNull());
    expect(service.acts).toEqual([]);
  });

  it('stays in its dialog when it is refused', async () => {
    await open(state({ tables: [table({ frozen: 'an audit' })] }));
    service.refusals.set('/api/tables/visits/acts', [422, 'why: must be shorter']);
    named('Unfreeze visits').click();
    confirm().click();
    await wait(() => expect(find('.dpnb-dialog-fault').textContent).toBe('why: must be shorter'));
    service.refusals.clear();
    confirm().click();
    await wait(() => expect(document.querySelector('dialog')).toBeNull());
    expect(service.acts).toHaveLength(2);
  });

  it('ends the request that was shown, and resumes a row', async () => {
    const running = { number: 7, analyst: 'bob', call: 'release', seconds: 90 };
    const held = {
      row: 3,
      analyst: 'ana',
      time: '2026-11-21T01:20:00.000Z',
      words: 'a sum',
      cost: 'mu 1',
      why: 'lost'
    };
    await open(state({ tables: [table({ running, waiting: 2, held: [held] })] }));
    expect(find('.dpnb-executed').textContent).toBe('bob runs a release for 90 s; 2 wait.');
    for (const name of ['End the request of bob', 'Resume row 3']) {
      named(name).click();
      confirm().click();
      await wait(() => expect(document.querySelector('dialog')).toBeNull());
    }
    expect(service.acts).toEqual([
      { act: 'end', number: 7 },
      { act: 'resume', row: 3 }
    ]);
  });

  it('shows nothing of this while nothing runs for long', async () => {
    await open();
    expect(find('.dpnb-executed').closest('section')?.hidden).toBe(true);
  });

  it('names the digest of the request that was shown', async () => {
    await open(state({ tables: [table({ requests: [asked(3)] })] }));
    named('Approve…').click();
    expect(find('dialog').textContent).toContain('after an approval: mu 0.2.');
    // The request changes below the open dialog: what was shown is what is approved, or nothing.
    service.state = state({ tables: [table({ requests: [asked(4, { digest: 'e'.repeat(64) })] })] });
    service.tell();
    await wait(() => expect(find('.dpnb-request').dataset.request).toBe('4'));
    confirm().click();
    await wait(() => expect(service.acts).toHaveLength(1));
    const approval = { act: 'approve', request: 3, digest: 'd'.repeat(64), amount: null, until: null, why: '' };
    expect(service.acts).toEqual([approval]);
  });

  it('approves a part until a time, or declines with a reason', async () => {
    await open(state({ tables: [table({ requests: [asked(3)] })] }));
    named('Approve in part…').click();
    expect((find('#dpnb-field-mu') as HTMLInputElement).value).toBe('0.17320508075688773');
    write('#dpnb-field-mu', '0.1');
    write('#dpnb-field-until', '2027-01-31T12:00');
    confirm().click();
    await wait(() => expect(document.querySelector('dialog')).toBeNull());
    named('Decline…').click();
    write('#dpnb-field-why', 'too much');
    confirm().click();
    await wait(() => expect(service.acts).toHaveLength(2));
    expect(service.acts).toMatchObject([
      { amount: { ...NONE, mu: '0.1' }, until: new Date('2027-01-31T12:00').toISOString().replace('.000', '') },
      { act: 'decline', request: 3, digest: 'd'.repeat(64), why: 'too much' }
    ]);
  });

  it('moves a cap, revokes and restores', async () => {
    await open(state({ tables: [table({ parts: [part('ana'), part('bob', { is_revoked: true })] })] }));
    named('Move the cap of ana').click();
    expect((find('#dpnb-field-percent') as HTMLInputElement).value).toBe('25');
    expect(find('dialog').textContent).toContain('Spent so far: 6.25% (mu 0.05).');
    expect(find('#dpnb-field-mu').closest<HTMLElement>('.dpnb-field')?.hidden).toBe(true);
    write('#dpnb-field-percent', '6');
    confirm().click();
    await wait(() => expect(find('.dpnb-dialog-fault').textContent).toContain('At least what is spent: 6.25%'));
    for (const wrong of ['1/3', '0x1F', '1e-1', '0', '100.0000001', 'NaN']) {
      write('#dpnb-field-percent', wrong); // a share of 1/3 would be another one
      confirm().click();
      await wait(() => expect(find('.dpnb-dialog-fault').textContent).toContain('must be a number above 0'));
    }
    write('#dpnb-field-percent', '12,5 %');
    confirm().click();
    await wait(() => expect(document.querySelector('dialog')).toBeNull());
    for (const [kind, mu] of [
      ['exact', '0.15'],
      ['none', '']
    ] as const) {
      named('Move the cap of ana').click();
      write('#dpnb-field-kind', kind);
      write('#dpnb-field-mu', mu);
      confirm().click();
      await wait(() => expect(document.querySelector('dialog')).toBeNull());
    }
    for (const label of ['Revoke ana', 'Restore bob']) {
      named(label).click();
      confirm().click();
      await wait(() => expect(document.querySelector('dialog')).toBeNull());
    }
    const level = 'analyst';
    expect(service.acts).toEqual([
      { act: 'move_cap', level, name: 'ana', cap: { share: '12.5e-2' } },
      { act: 'move_cap', level, name: 'ana', cap: { ...NONE, mu: '0.15' } },
      { act: 'move_cap', level, name: 'ana', cap: null },
      { act: 'revoke', level, name: 'ana' },
      { act: 'restore', level, name: 'bob' }
    ]);
  });

  it('moves no cap by the rounding of what is shown', async () => {
    const cap = amount('mu 0.1', { mu: '0.1' });
    const none = { cap: null, cap_share: null };
    const parts = [part('ana'), part('bob', { cap, limit: cap, cap_share: null }), part('cy', none)];
    await open(state({ tables: [table({ parts })] }));
    for (const [name, kind] of [
      ['ana', 'percent'],
      ['bob', 'exact'],
      ['cy', 'none']
    ] as const) {
      named(`Move the cap of ${name}`).click();
      expect((find('#dpnb-field-kind') as HTMLSelectElement).value).toBe(kind);
      for (const chosen of kind === 'percent' ? [kind, 'exact'] : [kind]) {
        write('#dpnb-field-kind', chosen);
        confirm().click();
        await wait(() => expect(find('.dpnb-dialog-fault').textContent).toContain('the cap as it is'));
      }
      named('Cancel').click();
      await wait(() => expect(document.querySelector('dialog')).toBeNull());
    }
    expect(service.acts).toEqual([]);
    named('Move the cap of cy').click();
    write('#dpnb-field-kind', 'percent');
    confirm().click();
    await wait(() => expect(service.acts).toMatchObject([{ name: 'cy', cap: { share: '100e-2' } }]));
  });

  it('refuses a cap of which any component is less than what is spent', async () => {
    const spent = amount('mu 0.05, discovery delta 1e-7', { mu: '0.05', discovery_delta: '1e-7' });
    await open(state({ tables: [table({ parts: [part('ana', { spent })] })] }));
    named('Move the cap of ana').click();
    write('#dpnb-field-kind', 'exact');
    write('#dpnb-field-discovery_delta', '9e-8');
    confirm().click();
    await wait(() => expect(find('.dpnb-dialog-fault').textContent).toContain('At least what is spent'));
    write('#dpnb-field-discovery_delta', '1e-7');
    confirm().click();
    await wait(() => expect(service.acts).toHaveLength(1));
  });

  it('shows a token that is made while the dialog is closed', async () => {
    await open();
    named('New token for ana').click();
    confirm().click();
    named('Cancel').click();
    await wait(() => expect((find('#dpnb-field-token') as HTMLInputElement).value).toBe('dpnb_new'));
  });

  it('fills in the first of the choices', async () => {
    await open();
    named('Statement…').click();
    expect((find('#dpnb-field-format') as HTMLSelectElement).value).toBe('html');
    named('Cancel').click();
    named('Revoke ana').click();
    expect((find('#dpnb-field-what') as HTMLSelectElement).value).toBe('part');
  });

  it('revokes the tokens alone of a person who has some', async () => {
    await open(state({ tables: [table({ parts: [part('ana'), part('bob')] })] }));
    named('Revoke bob').click();
    expect(document.querySelector('#dpnb-field-what')).toBeNull();
    named('Cancel').click();
    await wait(() => expect(document.querySelector('dialog')).toBeNull());
    named('Revoke ana').click();
    write('#dpnb-field-what', 'tokens');
    confirm().click();
    await wait(() => expect(document.querySelector('dialog')).toBeNull());
    expect(service.acts).toEqual([]);
    expect(service.sent.filter(({ path }) => path === '/api/tokens').map(({ body }) => body)).toEqual([
      { act: 'revoke', name: 'ana' }
    ]);
  });

  it('adds, removes and hands over, and shows a new token once', async () => {
    const project = { level: 'project', has_cap: false, free: 0.4 };
    const parts = [part('flu', project), part('ana', { is_unused: true }), part('bob', { is_removed: true })];
    await open(state({ tables: [table({ mode: 'reserved', free: 0.321, parts })] }));
    const act = async (label: string, values: Record<string, string>): Promise<void> => {
      named(label).click();
      Object.entries(values).forEach(([name, value]) => write(`#dpnb-field-${name}`, value));
      confirm().click();
      await wait(() => expect((find('#dpnb-field-token') as HTMLInputElement).value).toBe('dpnb_new'));
      confirm().click();
      await wait(() => expect(document.querySelector('dialog')).toBeNull());
    };
    named('Add analyst…').click();
    expect((find('#dpnb-field-share') as HTMLInputElement).value).toBe('32.1');
    expect(find('#dpnb-field-project').textContent).toContain('flu · 40.0% of it left');
    named('Cancel').click();
    await wait(() => expect(document.querySelector('dialog')).toBeNull());
    await act('Add analyst…', { name: 'dora', project: 'flu', share: '12.5', expires: '30d' });
    await act('Hand over the part of ana', { to: 'ed' });
    named('Remove ana').click();
    confirm().click();
    await wait(() => expect(document.querySelector('dialog')).toBeNull());
    await act('Add bob again', {});
    expect(service.acts).toEqual([
      { act: 'add_analyst', name: 'dora', project: 'flu', amount: { share: '12.5e-2' }, expires: '30d' },
      { act: 'hand_over', name: 'ana', to: 'ed', expires: null },
      { act: 'remove_analyst', name: 'ana' },
      { act: 'add_analyst', name: 'bob', project: null, amount: null, expires: null }
    ]);
    const hidden = (label: string): boolean => named(label).hidden;
    expect(['Hand over the part of bob', 'Add ana again', 'Remove bob', 'Remove flu'].map(hidden)).toEqual(
      Array(4).fill(true)
    );
  });

  it('divides what is left among several people, and shows every token although a later name is refused', async () => {
    await open(state({ tables: [table({ mode: 'reserved', free: 0.2, parts: [part('ana')] })] }));
    named('Add analyst…').click();
    write('#dpnb-field-name', 'cy, dora , ed');
    service.refuse = (body): [number, string] | null =>
      JSON.stringify(body).includes('"dora"') ? [422, 'dora has a part'] : null;
    confirm().click();
    await wait(() => expect(find('.dpnb-dialog-fault').textContent).toBe('dora has a part'));
    service.refuse = (): null => null;
    confirm().click(); // again: cy is not added twice
    await wait(() => expect(document.querySelectorAll('dialog input[id*=token]')).toHaveLength(3));
    expect(find('dialog').textContent).toContain('Send each to its person alone');
    expect(texts('dialog label')).toEqual(['Token of cy', 'Token of dora', 'Token of ed']);
    expect(service.acts.map(body => (body as { name: string }).name)).toEqual(['cy', 'dora', 'dora', 'ed']);
    expect(service.acts).toContainEqual({
      act: 'add_analyst',
      name: 'ed',
      project: null,
      amount: { share: '0.066666666' },
      expires: null
    });
  });

  it('divides no name at a blank, so that the service refuses it', async () => {
    await open(state({ tables: [table({ mode: 'reserved', free: 0.2, parts: [part('ana')] })] }));
    named('Add analyst…').click();
    write('#dpnb-field-name', 'Ed Smith, ');
    confirm().click();
    await wait(() => expect(service.acts).toMatchObject([{ name: 'Ed Smith', amount: { share: '20.0e-2' } }]));
  });

  it('makes a token for a new person and revokes one', async () => {
    await open();
    named('New person…').click();
    expect(texts('#dpnb-field-role option')).toEqual(['auditor', 'monitor', 'analyst']);
    write('#dpnb-field-name', 'al');
    confirm().click();
    await wait(() => expect((find('#dpnb-field-token') as HTMLInputElement).value).toBe('dpnb_new'));
    confirm().click();
    await wait(() => expect(document.querySelector('dialog')).toBeNull());
    named('Revoke the tokens of ana').click();
    confirm().click();
    await wait(() => expect(service.sent.filter(({ path }) => path === '/api/tokens')).toHaveLength(2));
    expect(service.sent.filter(({ path }) => path === '/api/tokens').map(({ body }) => body)).toEqual([
      { act: 'new', name: 'al', role: 'auditor', expires: null },
      { act: 'revoke', name: 'ana' }
    ]);
  });

  it('extends tokens, but not those of the reader', async () => {
    const holder = { role: 'curator', created: '', expires: null, may_rotate: true };
    const tokens = ['ana', 'eve'].map(name => ({ ...holder, name, may_extend: name !== 'eve' }));
    await open(state({ tokens }));
    expect([named('Extend the tokens of eve'), named('New token for eve')].map(({ hidden }) => hidden)).toEqual([
      true,
      false
    ]);
    named('Extend the tokens of ana').click();
    write('#dpnb-field-expires', '30d');
    confirm().click();
    await wait(() => expect(document.querySelector('dialog')).toBeNull());
    expect(service.sent.filter(({ path }) => path === '/api/tokens').map(({ body }) => body)).toEqual([
      { act: 'extend', name: 'ana', expires: '30d' }
    ]);
  });

  it('shows a new token once', async () => {
    await open();
    named('New token for ana').click();
    expect(find('dialog').textContent).toContain('revoked at once');
    confirm().click();
    await wait(() => expect((find('#dpnb-field-token') as HTMLInputElement).value).toBe('dpnb_new'));
    confirm().click();
    await wait(() => expect(document.querySelector('dialog')).toBeNull());
    expect(document.documentElement.outerHTML + JSON.stringify(Object.entries(sessionStorage))).not.toContain(
      'dpnb_new'
    );
  });
});

describe('the records', () => {
  it('are the versions, the last backup, figures, and an audit that is started once', async () => {
    const version = { name: '2026', since: '2026-11-21T01:20:00Z', requests: 3, last: null, changes: ['<b>age</b>'] };
    await open();
    expect(find('.dpnb-records').textContent).toContain('No backup is known');
    const audit = { actor: 'al', begun: '2026-11-21T01:20:00Z', ended: null, is_fine: false, text: '' };
    const backup = { time: '2026-11-21T01:20:00Z', rows: 5, is_known: true };
    const figures = [{ words: 'Open streams', value: '7' }];
    service.records = { rows: 9, versions: [version], backup, audit, figures };
    named('Audit the ledger').click();
    await wait(() => expect(find('.dpnb-records').textContent).toContain('An audit runs since'));
    expect(find('.dpnb-records').textContent).toMatch(/Last backup: .*, up to row 5 of 9\./);
    expect(texts('.dpnb-figures tbody td')).toEqual(['7']);
    expect(texts('.dpnb-changes li')).toEqual(['<b>age</b>']);
    named('Audit the ledger').click(); // it runs
    service.records = {
      ...service.records,
      audit: { ...audit, ended: '2026-11-21T01:21:00Z', text: '<i>Problem</i>' }
    };
    service.tell();
    await wait(() => expect(find('.dpnb-audit pre').textContent).toBe('<i>Problem</i>'));
    expect((find('.dpnb-audit') as HTMLDetailsElement).open).toBe(true);
    expect(service.sent.filter(({ path }) => path.endsWith('/audits'))).toHaveLength(1);
  });

  it('of one analyst are a statement of that part', async () => {
    const ceiling = amount('mu 0.2');
    await open(state({ tables: [table({ parts: [part('a b', { ceiling }), part('bob')] })] }));
    named('Statement…').click();
    expect(texts('#dpnb-field-analyst option')).toEqual(['the whole table', 'the part of a b']);
    write('#dpnb-field-analyst', 'a b');
    write('#dpnb-field-format', 'json');
    vi.stubGlobal('URL', { ...URL, createObjectURL: () => 'blob:x', revokeObjectURL: () => undefined });
    find('dialog button[type=submit]').click();
    await wait(() => expect(document.querySelector('dialog')).toBeNull());
    expect(service.sent.map(({ path }) => path)).toContain('/api/tables/visits/statement?format=json&analyst=a+b');
  });
});

describe('a plan', () => {
  const open_ = (selector: string): HTMLDetailsElement => {
    const fold = find(`${selector} .dpnb-plan`) as HTMLDetailsElement;
    fold.open = true;
    return fold;
  };

  it('is read when it is opened, once, and shown as a text', async () => {
    await open(state({ tables: [table({ requests: [asked(3)] })] }));
    service.rows = [row(1), row(2, { kind: 'act', has_plan: false })];
    service.plans = ['{"reads": ["note"]}', '<img src=x onerror="globalThis.hit = 1">'];
    service.tell();
    await wait(() => expect(texts('.dpnb-log-row')).toHaveLength(2));
    const folds = [...document.querySelectorAll<HTMLElement>('.dpnb-log-row .dpnb-plan')];
    expect(folds.map(fold => fold.hidden)).toEqual([true, false]);
    expect(service.sent.filter(({ path }) => path.includes('/plan'))).toEqual([]);
    open_('.dpnb-request');
    await wait(() => expect(texts('.dpnb-request pre')).toEqual(service.plans));
    expect(document.querySelector('.dpnb-request pre img')).toBeNull();
    const asks = (): string[] => service.sent.map(({ path }) => path).filter(path => path.includes('/plan'));
    expect(asks()).toEqual(['/api/tables/visits/plan?row=3']);
    service.tell();
    await wait(() => expect(find('.dpnb-live').textContent).toBe('Live'));
    expect(texts('.dpnb-request pre')).toEqual(service.plans);
    expect(asks()).toHaveLength(1);
  });

  it('can be opened again when it could not be read', async () => {
    await open(state({ tables: [table({ requests: [asked(3)] })] }));
    service.refusals.set('/api/tables/visits/plan?row=3', [422, 'row 3 cannot be read']);
    const fold = open_('.dpnb-request');
    await wait(() => expect(fold.open).toBe(false));
    expect(document.body.textContent).toContain('row 3 cannot be read');
    service.refusals.clear();
    service.plans = ['{}'];
    open_('.dpnb-request');
    await wait(() => expect(texts('.dpnb-request pre')).toEqual(['{}']));
  });
});

describe('the log', () => {
  it('folds a long text, which never becomes markup', async () => {
    const long = `<b>count</b> ${'x'.repeat(300)}`;
    service = new FakeService(state());
    service.rows = [row(1, { words: long }), row(2)];
    sessionStorage.setItem('dpnb-cockpit-csrf', 'kept');
    cockpit = new Cockpit(host);
    await wait(() => expect(texts('.dpnb-log-words')[0]).toBe('question 2'));
    expect(find('.dpnb-long-cut').textContent).toBe(`${long.slice(0, SHOWN)}…`);
    expect(find('.dpnb-long div').textContent).toBe(long);
    expect(document.querySelector('.dpnb-log-words b')).toBeNull();
  });

  it('is read to its end, is searched, and reads again what was not finished', async () => {
    service = new FakeService(state());
    service.rows = [row(1), row(2, { status: 'pending' }), row(3, { actor: 'bob' }), row(4), row(5)];
    sessionStorage.setItem('dpnb-cockpit-csrf', 'kept');
    cockpit = new Cockpit(host);
    await wait(() => expect(texts('.dpnb-log-id')).toEqual(['5', '4', '3', '2', '1']));
    write('.dpnb-bar-row input', 'BOB question');
    expect(texts('.dpnb-log-id')).toEqual(['3']);
    expect(find('.dpnb-log-found').textContent).toBe('1 of 5 rows');
    write('.dpnb-bar-row input', '#2');
    expect(texts('.dpnb-log-status')).toEqual(['pending']);
    service.rows[1] = row(2, { status: 'approved' });
    service.tell();
    await wait(() => expect(texts('.dpnb-log-status')).toEqual(['approved']));
    write('.dpnb-bar-row input', 'nothing of it');
    expect(texts('.dpnb-log-id')).toEqual([]);
  });
});
