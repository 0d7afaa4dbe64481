import { beforeEach, describe, expect, it, vi } from 'vitest';

import { TabCache } from '../../kernel/cache';
import { BUSY_AFTER } from '../../kernel/busy';
import { message } from '../../dom/format';
import { KernelWatch } from '../../kernel/kernelWatch';
import type { ISnapshot } from '../../protocol/snapshot';
import { FakeKernel, settle } from '../fakeKernel';
import { releases, sharedSession, sharedSnapshot } from '../fixture';

let kernel: FakeKernel;
let cache: TabCache;

const watch = (): KernelWatch => new KernelWatch(kernel.connection, cache);

beforeEach(() => {
  window.sessionStorage.clear();
  kernel = new FakeKernel();
  cache = new TabCache();
});

describe('asking', () => {
  it('finds that a kernel has not loaded dpnb', async () => {
    const watched = watch();
    expect(watched.view.kind).toBe('waiting');
    await settle();
    expect(watched.view.kind).toBe('no-dpnb');
    expect(kernel.sent).toEqual([]);
  });

  it('asks a kernel that has for its state', async () => {
    kernel.commId = 'abc';
    watch();
    await settle();
    expect(kernel.sent).toEqual([{ method: 'request_snapshot' }]);
  });

  it('lets the sessions reconnect when the reader wants it', async () => {
    kernel.commId = 'abc';
    const watched = watch();
    await settle();
    watched.reconnect();
    expect(kernel.sent).toEqual([{ method: 'request_snapshot' }, { method: 'reconnect' }]);
  });

  it('asks for the comparison of a session while it is shown, also a kernel that has restarted', async () => {
    kernel.commId = 'abc';
    const watched = watch();
    await settle();
    const compare = (is_shown: boolean): object => ({ method: 'compare', session: 'a', is_shown });
    watched.compare('a', true);
    kernel.sent.length = 0;
    kernel.statusChanged.emit('restarting');
    kernel.commId = 'def';
    kernel.connectionStatusChanged.emit('connected');
    await settle();
    expect(kernel.sent).toEqual([compare(true), { method: 'request_snapshot' }]);
    watched.compare('a', false);
    kernel.commId = 'ghi';
    kernel.connectionStatusChanged.emit('connected');
    await settle();
    expect(kernel.sent.slice(2)).toEqual([compare(false), { method: 'request_snapshot' }]);
  });

  it('asks again after the connection was lost', async () => {
    kernel.commId = 'abc';
    watch();
    await settle();
    kernel.connectionStatusChanged.emit('connecting');
    kernel.connectionStatusChanged.emit('connected');
    await settle();
    expect(kernel.sent).toHaveLength(2);
  });

  it('drops a reply that comes after the kernel was restarted', async () => {
    let open: () => void = () => undefined;
    kernel.gate = new Promise(resolve => (open = resolve));
    kernel.commId = 'abc';
    const watched = watch();
    await settle();
    kernel.statusChanged.emit('restarting');
    open();
    await settle();
    expect(kernel.sent).toEqual([]);
    expect(watched.view.kind).toBe('no-dpnb');
  });

  it('survives a kernel that goes away while asked', async () => {
    kernel.gate = Promise.reject(new Error('Canceled future'));
    const watched = watch();
    await settle();
    expect(watched.view.kind).toBe('waiting');
  });
});

describe('listening', () => {
  it('shows what the kernel pushes', () => {
    const watched = watch();
    kernel.push(sharedSnapshot());
    expect(watched.view).toEqual({ kind: 'live', snapshot: sharedSnapshot() });
  });

  it('ignores an older message', () => {
    const watched = watch();
    kernel.push(sharedSnapshot({ seq: 9 }));
    kernel.push(sharedSnapshot({ seq: 8 }));
    expect(watched.view).toMatchObject({ snapshot: { seq: 9 } });
  });

  it('accepts a lower number from a new process', () => {
    const watched = watch();
    kernel.push(sharedSnapshot({ seq: 9 }));
    kernel.push(sharedSnapshot({ process_id: 'another', seq: 1 }));
    expect(watched.view).toMatchObject({ snapshot: { process_id: 'another', seq: 1 } });
  });

  it('ignores other comms and other messages', () => {
    const watched = watch();
    kernel.broadcast({ method: 'update', state: {} });
    kernel.broadcast({ dpnb: sharedSnapshot() }, 'display_data');
    expect(watched.view.kind).toBe('waiting');
  });

  it('says that it cannot read another version', () => {
    const watched = watch();
    kernel.push(sharedSnapshot());
    kernel.broadcast({ dpnb: { ...sharedSnapshot(), version: 1 } });
    expect(watched.view.kind).toBe('unreadable');
  });

  it('hears nothing once disposed', () => {
    const watched = watch();
    watched.dispose();
    kernel.push(sharedSnapshot());
    expect(watched.view.kind).toBe('waiting');
  });
});

