import { beforeEach, describe, expect, it, vi } from 'vitest';

import type { LiveModel } from '../../live/liveModel';
import { LiveWidgets } from '../../live/liveWidgets';
import { FakeKernel, settle } from '../fakeKernel';

const GAUGES = { _anywidget_id: 'dpnb.notebook.widgets.Gauges', state: { left: 1 } };
const REQUEST = { method: 'request_state' };

let widgets: LiveWidgets;
let kernel: FakeKernel;

beforeEach(() => {
  widgets = new LiveWidgets();
  kernel = new FakeKernel();
  widgets.follow(kernel.connection);
});

function opened(id = 'w'): LiveModel {
  kernel.openWidget(id, GAUGES);
  return widgets.model(id);
}

describe('a widget that is made while the page is there', () => {
  it('is known at once, and nothing is asked', async () => {
    expect(opened().get('state')).toEqual({ left: 1 });
    await settle();
    expect(kernel.sent).toEqual([]);
  });

  it('follows what the kernel says of it', () => {
    const model = opened();
    const changed = vi.fn();
    model.on('change:state', changed);
    kernel.updateWidget('w', { state: { left: 0.5 } });
    kernel.updateWidget('w', { state: { left: 0.5 } });
    kernel.updateWidget('another', { state: { left: 0.1 } });
    expect(model.get('state')).toEqual({ left: 0.5 });
    expect(changed).toHaveBeenCalledOnce();
    model.off('change:state', changed);
    kernel.updateWidget('w', { state: { left: 0.4 } });
    expect(changed).toHaveBeenCalledOnce();
    expect(model.isWatched).toBe(false);
  });

  it('is left alone when it is not ours, or no widget', () => {
    kernel.openWidget('slider', { value: 3 });
    kernel.openWidget('other', GAUGES, 'another.target');
    expect(widgets.model('slider').kernel).toBeNull();
    expect(widgets.model('other').kernel).toBeNull();
  });

  it('hears what the reader wants', () => {
    opened().send({ method: 'refresh' });
    expect(kernel.sent).toEqual([{ method: 'custom', content: { method: 'refresh' } }]);
    expect(kernel.sentTo).toEqual(['w']);
  });

  it('is heard over one connection only: another may be behind', () => {
    const second = new FakeKernel(kernel.id);
    widgets.follow(second.connection);
    const model = opened();
    kernel.updateWidget('w', { state: { left: 0.5 } });
    second.openWidget('w', GAUGES);
    expect(model.get('state')).toEqual({ left: 0.5 });
  });
});

describe('a widget of a page that was loaded again', () => {
  function shown(id: string, kernelAttached = vi.fn()): LiveModel {
    const model = widgets.model(id);
    model.on('kernelAttached', kernelAttached);
    return model;
  }

  it('is asked for when it is in the kernel', async () => {
    kernel.widgets = ['w', 'of another output'];
    const kernelAttached = vi.fn();
    const model = shown('w', kernelAttached);
    await settle();
    expect(kernel.sent).toEqual([REQUEST]);
    kernel.updateWidget('w', { state: { left: 0.5 } });
    expect(model.kernel, 'a part is not the whole').toBeNull();
    kernel.updateWidget('w', GAUGES);
    kernel.updateWidget('w', { state: { left: 0.5 } });
    expect(model.get('state')).toEqual({ left: 0.5 });
    expect(kernelAttached).toHaveBeenCalledOnce();
  });

  it('is asked for by a kernel that is connected later', async () => {
    const model = shown('w');
    const later = new FakeKernel('later');
    later.widgets = ['w'];
    later.connectionStatus = 'connecting';
    widgets.follow(later.connection);
    widgets.follow(later.connection);
    later.connectionStatusChanged.emit('connected');
    await settle();
    expect(later.sent).toEqual([REQUEST]);
    later.updateWidget('w', GAUGES);
    expect(model.kernel).toBe(later.connection);
  });

  it('stays unknown where the kernel has none', async () => {
    const model = shown('w');
    await settle();
    expect(kernel.sent).toEqual([]);
    expect(model.kernel).toBeNull();
    model.send({ method: 'refresh' });
    expect(kernel.sent).toEqual([]);
  });

  it('is asked for with all others at once', async () => {
    const ask = vi.spyOn(kernel, 'requestCommInfo');
    shown('v');
    shown('w');
    await settle();
    expect(ask).toHaveBeenCalledOnce();
  });

  it('is asked for only while its output is there', async () => {
    const ask = vi.spyOn(kernel, 'requestCommInfo');
    const kernelAttached = vi.fn();
    shown('w', kernelAttached).off('kernelAttached', kernelAttached);
    kernel.connectionStatusChanged.emit('connected');
    await settle();
    expect(ask).not.toHaveBeenCalled();
    kernel.widgets = ['w'];
    shown('w');
    await settle();
    expect(kernel.sent).toEqual([REQUEST]);
  });

  it.each([
    ['goes away while it is asked', (): void => void (kernel.gate = Promise.reject(new Error('Canceled future')))],
    ['dies while it is asked', (): void => kernel.become('dead')]
  ])('stays unknown, and nobody complains, when the kernel %s', async (_, happens) => {
    kernel.widgets = ['w'];
    const model = shown('w');
    happens();
    await settle();
    expect(kernel.sent).toEqual([]);
    expect(model.kernel).toBeNull();
  });
});

