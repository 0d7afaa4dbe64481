import { Widget } from '@lumino/widgets';
import { beforeEach, describe, expect, it, vi } from 'vitest';

import { openOnFirstSession } from '../../panel/opening';
import { LedgerPanel } from '../../panel/panel';
import { StatusItem } from '../../panel/statusItem';
import { Setting } from '../../setting';
import type { LedgerView } from '../../kernel/tokens';
import { FakeModel, FakeTools, found, live, texts } from '../fakeModel';
import { release, sharedSession, sharedSnapshot } from '../fixture';

let model: FakeModel;
let panel: LedgerPanel;
let tools: FakeTools;

beforeEach(() => {
  window.sessionStorage.clear();
  model = new FakeModel();
  tools = new FakeTools();
  panel = new LedgerPanel(model, tools);
  document.body.replaceChildren();
  Widget.attach(panel, document.body);
});

describe('LedgerPanel', () => {
  it('shows everything that the kernel told about a session', async () => {
    await model.show(live([sharedSession(0, { odometers_paused: null })]));
    const text = panel.node.textContent;
    const { name, privacy_unit, spent, spent_loss, ledger, gauges, filters, odometers, mechanisms, log } =
      sharedSession();
    const lists = [...filters, ...odometers].flatMap(line => [line.label, line.text, line.description]);
    const others = [
      ...gauges.flatMap(gauge => [gauge.label, gauge.text, gauge.end ?? '', gauge.note ?? '']),
      ...mechanisms.flatMap(one => [one.name, one.kind, one.state, one.text, one.description]),
      ...mechanisms.flatMap(one => one.parts.flatMap(part => [part.name, part.text])),
      ...log.map(entry => `${entry.id}. ${entry.query}`)
    ];
    for (const part of [
      name,
      privacy_unit,
      '(1, 1e-06)-DP, enforced as 0.2117-GDP',
      spent,
      spent_loss,
      ledger,
      ...lists,
      ...others
    ]) {
      expect(text).toContain(part);
    }
    expect(panel.node.querySelectorAll('[role=meter]')).toHaveLength(2);
    expect(panel.node.querySelectorAll('li[data-status=failed]')).toHaveLength(1);
  });

  it('shows the headroom alone before the details, which have the odometer and the loss', async () => {
    await model.show(live([sharedSession(0, { odometers_paused: null })]));
    const meters = [...panel.node.querySelectorAll<HTMLElement>('[role=meter]')];
    expect(meters.filter(meter => !meter.closest('.dpnb-accounting')).map(meter => meter.dataset.gauge)).toEqual([
      'headroom'
    ]);
    const details = found(panel.node, '.dpnb-accounting');
    expect(details.hasAttribute('open')).toBe(false);
    expect(found(details, '.dpnb-losses').childElementCount).toBe(1);
    expect(found(details, '.dpnb-spent-loss').textContent).toContain(`Spent: ${sharedSession().spent_loss};`);
  });

  it('says loudly what is not real', async () => {
    await model.show(live([sharedSession(1)]));
    expect(panel.node.querySelector('[role=alert]')?.textContent).toBe('REHEARSAL: mock data, not real');
    expect(panel.node.querySelector('[role=alert]')?.hasAttribute('hidden')).toBe(false);
  });

  it('draws gauges that it has never heard of', async () => {
    const known = { end: null, note: null, description: 'From later.' };
    const curve = { id: 'new', label: 'New', value: 0.5, text: 'half', kind: 'later', ...known };
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
    const open = (): boolean[] => [...panel.node.querySelectorAll('details')].map(node => node.open);
    await model.show(live());
    expect(open()).toEqual([true, false, false, false, false]);
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
    expect(folds().map(node => node.open)).toEqual([false, false, false, true, false]);
    await model.show({ kind: 'no-dpnb' });
    await model.show(changed('moved again'));
    expect(folds().map(node => node.open)).toEqual([false, false, false, true, false]);
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

describe('LedgerPanel, about the kernel,', () => {
  it('has a chip while it runs, and moves on below it', async () => {
    model.isBusy = true;
    await model.show(live());
    expect(found(panel.node, '.dpnb-busy').hidden).toBe(false);
    const moved = sharedSession(0, { spent_loss: 'mu 0.2 of 0.2117' });
    await model.show(live([moved]));
    expect(panel.node.textContent).toContain('mu 0.2 of 0.2117');
    model.isBusy = false;
    await model.show(live([moved]));
    expect(found(panel.node, '.dpnb-busy').hidden).toBe(true);
  });

  it('has no chip where a sentence says that it is busy', async () => {
    model.isBusy = true;
    await model.show({ kind: 'waiting' });
    expect(found(panel.node, '.dpnb-busy').hidden).toBe(true);
    expect(found(panel.node, '[role=status]').textContent).toContain('when it is idle');
  });
});

describe('LedgerPanel, asked for a cell,', () => {
  const own = (): string[] =>
    [...panel.node.querySelectorAll<HTMLElement>('.dpnb-release')].map(row => row.dataset.release ?? '');

  it('shows its releases only, also before it has drawn the kernel that it came to', () => {
    model.view = live();
    panel.showCell('3f2a-mean');
    expect(own()).toEqual(['2']);
    expect(document.activeElement).toBe(found(panel.node, '.dpnb-log-cell'));
  });

  it('leaves the logs of sessions alone that have none', async () => {
    const other = sharedSession(0, { id: 'other', cell_costs: [], log: [release(7)], n_requests: 1 });
    await model.show(live([sharedSession(), other]));
    panel.showCell('3f2a-mean');
    expect(own()).toEqual(['2', '7']);
  });

  it('changes nothing for a cell that nobody knows', async () => {
    await model.show(live());
    panel.showCell('unknown');
    expect(own()).toEqual(['2', '1']);
  });
});

describe('LedgerPanel, on what to do next,', () => {
  it('lists it for a session that has released nothing, and for no other', async () => {
    await model.show(live());
    const [spent, fresh] = [...panel.node.querySelectorAll<HTMLElement>('.dpnb-next')];
    expect(spent?.hidden).toBe(true);
    expect(fresh?.hidden).toBe(false);
    expect(texts(panel.node, '.dpnb-next-code')).toEqual(['df = session.frame', 'df.count_units()']);
  });

  it('copies a line and says so', async () => {
    await model.show(live([sharedSession(1)]));
    const copy = found(panel.node, '.dpnb-next-copy');
    expect(copy.getAttribute('aria-label')).toBe('Copy: df = session.frame');
    copy.click();
    expect(tools.copy).toHaveBeenCalledWith('df = session.frame');
    expect(copy.textContent).toBe('Copied');
  });
});

describe('StatusItem', () => {
  it('shows the line of the newest session and opens the panel', async () => {
    const open = vi.fn();
    const headline = new Setting<string>(null, 'dpnb:status', 'headline', 'remaining');
    const item = new StatusItem(model, headline, open);
    await model.show(live());
    const button = item.node.querySelector('button');
    expect(button?.textContent).toBe('dpnb 83.3% left');
    button?.click();
    expect(open).toHaveBeenCalledOnce();
  });

  it('says what the reader chose, as soon as it is chosen', async () => {
    const headline = new Setting<string>(null, 'dpnb:status', 'headline', 'remaining');
    const item = new StatusItem(model, headline, () => undefined);
    await model.show(live());
    await headline.set('max_repetitions');
    expect(item.node.textContent).toBe('dpnb 12 more like the last');
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

  it('does not reopen the panel for a user who closed it before the page was reloaded', async () => {
    await model.show(live());
    panel.hide();
    const reloaded = new LedgerPanel(model, tools);
    const again = vi.fn();
    openOnFirstSession(model, reloaded, again);
    expect(again).not.toHaveBeenCalled();
  });
});
