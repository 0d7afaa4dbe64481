import { describe, expect, it } from 'vitest';

import { clock, message, statusLine } from '../format';
import type { LedgerView } from '../tokens';
import { sharedSession, sharedSnapshot } from './fixture';

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
    const texts = views.map(message);
    expect(texts).not.toContain(null);
    expect(new Set(texts).size).toBe(views.length);
  });
});

describe('statusLine', () => {
  it('says what is left in the session used last', () => {
    expect(statusLine(live())).toBe('dpnb 83.3% left');
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
  it('keeps a text that is no time', () => {
    expect(clock('yesterday')).toBe('yesterday');
  });

  it('shows minutes and seconds', () => {
    expect(clock('2026-11-21T01:20:07Z')).toMatch(/20.07/);
  });
});