describe('a widget whose kernel', () => {
  function heard(model: LiveModel): string[] {
    const statuses: string[] = [];
    model.widget_manager.kernel.statusChanged.connect((_, status) => statuses.push(status));
    return statuses;
  }

  it.each(['restarting', 'autorestarting', 'terminating', 'dead'] as const)('is %s is told so', status => {
    const model = opened();
    const statuses = heard(model);
    kernel.become('busy');
    kernel.become(status);
    expect(statuses).toEqual([status]);
    expect(model.get('state'), 'what is on the page stays').toEqual({ left: 1 });
    model.send({ method: 'refresh' });
    expect(kernel.sent).toEqual([]);
    expect(widgets.model('w').kernel, 'who shows it from now on').toBeNull();
  });

  it('is restarted over another connection is told so', () => {
    const second = new FakeKernel(kernel.id);
    widgets.follow(second.connection);
    const statuses = heard(opened());
    second.become('restarting');
    expect(statuses).toEqual(['restarting']);
  });

  it('is restarted by somebody else is told so when the new process answers', () => {
    kernel.answer('first process');
    const model = opened();
    const statuses = heard(model);
    kernel.answer('first process');
    expect(statuses).toEqual([]);
    kernel.answer('second process');
    expect(statuses).toEqual(['restarting']);
    model.send({ method: 'release' });
    expect(kernel.sent).toEqual([]);
    expect(widgets.model('w')).not.toBe(model);
  });

  it('was restarted before it was made is not told so by a connection that is behind', () => {
    const second = new FakeKernel(kernel.id);
    widgets.follow(second.connection);
    [kernel, second].forEach(connection => connection.answer('first process'));
    kernel.answer('second process');
    const statuses = heard(opened());
    second.answer('second process');
    expect(statuses).toEqual([]);
  });

  it.each([
    ['the server in its own name', 'server', {}],
    ['a kernel in the name of who asked', 'client', undefined]
  ])('has a status sent by %s goes on', (_, session, request) => {
    kernel.answer('first process');
    const statuses = heard(opened());
    kernel.answer(session, request);
    expect(statuses).toEqual([]);
  });

  it('has its connection closed is told so', () => {
    const model = opened();
    const statuses = heard(model);
    kernel.dispose();
    kernel.updateWidget('w', { state: { left: 0.1 } });
    model.send({ method: 'refresh' });
    expect(statuses).toEqual(['dead']);
    expect(model.get('state')).toEqual({ left: 1 });
    expect(kernel.sent).toEqual([]);
  });

  it('has another connection goes on over that', () => {
    const model = opened();
    const statuses = heard(model);
    const second = new FakeKernel(kernel.id);
    widgets.follow(second.connection);
    kernel.dispose();
    second.updateWidget('w', { state: { left: 0.5 } });
    model.send({ method: 'refresh' });
    expect(statuses).toEqual([]);
    expect(model.get('state')).toEqual({ left: 0.5 });
    expect(second.sent).toHaveLength(1);
  });

  it('was not heard for a while is asked for what was missed', async () => {
    opened().on('change:state', () => undefined);
    kernel.connectionStatusChanged.emit('connected');
    await settle();
    expect(kernel.sentTo).toEqual(['w']);
    expect(kernel.sent).toEqual([REQUEST]);
  });

  it('was not heard for a while while nobody looked is asked for when it is shown again', async () => {
    opened();
    kernel.widgets = ['w'];
    kernel.connectionStatusChanged.emit('connected');
    await settle();
    expect(kernel.sent).toEqual([]);
    const model = widgets.model('w');
    expect(model.kernel, 'what it knows may be out of date').toBeNull();
    const kernelAttached = vi.fn();
    model.on('kernelAttached', kernelAttached);
    await settle();
    expect(kernel.sent).toEqual([REQUEST]);
    kernel.updateWidget('w', { ...GAUGES, state: { left: 0.5 } });
    expect(kernelAttached).toHaveBeenCalledOnce();
    expect(model.get('state')).toEqual({ left: 0.5 });
  });
});
