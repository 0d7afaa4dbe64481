import { Signal } from '@lumino/signaling';
import { Widget } from '@lumino/widgets';
import { beforeEach, describe, expect, it, vi } from 'vitest';

import { openOnFirstSession } from '../opening';
import { LedgerPanel } from '../panel';
import { StatusItem } from '../statusItem';
import type { ILedgerModel, LedgerView } from '../tokens';
import { settle } from './fakeKernel';
import { sharedSession, sharedSnapshot } from './fixture';

class FakeModel implements ILedgerModel {
  readonly changed = new Signal<this, void>(this);
  view: LedgerView = { kind: 'no-kernel' };

  /** Lumino draws a little later than it is told to. */
  async show(view: LedgerView): Promise<void> {
    this.view = view;
    this.changed.emit();
    await settle();
  }
}

let model: FakeModel;
let panel: LedgerPanel;

beforeEach(() => {
  window.sessionStorage.clear();
  model = new FakeModel();
  panel = new LedgerPanel(model);
  Widget.attach(panel, document.body);
});

const live = (sessions = sharedSnapshot().sessions): LedgerView => ({
  kind: 'live',
  snapshot: sharedSnapshot({ sessions })
});

describe('LedgerPanel', () => {
  it('shows everything that the kernel told about a session', async () => {
    await model.show(live([sharedSession()]));
    const text = panel.node.textContent;
    const { name, promise, spent, ledger, gauges, filters, odometers, releases } = sharedSession();
    const lists = [...filters, ...odometers].flatMap(line => [line.label, line.text, line.description]);
    const others = [
      ...gauges.map(gauge => gauge.text),
      ...releases.map(release => `${release.id}. ${release.question}`)
    ];
    for (const part of [name, promise, spent, ledger, ...lists, ...others]) {
      expect(text).toContain(part);
    }
    expect(panel.node.querySelectorAll('[role=meter]')).toHaveLength(2);
    expect(panel.node.querySelectorAll('li[data-status=failed]')).toHaveLength(1);
  });

  it('says loudly what is not real', async () => {
    await model.show(live([sharedSession(1)]));
    expect(panel.node.querySelector('[role=alert]')?.textContent).toBe('REHEARSAL: mock data, not real');
    expect(panel.node.querySelector('[role=alert]')?.hasAttribute('hidden')).toBe(false);
  });

  it('draws gauges that it has never heard of', async () => {
    const curve = { id: 'new', label: 'New', value: 0.5, text: 'half', kind: 'later', description: 'From later.' };
    await model.show(live([sharedSession(0, { gauges: [curve] })]));
    expect(panel.node.querySelector('[data-gauge=new]')?.getAttribute('aria-valuetext')).toBe('half');
  });

  it('keeps its elements while values move', async () => {
    await model.show(live());
    const before = panel.node.querySelector('[data-gauge=headroom]');
    const [real, rehearsal] = [sharedSession(), sharedSession(1)];
    const gauges = real.gauges.map(gauge => ({ ...gauge, value: 0.1 }));
    await model.show(live([{ ...real, gauges }, rehearsal]));
    expect(panel.node.querySelector('[data-gauge=headroom]')).toBe(before);
    expect(before?.getAttribute('aria-valuenow')).toBe('0.1');
  });

  it('unfolds the session that is used, and leaves the others folded', async () => {
    const open = (): boolean[] => [...panel.node.querySelectorAll('details')].map(fold => fold.open);
    await model.show(live());
    expect(open()).toEqual([true, true, false, false]);
  });

  it('leaves a fold as the reader put it, also after looking at another kernel', async () => {
    const folds = (): HTMLDetailsElement[] => [...panel.node.querySelectorAll('details')];
    const fold = (index: number): void => folds()[index]?.querySelector('summary')?.click();
    const changed = (text: string): LedgerView => {
      const filters = sharedSession().filters.map(filter => ({ ...filter, text }));
      return live([sharedSession(0, { filters }), sharedSession(1)]);
    };
    await model.show(live());
    fold(0);
    fold(3);
    await model.show(changed('moved'));
    expect(folds().map(node => node.open)).toEqual([false, true, false, true]);
    await model.show({ kind: 'no-dpnb' });
    await model.show(changed('moved again'));
    expect(folds().map(node => node.open)).toEqual([false, true, false, true]);
    expect(panel.node.textContent).toContain('moved again');
  });

  it('follows the order of last use, and drops sessions that are gone', async () => {
    const names = (): (string | null)[] => [...panel.node.querySelectorAll('h3')].map(node => node.textContent);
    await model.show(live());
    await model.show(live([sharedSession(1), sharedSession(0)]));
    expect(names()).toEqual(['rand-hie (rehearsal)', 'rand-hie']);
    await model.show(live([sharedSession(0)]));
    expect(names()).toEqual(['rand-hie']);
  });

  it('shows no number of a kernel that was restarted', async () => {
    await model.show(live());
    await model.show({ kind: 'restarted' });
    expect(panel.node.querySelectorAll('[role=meter]')).toHaveLength(0);
    expect(panel.node.querySelector('[role=status]')?.textContent).toContain('restarted');
  });

  it('marks what is stale', async () => {
    await model.show({ kind: 'stale', snapshot: sharedSnapshot() });
    expect(panel.hasClass('dpnb-mod-stale')).toBe(true);
    await model.show(live());
    expect(panel.hasClass('dpnb-mod-stale')).toBe(false);
  });
});

describe('StatusItem', () => {
  it('shows the line of the newest session and opens the panel', async () => {
    const open = vi.fn();
    const item = new StatusItem(model, open);
    await model.show(live());
    const button = item.node.querySelector('button');
    expect(button?.textContent).toBe('dpnb 83.3% left');
    button?.click();
    expect(open).toHaveBeenCalledOnce();
  });
});

describe('openOnFirstSession', () => {
  const open = vi.fn(() => panel.show());

  beforeEach(() => {
    open.mockClear();
    panel.hide();
    openOnFirstSession(model, panel, open);
  });

  it('waits for a session', async () => {
    await model.show({ kind: 'no-dpnb' });
    await model.show(live([]));
    expect(open).not.toHaveBeenCalled();
  });

  it('opens once', async () => {
    await model.show(live());
    panel.hide();
    await model.show(live());
    expect(open).toHaveBeenCalledOnce();
  });

  it('leaves alone whoever closed the panel before the page was reloaded', async () => {
    await model.show(live());
    panel.hide();
    const reloaded = new LedgerPanel(model);
    const again = vi.fn();
    openOnFirstSession(model, reloaded, again);
    expect(again).not.toHaveBeenCalled();
  });
});
