import { beforeEach, describe, expect, it } from 'vitest';

import { TabCache } from '../cache';
import { KernelWatch } from '../kernelWatch';
import { FakeKernel, settle } from './fakeKernel';
import { sharedSnapshot } from './fixture';

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
    expect(kernel.sent).toEqual([{ method: 'request_state' }]);
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
    expect(watched.view.kind).toBe('restarted');
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
    kernel.push(sharedSnapshot({ boot: 'another', seq: 1 }));
    expect(watched.view).toMatchObject({ snapshot: { boot: 'another', seq: 1 } });
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
    kernel.broadcast({ dpnb: { ...sharedSnapshot(), v: 1 } });
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
    kernel.statusChanged.emit('dead');
    expect(watched.view.kind).toBe('dead');
  });

  it('is shown as restarted until its successor loads dpnb', async () => {
    const watched = watch();
    kernel.push(sharedSnapshot());
    kernel.statusChanged.emit('restarting');
    kernel.connectionStatusChanged.emit('connected');
    await settle();
    expect(watched.view.kind).toBe('restarted');
    kernel.push(sharedSnapshot({ boot: 'another', seq: 1 }));
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
