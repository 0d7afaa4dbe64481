import { beforeEach, describe, expect, it, vi } from 'vitest';

import { TabCache } from '../cache';
import { LedgerModel } from '../model';
import { FakeHost, FakeKernel } from './fakeKernel';
import { sharedSnapshot } from './fixture';

let model: LedgerModel;

beforeEach(() => {
  window.sessionStorage.clear();
  model = new LedgerModel(new TabCache());
});

describe('LedgerModel', () => {
  it('has no kernel to show at first', () => {
    expect(model.view.kind).toBe('no-kernel');
  });

  it('shows the active kernel only', () => {
    const [one, two] = [new FakeKernel('one'), new FakeKernel('two')];
    const [first, second] = [new FakeHost(one), new FakeHost(two)];
    model.follow(first);
    model.activate(second);
    one.push(sharedSnapshot({ boot: 'one' }));
    two.push(sharedSnapshot({ boot: 'two' }));
    expect(model.view).toMatchObject({ snapshot: { boot: 'two' } });
    model.activate(first);
    expect(model.view).toMatchObject({ snapshot: { boot: 'one' } });
  });

  it('tells its listeners of the active kernel and of no other', () => {
    const [one, two] = [new FakeKernel('one'), new FakeKernel('two')];
    model.follow(new FakeHost(one));
    model.activate(new FakeHost(two));
    const listener = vi.fn();
    model.changed.connect(listener);
    one.push(sharedSnapshot());
    expect(listener).not.toHaveBeenCalled();
    two.push(sharedSnapshot());
    expect(listener).toHaveBeenCalledOnce();
  });

  it('moves to the new kernel of the same notebook', () => {
    const [old, fresh] = [new FakeKernel('old'), new FakeKernel('fresh')];
    const host = new FakeHost(old);
    model.activate(host);
    host.use(fresh);
    old.push(sharedSnapshot());
    expect(model.view.kind).toBe('waiting');
    fresh.push(sharedSnapshot());
    expect(model.view.kind).toBe('live');
  });

  it('has nothing to show after a shutdown', () => {
    const host = new FakeHost(new FakeKernel());
    model.activate(host);
    host.use(null);
    expect(model.view.kind).toBe('no-kernel');
  });

  it('keeps the second of two notebooks on one kernel when the first is closed', () => {
    const [first, second] = [new FakeHost(new FakeKernel('same')), new FakeKernel('same')];
    model.follow(first);
    model.activate(new FakeHost(second));
    first.disposed.emit();
    second.push(sharedSnapshot());
    expect(model.view.kind).toBe('live');
  });

  it('shows nothing after the active notebook was closed', () => {
    const host = new FakeHost(new FakeKernel());
    model.activate(host);
    host.disposed.emit();
    expect(model.view.kind).toBe('no-kernel');
  });
});
