import { beforeEach, describe, expect, it, vi } from 'vitest';

import { TabCache } from '../../kernel/cache';
import { LedgerModel } from '../../kernel/ledgerModel';
import { FakeHost, FakeKernel } from '../fakeKernel';
import { releases, sharedSession, sharedSnapshot } from '../fixture';

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
    one.push(sharedSnapshot({ process_id: 'one' }));
    two.push(sharedSnapshot({ process_id: 'two' }));
    expect(model.view).toMatchObject({ snapshot: { process_id: 'two' } });
    model.activate(first);
    expect(model.view).toMatchObject({ snapshot: { process_id: 'one' } });
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

describe('LedgerModel, about every kernel,', () => {
  it('tells what each one said, active or not, and which one changed', () => {
    const [one, two] = [new FakeKernel('one'), new FakeKernel('two')];
    model.follow(new FakeHost(one));
    model.activate(new FakeHost(two));
    const changed: string[] = [];
    model.kernelChanged.connect((_, id) => changed.push(id));
    one.push(sharedSnapshot({ process_id: 'one' }));
    expect(changed).toEqual(['one']);
    expect(model.viewOf('one')).toMatchObject({ kind: 'live', snapshot: { process_id: 'one' } });
    expect(model.viewOf('two').kind).toBe('waiting');
    expect(model.viewOf('three').kind).toBe('no-kernel');
    expect(model.kernelId).toBe('two');
  });

  it('believes the connection to a kernel that has heard it', () => {
    const [first, second] = [new FakeKernel('same'), new FakeKernel('same')];
    model.follow(new FakeHost(first));
    model.follow(new FakeHost(second));
    second.push(sharedSnapshot());
    expect(model.viewOf('same').kind).toBe('live');
  });

  it.each(['changes', 'closes'])('reports the remaining kernel when its notebook %s', what => {
    const host = new FakeHost(new FakeKernel('old'));
    model.follow(host);
    const changed: string[] = [];
    model.kernelChanged.connect((_, id) => changed.push(id));
    if (what === 'changes') {
      host.use(new FakeKernel('fresh'));
    } else {
      host.disposed.emit();
    }
    expect(changed[0]).toBe('old');
    expect(model.viewOf('old').kind).toBe('no-kernel');
  });
});

describe('LedgerModel, asked for a log,', () => {
  const rows = releases(1, 120);
  const session = sharedSession(0, { n_requests: 120, log: rows.slice(0, 50) });
  const ID = session.id;

  it('asks the active kernel, and shows what it answers', async () => {
    const kernel = new FakeKernel();
    model.activate(new FakeHost(kernel));
    kernel.push(sharedSnapshot({ sessions: [session] }));
    const listener = vi.fn();
    model.changed.connect(listener);
    const answer = model.requestLog(ID);
    expect(kernel.sent).toEqual([{ method: 'request_log', session: ID }]);
    expect(kernel.sentTo).toEqual(['x']);
    expect(model.log(ID).isPending).toBe(true);
    kernel.pushLog(ID, 0, [...rows].reverse(), 120);
    expect(await answer).toEqual(rows);
    expect(model.log(ID)).toMatchObject({ isComplete: true, isPending: false });
    expect(listener).toHaveBeenCalledTimes(2);
  });

  it('does not listen to answers that another connection asked for', () => {
    const [asking, other] = [new FakeKernel('same'), new FakeKernel('same')];
    model.follow(new FakeHost(asking));
    model.activate(new FakeHost(other));
    other.push(sharedSnapshot({ sessions: [session] }));
    other.pushLog(ID, 0, [...rows].reverse(), 120);
    expect(model.log(ID).rows).toHaveLength(50);
  });

  it('knows the rows that it remembers from before the page was reloaded', () => {
    const kernel = new FakeKernel();
    new TabCache().write(kernel.id, sharedSnapshot());
    model.activate(new FakeHost(kernel));
    expect(model.view.kind).toBe('stale');
    expect(model.log(ID).rows).toHaveLength(2);
  });

  it('is refused at once where there is no kernel, and later when it goes', async () => {
    expect(await model.requestLog(ID)).toBeNull();
    const host = new FakeHost(new FakeKernel());
    model.activate(host);
    const answer = model.requestLog(ID);
    host.use(null);
    expect(await answer).toBeNull();
  });
});
