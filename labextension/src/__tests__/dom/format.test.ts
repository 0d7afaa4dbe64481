import { describe, expect, it } from 'vitest';

import { clock, message, percent, roundedUp, statusLine } from '../../dom/format';
import type { LedgerView } from '../../kernel/tokens';
import { CURRENT, LOST, sharedSession, sharedSnapshot } from '../fixture';

const live = (sessions = sharedSnapshot().sessions): LedgerView => ({
  kind: 'live',
  snapshot: sharedSnapshot({ sessions })
});

describe('message', () => {
  it('is silent when live sessions speak for themselves', () => {
    expect(message(live())).toBeNull();
  });

  it('names the line that loads dpnb', () => {
    expect(message({ kind: 'no-dpnb' })).toContain('%load_ext dpnb');
  });

  it('tells every other state apart', () => {
    const views: LedgerView[] = [
      { kind: 'no-kernel' },
      { kind: 'waiting' },
      { kind: 'no-dpnb' },
      { kind: 'restarted' },
      { kind: 'dead' },
      { kind: 'unreadable' },
      { kind: 'stale', snapshot: sharedSnapshot() },
      live([])
    ];
    const texts = views.map(view => message(view));
    expect(texts).not.toContain(null);
    expect(new Set(texts).size).toBe(views.length);
  });
});

describe('message, while the kernel is busy,', () => {
  it('says that the budget will be shown later', () => {
    expect(message({ kind: 'waiting' }, true)).toBe('The kernel is busy; the budget will be shown when it is idle.');
  });

  it('leaves sessions that are live to a chip', () => {
    expect(message(live(), true)).toBeNull();
  });
});

describe('figures', () => {
  it.each([
    [0.1116, '11.2%'],
    [0.112, '11.2%'],
    [0.11200000000000002, '11.3%'],
    [0.00968, '0.97%'],
    [0.0099, '0.99%'],
    [0.00990001, '1.0%'],
    [1e-9, '0.01%'],
    [0.99999, '100.0%'],
    [0.29, '29.0%'],
    [1, '100.0%'],
    [0, '0%']
  ])('show a spent share of %s as %s, never as less than it is', (share, text) => {
    expect(percent(share)).toBe(text);
  });

  it.each([
    [0.51681, 4, '0.5169'],
    [0.5168, 4, '0.5168'],
    [0.5168000000000001, 4, '0.5169'],
    [12345.678, 2, '12345.68'],
    [123456, 2, '123456'],
    [3e-7, 4, '0.0001'],
    [1e21, 4, '1e+21'],
    [0, 4, '0']
  ])('show a bound of %s with %s decimals as %s', (value, decimals, text) => {
    expect(roundedUp(value, decimals)).toBe(text);
  });
});

describe('statusLine', () => {
  it.each([
    ['remaining', 'dpnb 83.3% left'],
    ['spent', 'dpnb 16.7% spent'],
    ['odometer', 'dpnb loss so far at most 0.5168'],
    ['max_repetitions', 'dpnb 12 more like the last'],
    ['of a later version', 'dpnb 83.3% left']
  ])('says what the reader wants of it: %s', (headline, line) => {
    expect(statusLine(live(), headline)).toBe(line);
  });

  it('says the first it can where the session cannot tell what is wanted', () => {
    expect(statusLine(live([sharedSession(1, { notice: null })]), 'max_repetitions')).toBe('dpnb 100.0% left');
  });

  it('says the name of a session that has no headline', () => {
    expect(statusLine(live([sharedSession(0, { headlines: [] })]))).toBe('dpnb rand-hie');
  });

  it('says what is left in the session used last', () => {
    expect(statusLine(live())).toBe('dpnb 83.3% left');
  });

  it('adds that the figures are out of date, and only then', () => {
    expect(statusLine(live([sharedSession(0, { connection: LOST })]))).toBe('dpnb 83.3% left · out of date');
    expect(statusLine(live([sharedSession(0, { connection: CURRENT })]))).toBe('dpnb 83.3% left');
  });

  it('says loudly that a rehearsal is not real', () => {
    expect(statusLine(live([sharedSession(1)]))).toBe('dpnb 100.0% left · REHEARSAL: mock data, not real');
  });

  it('says when it is only remembered', () => {
    expect(statusLine({ kind: 'stale', snapshot: sharedSnapshot() })).toBe('dpnb 83.3% left · last known');
  });

  it.each<LedgerView>([{ kind: 'no-kernel' }, { kind: 'restarted' }, live([])])(
    'has nothing to say without a session (%j)',
    view => {
      expect(statusLine(view)).toBeNull();
    }
  );
});

describe('clock', () => {
  it('keeps a text that is not a time', () => {
    expect(clock('yesterday')).toBe('yesterday');
  });

  it('shows minutes and seconds', () => {
    expect(clock('2026-11-21T01:20:07Z')).toMatch(/20.07/);
  });
});
