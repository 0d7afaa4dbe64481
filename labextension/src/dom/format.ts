import type { IConnectionSnapshot } from '../protocol/snapshot';
import type { ISnapshot } from '../protocol/snapshot';
import type { LedgerView } from '../kernel/tokens';
import { trans } from '../translation';

/** Default of the setting for the line in the status bar. */
export const DEFAULT_HEADLINE = 'remaining';

/** The clock time of an ISO 8601 instant, in the reader's time zone; any other text is returned unchanged. */
export function clock(iso: string): string {
  const date = new Date(iso);
  return Number.isNaN(date.getTime())
    ? iso
    : date.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', second: '2-digit' });
}

/** A number between 0 and 1 as a percentage, rounded up as in Python: spending is never shown smaller than it is. */
export function percent(share: number): string {
  const decimals = share > 0.0099 ? 1 : 2;
  return share === 0 ? '0%' : `${Number(roundedUp(share, decimals, 2)).toFixed(decimals)}%`;
}

/**
 * A non-negative number times a power of ten, rounded up to a given number of decimals.
 *
 * Computed from the digits of its shortest decimal, since a product of doubles could be off by one in the last digit.
 */
export function roundedUp(value: number, decimals: number, power = 0): string {
  const [mantissa = '0', exponent = '0'] = value.toExponential().split('e');
  const digits = mantissa.replace('.', '');
  const kept = Number(exponent) + power + 1 + decimals;
  if (digits.length <= kept || value === 0) {
    return String(Number(`${mantissa}e${Number(exponent) + power}`));
  }
  const cut = BigInt(digits.slice(0, Math.max(kept, 0)) || '0') + 1n; // the omitted digits are not all 0
  return String(Number(`${cut}e-${decimals}`));
}

/** The message of the panel above the sessions, or instead of them; null if there is none. */
export function message(view: LedgerView, isBusy = false): string | null {
  switch (view.kind) {
    case 'no-kernel':
      return trans.__('No running kernel. Open a notebook, or start its kernel.');
    case 'waiting':
      return isBusy
        ? trans.__('The kernel is busy; the budget will be shown when it is idle.')
        : trans.__('Waiting for the kernel; a busy kernel replies when it is idle.');
    case 'no-dpnb':
      return trans.__('This kernel has not loaded dpnb: run %load_ext dpnb');
    case 'restarted':
      return trans.__(
        'The kernel was restarted. The budget spent is recorded in the ledger, and running the notebook again repeats its queries for free.'
      );
    case 'dead':
      return trans.__('The kernel died. The budget spent is recorded in the ledger.');
    case 'unreadable':
      return trans.__(
        'This kernel and this page have different versions of dpnb: install the same version for both, then reload the page.'
      );
    case 'stale':
      return trans.__('Last known at %1; the kernel is busy and has not confirmed it yet.', clock(view.snapshot.time));
    case 'live':
      return view.snapshot.sessions.length > 0
        ? null
        : trans.__('dpnb is loaded. The budget of a dpnb.Session will be shown here.');
  }
}

/**
 * The line in the status bar; null if there is no session.
 *
 * @param headline Id of the selected headline; if the session lacks it, its first headline is shown.
 */
export function statusLine(view: LedgerView, headline = DEFAULT_HEADLINE): string | null {
  const session = newestSession(view);
  if (!session) {
    return null;
  }
  const { headlines, name } = session;
  const selected = headlines.find(line => line.id === headline) ?? headlines[0];
  const remarks = [
    session.notice,
    isOutOfDate(session.connection) ? trans.__('out of date') : null,
    view.kind === 'stale' ? trans.__('last known') : null
  ].filter(remark => remark !== null);
  return [`dpnb ${selected?.text ?? name}`, ...remarks].join(' · ');
}

/** The most recently used session; null if there is none. */
export function newestSession(view: LedgerView): ISnapshot['sessions'][number] | null {
  return 'snapshot' in view ? (view.snapshot.sessions[0] ?? null) : null;
}

/** Whether the figures of a session may lack charges. */
export const isOutOfDate = (connection: IConnectionSnapshot | null): boolean => connection?.is_current === false;
