import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { Widget } from '@lumino/widgets';
import { afterEach, beforeEach, expect, it } from 'vitest';

import { addLiveOutputs, LIVE } from '../../live/liveOutput';
import { LiveWidgets } from '../../live/liveWidgets';
import { FakeKernel, settle } from '../fakeKernel';
import { sharedSession } from '../fixture';

/** Shows HTML, a little later than it is told to. */
class StillRenderer extends Widget implements IRenderMime.IRenderer {
  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    await Promise.resolve();
    this.node.innerHTML = model.data['text/html'] as string;
  }
}

/** As much of JupyterLab's registry as is used. */
class FakeRegistry {
  factory: IRenderMime.IRendererFactory | null = null;
  rank: number | undefined;

  addFactory(factory: IRenderMime.IRendererFactory, rank?: number): void {
    [this.factory, this.rank] = [factory, rank];
  }

  createRenderer(mimeType: string): IRenderMime.IRenderer {
    expect(mimeType).toBe('text/html');
    return new StillRenderer();
  }
}

function made({ factory }: FakeRegistry): IRenderMime.IRenderer {
  if (!factory) {
    throw new Error('nothing was registered');
  }
  return factory.createRenderer({} as IRenderMime.IRendererOptions);
}

const STATE = { _anywidget_id: 'dpnb.notebook.widgets.Gauges', state: sharedSession() };

let kernel: FakeKernel;
let registry: FakeRegistry;
let output: IRenderMime.IRenderer;

beforeEach(() => {
  kernel = new FakeKernel();
  const widgets = new LiveWidgets();
  widgets.follow(kernel.connection);
  registry = new FakeRegistry();
  addLiveOutputs(registry as unknown as IRenderMimeRegistry, widgets);
  output = made(registry);
});

afterEach(() => output.dispose());

function bundle(id = 'w', view = 'gauges', html = '<b>83.3% left</b>'): IRenderMime.IMimeModel {
  const data = { 'text/html': html, [LIVE]: { model_id: id, view } };
  return { data, metadata: {}, trusted: true, setData: () => undefined };
}

const meters = (): number => output.node.querySelectorAll('[role=meter]').length;

it('comes before the view of Jupyter, but not in a notebook that is not trusted', () => {
  expect(registry.factory).toMatchObject({ mimeTypes: [LIVE], safe: true });
  expect(registry.rank).toBeLessThan(-10);
});

it('shows the view of a widget that the kernel has told', async () => {
  kernel.openWidget('w', STATE);
  await output.renderModel(bundle());
  expect(meters()).toBeGreaterThan(0);
  expect(output.node.querySelector('b')).toBeNull();
});

it('shows the still face where no kernel has the widget', async () => {
  await output.renderModel(bundle());
  await settle();
  expect(output.node.textContent).toBe('83.3% left');
});

it('shows the still face until the kernel answers', async () => {
  await output.renderModel(bundle());
  kernel.openWidget('w', STATE);
  expect(meters()).toBeGreaterThan(0);
  expect(output.node.querySelector('b')).toBeNull();
});

it('shows one of both when the kernel answers while the still face is drawn', async () => {
  const drawn = output.renderModel(bundle());
  kernel.openWidget('w', STATE);
  await drawn;
  expect(output.node.children).toHaveLength(1);
  expect(meters()).toBeGreaterThan(0);
});

it('keeps the view when the kernel replaces the output by the same widget', async () => {
  kernel.openWidget('w', STATE);
  await output.renderModel(bundle());
  const before = output.node.firstElementChild;
  await output.renderModel(bundle('w', 'gauges', '<b>the answer</b>'));
  expect(output.node.firstElementChild).toBe(before);
});

it('keeps the view when the kernel is gone', async () => {
  kernel.openWidget('w', STATE);
  await output.renderModel(bundle());
  kernel.become('restarting');
  kernel.dispose();
  expect(meters()).toBeGreaterThan(0);
});

it('shows the still face of a widget that is shown after its kernel is gone', async () => {
  kernel.openWidget('w', STATE);
  kernel.become('restarting');
  await output.renderModel(bundle());
  await settle();
  expect(output.node.textContent).toBe('83.3% left');
});

it.each([
  ['another version', 'some new view'],
  ['nonsense', '']
])('shows the still face of %s', async (_, view) => {
  kernel.openWidget('w', STATE);
  await output.renderModel(bundle('w', view));
  expect(output.node.textContent).toBe('83.3% left');
});

it('follows its widget no longer once it is closed', async () => {
  kernel.openWidget('w', STATE);
  await output.renderModel(bundle());
  output.dispose();
  kernel.updateWidget('w', { state: sharedSession(0, { name: 'later' }) });
  expect(output.node.textContent).not.toContain('later');
});

it('may be closed while the kernel is asked', async () => {
  kernel.widgets = ['w'];
  const drawn = output.renderModel(bundle());
  Widget.attach(output, document.body);
  output.dispose();
  await drawn;
  await settle();
  kernel.updateWidget('w', STATE);
  expect(meters()).toBe(0);
});