describe('a kernel that is replaced', () => {
  it.each(['restarting', 'autorestarting'] as const)('is forgotten when it is %s', async status => {
    const watched = watch();
    kernel.push(sharedSnapshot());
    kernel.statusChanged.emit(status);
    await settle();
    expect(watched.view.kind).toBe('restarted');
    expect(cache.read(kernel.id)).toBeNull();
  });

  it('cannot speak from beyond', () => {
    const watched = watch();
    kernel.push(sharedSnapshot());
    kernel.statusChanged.emit('restarting');
    kernel.push(sharedSnapshot({ seq: 99 }));
    expect(watched.view.kind).toBe('restarted');
  });

  it('is shown as dead when it died', () => {
    const watched = watch();
    kernel.push(sharedSnapshot());
    kernel.statusChanged.emit('dead');
    expect(watched.view.kind).toBe('dead');
  });

  it.each([
    ['restarting', 'no-dpnb'],
    ['autorestarting', 'no-dpnb'],
    ['dead', 'no-kernel']
  ] as const)('without a session nothing is said about budgets when it is %s', async (status, shown) => {
    const watched = watch();
    await settle();
    kernel.statusChanged.emit(status);
    expect(watched.view.kind).toBe(shown);
    expect(message(watched.view)).not.toContain('budget');
    kernel.push(sharedSnapshot({ process_id: 'another', sessions: [] }));
    kernel.statusChanged.emit(status);
    expect(watched.view.kind).toBe(shown);
  });

  it('still says that a budget is recorded when it restarts again', () => {
    const watched = watch();
    kernel.push(sharedSnapshot());
    kernel.statusChanged.emit('autorestarting');
    kernel.statusChanged.emit('restarting');
    expect(watched.view.kind).toBe('restarted');
  });

  it('is shown as restarted until its successor loads dpnb', async () => {
    const watched = watch();
    kernel.push(sharedSnapshot());
    kernel.statusChanged.emit('restarting');
    kernel.connectionStatusChanged.emit('connected');
    await settle();
    expect(watched.view.kind).toBe('restarted');
    kernel.push(sharedSnapshot({ process_id: 'another', seq: 1 }));
    expect(watched.view.kind).toBe('live');
  });
});

describe('a reloaded page', () => {
  beforeEach(() => cache.write(kernel.id, sharedSnapshot()));

  it('shows what it knew, as stale, until the kernel answers', () => {
    const watched = watch();
    expect(watched.view).toEqual({ kind: 'stale', snapshot: sharedSnapshot() });
    kernel.push(sharedSnapshot({ seq: 8 }));
    expect(watched.view.kind).toBe('live');
  });

  it('forgets it when the process is gone', async () => {
    const watched = watch();
    await settle();
    expect(watched.view.kind).toBe('restarted');
    expect(cache.read(kernel.id)).toBeNull();
  });

  it('does not take it for another kernel', () => {
    kernel = new FakeKernel('kernel-2');
    expect(watch().view.kind).toBe('waiting');
  });

  it('is not disturbed by a damaged memory', () => {
    window.sessionStorage.setItem(`dpnb:snapshot:${kernel.id}`, '{"v":');
    expect(watch().view.kind).toBe('waiting');
  });
});

