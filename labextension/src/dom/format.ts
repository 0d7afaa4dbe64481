import type { ISnapshot } from '../protocol/snapshot';
import type { LedgerView } from '../kernel/tokens';

/** What the status bar says unless the reader's settings want something else. */
export const DEFAULT_HEADLINE = 'remaining';

/** The clock time of an ISO 8601 instant, in the reader's time zone; the text itself when it is not one. */
export function clock(iso: string): string {
  const date = new Date(iso);
  return Number.isNaN(date.getTime())
    ? iso
    : date.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', second: '2-digit' });
}

/** A number between 0 and 1 in per cent.  Rounded up: what was spent is never shown as less. */
export const percent = (share: number): string => `${roundedUp(share, 2, 2)}%`;

/**
 * A number from 0 on, times a power of ten, with a given number of decimals; never less than it is.
 *
 * It means the decimal that it is written as, and digits are cut from that text: products of doubles would be a last
 * digit off, to either side.
 */
export function roundedUp(value: number, decimals: number, power = 0): string {
  const [mantissa = '0', exponent = '0'] = value.toExponential().split('e');
  const digits = mantissa.replace('.', '');
  const kept = Number(exponent) + power + 1 + decimals;
  if (digits.length <= kept || value === 0) {
    return String(Number(`${mantissa}e${Number(exponent) + power}`));
  }
  const cut = BigInt(digits.slice(0, Math.max(kept, 0)) || '0') + 1n; // what is left out is never nothing
  return String(Number(`${cut}e-${decimals}`));
}

/** What the panel says above, or instead of, the sessions; null when there is nothing to say. */
export function message(view: LedgerView, isBusy = false): string | null {
  switch (view.kind) {
    case 'no-kernel':
      return 'No running kernel. Open a notebook, or start its kernel.';
    case 'waiting':
      return isBusy
        ? 'The kernel is busy; it will answer when it is done.'
        : 'Waiting for the kernel; a busy kernel answers when it is done.';
    case 'no-dpnb':
      return 'This kernel has not loaded dpnb: run %load_ext dpnb';
    case 'restarted':
      return (
        'The kernel was restarted. The budget spent is recorded in the ledger, ' +
        'and running the notebook again repeats its queries for free.'
      );
    case 'dead':
      return 'The kernel died. The budget spent is recorded in the ledger.';
    case 'unreadable':
      return 'The dpnb of this kernel and the dpnb of this page differ in version: upgrade them together, then reload the page.';
    case 'stale':
      return `Last known at ${clock(view.snapshot.time)}; the kernel is busy and has not confirmed it yet.`;
    case 'live':
      return view.snapshot.sessions.length > 0 ? null : 'dpnb is loaded. The budget of a dpnb.Session will show here.';
  }
}

/**
 * The line in the status bar; null when there is no session.
 *
 * @param headline Which of the session's headlines the reader wants; the first stands in for one that is missing.
 */
export function statusLine(view: LedgerView, headline = DEFAULT_HEADLINE): string | null {
  const session = newestSession(view);
  if (!session) {
    return null;
  }
  const { headlines, name } = session;
  const said = headlines.find(line => line.id === headline) ?? headlines[0];
  const doubts = [session.notice, view.kind === 'stale' ? 'last known' : null].filter(doubt => doubt !== null);
  return [`dpnb ${said?.text ?? name}`, ...doubts].join(' · ');
}

/** The session that was used last, if there is one to show. */
export function newestSession(view: LedgerView): ISnapshot['sessions'][number] | null {
  return 'snapshot' in view ? (view.snapshot.sessions[0] ?? null) : null;
}
