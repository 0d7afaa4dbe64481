import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { ICommandPalette } from '@jupyterlab/apputils';
import { Widget } from '@lumino/widgets';
import { beforeEach, describe, expect, it, vi } from 'vitest';

import ledgerPanel from '../../schema/ledger-panel.json';
import { addBadges } from '../badges/addBadges';
import { RunningCells } from '../badges/runningCells';
import { addPanelCommands, COMMANDS } from '../commands';
import { Notebooks } from '../badges/notebooks';
import { LedgerPanel } from '../panel/panel';
import { Setting } from '../setting';
import { FakeModel, FakeTools, found, live } from './fakeModel';
import { FakeCell, FakeNotebook, FakeTracker, FakeRuns } from './fakeNotebook';
import { sharedSession } from './fixture';

interface IOptions {
  label: string;
  describedBy?: { args: object };
  isToggled?: () => boolean;
  execute: (args: object) => unknown;
}

let commands: Map<string, IOptions>;
let inPalette: string[];
let model: FakeModel;
let panel: LedgerPanel;
let notebook: FakeNotebook;
let tracker: FakeTracker;
const open = vi.fn();
const activate = vi.fn<(id: string) => void>();

const run = async (id: string, args: object = {}): Promise<void> => {
  await commands.get(id)?.execute(args);
};

const app = {
  commands: {
    addCommand: (id: string, options: IOptions) => commands.set(id, options),
    notifyCommandChanged: () => undefined,
    execute: run
  }
} as unknown as JupyterFrontEnd;

const palette = {
  addItem: ({ command, category }: { command: string; category: string }) => inPalette.push(`${category}: ${command}`)
} as unknown as ICommandPalette;

beforeEach(() => {
  commands = new Map();
  inPalette = [];
  open.mockClear();
  activate.mockClear();
  model = new FakeModel();
  panel = new LedgerPanel(model, new FakeTools());
  document.body.replaceChildren();
  Widget.attach(panel, document.body);
  notebook = new FakeNotebook('notebook', 'kernel-1', [new FakeCell('first'), new FakeCell('3f2a-mean')]);
  tracker = new FakeTracker(notebook);
  const notebooks = new Notebooks(tracker.tracker, activate);
  addPanelCommands(app, palette, { model, panel, notebooks, open });
});

describe('the panel’s commands', () => {
  it('are described, and in the palette unless they need an argument', () => {
    expect([...commands.values()].every(options => options.label !== '' && options.describedBy)).toBe(true);
    expect(inPalette).toEqual([
      'Private Analysis: dpnb:open-panel',
      'Private Analysis: dpnb:show-timeline',
      'Private Analysis: dpnb:show-log',
      'Private Analysis: dpnb:export-log',
      'Private Analysis: dpnb:go-to-last-release',
      'Private Analysis: dpnb:explain'
    ]);
  });

  it('open the panel and give it the keyboard', async () => {
    await run(COMMANDS.open);
    expect(open).toHaveBeenCalledOnce();
    expect(document.activeElement).toBe(panel.node);
  });

  it('open the panel, which says why, when there is no log to export', async () => {
    await run(COMMANDS.exportLog);
    expect(open).toHaveBeenCalledOnce();
  });

  it('ask for the log of the session that was used last', async () => {
    const request = vi.spyOn(model, 'requestLog');
    await model.show(live());
    await run(COMMANDS.exportLog);
    expect(request).toHaveBeenCalledWith('rand-hie.dpnb');
    expect(open).not.toHaveBeenCalled();
  });

  it('go to the cell of the last release', async () => {
    await model.show(live());
    await run(COMMANDS.goToLast);
    expect(activate).toHaveBeenCalledWith('notebook');
    expect(notebook.content.activeCellIndex).toBe(1);
    expect(open).not.toHaveBeenCalled();
  });

  it('open the panel when that cell is nowhere', async () => {
    const log = sharedSession().log.slice(1);
    await model.show(live([sharedSession(0, { log })]));
    await run(COMMANDS.goToLast);
    expect(open).toHaveBeenCalledOnce();
    expect(activate).not.toHaveBeenCalled();
  });

  it('open the panel at the log or at the charts of the session that was used last', async () => {
    await model.show(live());
    await run(COMMANDS.showLog);
    expect(document.activeElement).toBe(found(panel.node, '.dpnb-releases'));
    await run(COMMANDS.showTimeline);
    expect(document.activeElement).toBe(found(panel.node, '.dpnb-timeline-charts'));
    expect(open).toHaveBeenCalledTimes(2);
  });

  it('open the panel, which says why, when there is neither log nor chart', async () => {
    await run(COMMANDS.showLog);
    expect(document.activeElement).toBe(panel.node);
  });

  it('are in the menu View, which names no other command', () => {
    addBadges(
      app,
      model,
      tracker.tracker,
      new RunningCells(new FakeRuns()),
      new Setting<boolean>(null, 'dpnb:badges', 'showBadges', true),
      palette
    );
    const [view] = ledgerPanel['jupyter.lab.menus'].main;
    const items = view?.items[0]?.submenu.items.flatMap(item => ('command' in item ? [item.command] : []));
    expect(items?.filter(command => command === undefined || !commands.has(command))).toEqual([]);
    expect(items).toHaveLength(7);
  });

  it('open the panel at its plain words', async () => {
    await model.show(live());
    await run(COMMANDS.explain);
    expect(open).toHaveBeenCalledOnce();
    expect(document.activeElement).toBe(found(panel.node, '.dpnb-explanations summary'));
  });

  it('show the releases of a cell', async () => {
    await model.show(live());
    await run(COMMANDS.showCell, { cell: '3f2a-mean' });
    expect(open).toHaveBeenCalledOnce();
    expect(panel.node.querySelectorAll('.dpnb-release')).toHaveLength(1);
  });
});

describe('addBadges', () => {
  let isWanted: Setting<boolean>;
  const shown = (): number => notebook.content.widgets.filter(cell => cell.badge).length;

  beforeEach(async () => {
    await model.show(live());
    isWanted = new Setting<boolean>(null, 'dpnb:badges', 'showBadges', true);
    addBadges(app, model, tracker.tracker, new RunningCells(new FakeRuns()), isWanted, palette);
  });

  it('shows badges in every notebook that is open or opened later', () => {
    expect(shown()).toBe(1);
    const later = new FakeNotebook('later', 'kernel-1', [new FakeCell('3f2a-mean')]);
    tracker.add(later);
    expect(later.content.widgets[0]?.badge).not.toBeNull();
  });

  it('hides and shows them with a command of the palette', async () => {
    const toggled = (): boolean | undefined => commands.get(COMMANDS.toggleBadges)?.isToggled?.();
    expect(toggled()).toBe(true);
    await run(COMMANDS.toggleBadges);
    expect([shown(), toggled(), isWanted.value]).toEqual([0, false, false]);
    await run(COMMANDS.toggleBadges);
    expect([shown(), toggled()]).toEqual([1, true]);
    expect(inPalette).toContain('Private Analysis: dpnb:toggle-badges');
  });

  it('opens the panel at the releases of the cell whose badge is clicked', () => {
    notebook.content.widgets[1]?.badge?.click();
    expect(open).toHaveBeenCalledOnce();
    expect(panel.node.querySelectorAll('.dpnb-release')).toHaveLength(1);
  });
});