describe('a kernel at work', () => {
  beforeEach(() => {
    vi.useFakeTimers();
    return (): void => {
      vi.useRealTimers();
    };
  });

  it('is busy after a while, and no longer when it is idle', () => {
    const watched = watch();
    const changed = vi.fn();
    watched.changed.connect(changed);
    kernel.begin('cell');
    expect(watched.isBusy).toBe(false);
    vi.advanceTimersByTime(BUSY_AFTER);
    expect(watched.isBusy).toBe(true);
    kernel.end('cell');
    expect(watched.isBusy).toBe(false);
    expect(changed).toHaveBeenCalledTimes(2);
  });

  it('does not become busy by a small request', () => {
    const watched = watch();
    kernel.begin('cell');
    vi.advanceTimersByTime(BUSY_AFTER - 1);
    kernel.end('cell');
    vi.advanceTimersByTime(BUSY_AFTER);
    expect(watched.isBusy).toBe(false);
  });

  it('is busy when it was so before anybody looked', () => {
    kernel.status = 'busy';
    const watched = watch();
    vi.advanceTimersByTime(BUSY_AFTER);
    expect(watched.isBusy).toBe(true);
    kernel.end('a cell from before');
    expect(watched.isBusy).toBe(false);
  });

  it('stays busy while it answers the debugger beside a cell', () => {
    const watched = watch();
    kernel.begin('debugger');
    kernel.begin('cell');
    kernel.end('debugger');
    vi.advanceTimersByTime(BUSY_AFTER);
    expect(watched.isBusy).toBe(true);
    kernel.begin('debugger again');
    kernel.end('debugger again');
    expect(watched.isBusy).toBe(true);
    kernel.end('cell');
    expect(watched.isBusy).toBe(false);
  });

  it.each(['restarting', 'dead', 'unknown'] as const)('is not busy any longer when it is %s', status => {
    const watched = watch();
    kernel.begin('cell');
    vi.advanceTimersByTime(BUSY_AFTER);
    kernel.become(status);
    expect(watched.isBusy).toBe(false);
  });
});

describe('a log that was asked for', () => {
  const session = sharedSession(0, { n_requests: 120, log: releases(71, 120) });
  const snapshot = (changes = {}): ISnapshot => sharedSnapshot({ sessions: [session], ...changes });
  const requests = (): unknown[] => kernel.sent.filter(data => JSON.stringify(data).includes('request_log'));

  it('is asked of the comm that speaks', () => {
    const watched = watch();
    kernel.push(snapshot());
    void watched.requestLog(session.id);
    expect(kernel.sentTo).toEqual(['x']);
    expect(requests()).toEqual([{ method: 'request_log', session: session.id }]);
  });

  it('survives a restart: the next process is asked', async () => {
    const watched = watch();
    kernel.push(snapshot());
    const answer = watched.requestLog(session.id);
    kernel.become('restarting');
    kernel.pushLog(session.id, 0, releases(1, 120).reverse(), 120);
    expect(watched.log(session.id)).toEqual({ rows: [], isComplete: false, isPending: true });
    kernel.push(snapshot({ process_id: 'next', seq: 1 }));
    expect(requests()).toHaveLength(2);
    kernel.pushLog(session.id, 0, releases(1, 120).reverse(), 120, 'next');
    expect(await answer).toHaveLength(120);
  });

  it('is asked for again after the connection was lost', async () => {
    kernel.commId = 'abc';
    const watched = watch();
    await settle();
    kernel.push(snapshot());
    void watched.requestLog(session.id);
    kernel.connectionStatusChanged.emit('connected');
    await settle();
    kernel.push(snapshot({ seq: 8 }));
    expect(requests()).toHaveLength(2);
  });

  it('is asked for as soon as a kernel that was too busy speaks', () => {
    cache.write(kernel.id, snapshot());
    const watched = watch();
    void watched.requestLog(session.id);
    expect(requests()).toEqual([]);
    kernel.push(snapshot({ seq: 8 }));
    expect(requests()).toHaveLength(1);
  });

  it('may be asked for when the kernel has just died', () => {
    const watched = watch();
    kernel.push(snapshot());
    kernel.status = 'dead'; // before anybody was told
    void watched.requestLog(session.id);
    expect(watched.log(session.id).isPending).toBe(true);
    expect(kernel.sent).toEqual([]);
  });

  it('is given up with the connection', async () => {
    const watched = watch();
    const answer = watched.requestLog(session.id);
    watched.dispose();
    expect(await answer).toBeNull();
  });
});
