import { beforeEach, describe, expect, it, vi } from 'vitest';

import { type ICellMemory, displayedCosts, currentCosts, save, savedCosts } from '../../badges/badgeMemory';
import { NotebookBadges } from '../../badges/badges';
import { RunningCells } from '../../badges/runningCells';
import type { ICellBadge, ISessionSnapshot } from '../../protocol/snapshot';
import type { LedgerView } from '../../kernel/tokens';
import { FakeModel, live } from '../fakeModel';
import { FakeCell, FakeNotebook, FakeRuns } from '../fakeNotebook';
import { CURRENT, LOST, sharedSession, sharedSnapshot } from '../fixture';

const CELL = '3f2a-mean';
const cost = (text = 'mu 0.05', cell = CELL): ICellBadge => ({ cell_id: cell, text, description: `It cost ${text}.` });

const real = (...cells: ICellBadge[]): ISessionSnapshot => sharedSession(0, { cell_costs: cells });
const rehearsal = (...cells: ICellBadge[]): ISessionSnapshot => sharedSession(1, { cell_costs: cells });

const SAVED = {
  cost: 'mu 0.05',
  description: 'It cost mu 0.05.',
  session: 'rand-hie.dpnb',
  name: 'rand-hie',
  cell: CELL
};

describe('what a cell remembers', () => {
  let cell: FakeCell;
  const memory = (): ICellMemory => cell.model;
  /** Let a cell learn what these sessions say. */
  const learn = (...sessions: ISessionSnapshot[]): void =>
    save(memory(), displayedCosts(memory(), currentCosts(sessions)));

  beforeEach(() => {
    cell = new FakeCell(CELL);
  });

  it('is set to what a live session says', () => {
    learn(real(cost()));
    expect(cell.metadata).toEqual({ dpnb: SAVED });
  });

  it('is not touched when it says so already', () => {
    learn(real(cost()));
    learn(real(cost()), rehearsal());
    learn(rehearsal(), real(cost()));
    expect(cell.changes).toBe(1);
  });

  it('is not made up for a cell that cost nothing', () => {
    learn(real(cost('mu 1', 'another')));
    expect(cell.changes).toBe(0);
  });

  it('follows the session', () => {
    learn(real(cost()));
    learn(real(cost('mu 0.1')));
    expect(cell.metadata.dpnb).toMatchObject({ cost: 'mu 0.1', description: 'It cost mu 0.1.' });
  });

  it('is removed when the session, live, no longer lists the cell', () => {
    learn(real(cost()));
    learn(real());
    expect(cell.metadata).toEqual({});
  });

  it('is left alone while the session is not live', () => {
    learn(real(cost()));
    learn(rehearsal());
    learn();
    expect(cell.metadata).toEqual({ dpnb: SAVED });
    expect(cell.changes).toBe(1);
  });

  it('does not count for a copy of the cell, which forgets it', () => {
    learn(real(cost()));
    cell = new FakeCell('copy', cell.metadata);
    expect(savedCosts(memory())).toEqual([]);
    learn(rehearsal());
    expect(cell.metadata).toEqual({});
  });

  it('is the copy’s own when the copy is run', () => {
    cell = new FakeCell('copy', { dpnb: SAVED });
    learn(real(cost(), cost('mu 0.2', 'copy')));
    expect(cell.metadata.dpnb).toMatchObject({ cell: 'copy', cost: 'mu 0.2' });
  });

  it('holds every session that charged the cell, in an order that last use does not change', () => {
    learn(real(cost()), rehearsal(cost('mu 0.3')));
    const all = savedCosts(memory()).map(({ session, cost: text, notice }) => [session, text, notice]);
    expect(all).toEqual([
      ['rand-hie.dpnb', 'mu 0.05', undefined],
      ['rehearsal-of-rand-hie', 'mu 0.3', 'REHEARSAL: mock data, not real']
    ]);
    learn(rehearsal(cost('mu 0.3')), real(cost()));
    expect(cell.changes).toBe(1);
  });

  it('keeps what one session charged when another is live alone', () => {
    learn(real(cost()), rehearsal(cost('mu 0.3')));
    learn(rehearsal());
    expect(cell.metadata).toEqual({ dpnb: SAVED });
  });

  it.each([3, null, 'mu 0.05', {}, { ...SAVED, cost: 5 }, { ...SAVED, cell: undefined }, { ...SAVED, more: [{}] }])(
    'is not ours when it reads %j, and stays',
    dpnb => {
      cell = new FakeCell(CELL, { dpnb });
      expect(savedCosts(memory())).toEqual([]);
      learn(real());
      expect(cell.changes).toBe(0);
    }
  );
});

describe('NotebookBadges', () => {
  let model: FakeModel;
  let cell: FakeCell;
  let other: FakeCell;
  let notebook: FakeNotebook;
  let badges: NotebookBadges;
  const runs = new FakeRuns();
  const onClick = vi.fn<(cell: string) => void>();

  function open(metadata: Record<string, unknown> = {}, kernelId: string | null = 'kernel-1'): void {
    cell = new FakeCell(CELL, metadata);
    other = new FakeCell('other');
    notebook = new FakeNotebook('notebook', kernelId, [cell, other]);
    badges = new NotebookBadges(notebook.panel, model, new RunningCells(runs), onClick);
  }

  beforeEach(() => {
    onClick.mockClear();
    model = new FakeModel();
  });

  const stale = (): LedgerView => ({ kind: 'stale', snapshot: sharedSnapshot({ sessions: [real(cost())] }) });

  it('give a cell that cost something a button with its price', async () => {
    open();
    await model.show(live([real(cost())]));
    expect(cell.badge?.textContent).toBe('mu 0.05');
    expect(cell.badge?.title).toBe('It cost mu 0.05.');
    expect(cell.badge?.getAttribute('aria-label')).toBe('It cost mu 0.05.');
    expect(cell.badge?.tagName).toBe('BUTTON');
    expect(cell.node.lastElementChild).toBe(cell.badge);
    expect(other.badge).toBeNull();
  });

  it('follow the notebook’s kernel also while another notebook is in front', async () => {
    open();
    await model.show(live([real(cost())]));
    const before = cell.badge;
    await model.show(live([real(cost('mu 0.1'))]));
    expect(cell.badge).toBe(before);
    expect(cell.badge?.textContent).toBe('mu 0.1');
  });

  it('are saved when the cell has been run, not while it runs', async () => {
    open();
    runs.schedule(cell);
    runs.schedule(other);
    await model.show(live([real(cost())]));
    expect(cell.badge?.textContent).toBe('mu 0.05');
    expect(cell.changes).toBe(0);
    runs.end(other);
    expect(cell.changes).toBe(0);
    runs.end(cell);
    expect(cell.metadata).toEqual({ dpnb: SAVED });
  });

  it('do not listen to the kernels of other notebooks', async () => {
    open({}, 'kernel-2');
    await model.show(live([real(cost())]));
    expect(cell.badge).toBeNull();
    notebook.useKernel('kernel-1');
    expect(cell.badge?.textContent).toBe('mu 0.05');
  });

  it('come and go with what the session says', async () => {
    open();
    await model.show(live([real(cost())]));
    await model.show(live([real()]));
    expect(cell.badge).toBeNull();
    expect(cell.hasClass('dpnb-mod-badged')).toBe(false);
    expect(cell.metadata).toEqual({});
  });

  it('stay without a kernel, as saved and said to be', async () => {
    open({ dpnb: SAVED }, null);
    expect(cell.badge?.title).toBe('It cost mu 0.05. (as saved with the notebook)');
    expect(cell.badge?.classList.contains('dpnb-mod-saved')).toBe(true);
    notebook.useKernel('kernel-1');
    await model.show(live([real(cost())]));
    expect(cell.badge?.title).toBe('It cost mu 0.05.');
    await model.show({ kind: 'restarted' });
    expect(cell.badge?.classList.contains('dpnb-mod-saved')).toBe(true);
    expect(cell.changes).toBe(0);
  });

  it('show where the table is and when the costs are out of date, and save neither', async () => {
    open();
    await model.show(live([{ ...real(cost()), connection: LOST }]));
    expect(cell.badge?.title).toBe(`It cost mu 0.05. Table ${LOST.where}: ${LOST.text}.`);
    expect(cell.badge?.getAttribute('aria-label')).toBe(cell.badge?.title);
    expect(cell.badge?.classList.contains('dpnb-mod-out-of-date')).toBe(true);
    await model.show(live([{ ...real(cost()), connection: CURRENT }]));
    expect(cell.badge?.classList.contains('dpnb-mod-out-of-date')).toBe(false);
    expect(cell.metadata).toEqual({ dpnb: SAVED });
    expect(cell.changes).toBe(1);
  });

  it('save nothing that the kernel has not confirmed', async () => {
    open();
    await model.show(stale());
    expect(cell.changes).toBe(0);
    expect(cell.badge).toBeNull();
  });

  it('are not drawn for a copy of a cell', () => {
    open({ dpnb: { ...SAVED, cell: 'original' } }, null);
    expect(cell.badge).toBeNull();
    expect(cell.changes).toBe(0);
  });

  it.each(['model', 'file'])('save nothing in a notebook whose %s is read-only', async what => {
    open();
    if (what === 'model' && notebook.content.model) {
      notebook.content.model.readOnly = true;
    } else {
      notebook.context.contentsModel = { writable: false };
    }
    await model.show(live([real(cost())]));
    expect(cell.badge?.textContent).toBe('mu 0.05');
    expect(cell.changes).toBe(0);
  });

  it('look different, and say so, when nothing real was spent', async () => {
    open();
    await model.show(live([rehearsal(cost())]));
    expect(cell.badge?.classList.contains('dpnb-mod-not-private')).toBe(true);
    expect(cell.badge?.title).toBe('It cost mu 0.05. REHEARSAL: mock data, not real');
    await model.show(live([rehearsal(), real(cost())]));
    expect(cell.badge?.classList.contains('dpnb-mod-not-private')).toBe(false);
  });

  it('have a line, and room, for every session that charged the cell', async () => {
    open();
    await model.show(live([rehearsal(cost('mu 0.3')), real(cost())]));
    const lines = [...(cell.badge?.querySelectorAll('.dpnb-badge-line') ?? [])].map(line => line.textContent);
    expect(lines).toEqual(['mu 0.05', 'mu 0.3']);
    expect(cell.node.style.getPropertyValue('--dpnb-badge-lines')).toBe('2');
  });

  it('are drawn for cells that come later', async () => {
    open();
    await model.show(live([real(cost(), cost('mu 0.2', 'late'))]));
    const late = new FakeCell('late');
    notebook.useCells([cell, late]);
    expect(late.badge?.textContent).toBe('mu 0.2');
  });

  it('tell whose badge was clicked, and keep their keys and presses from the notebook', async () => {
    open();
    await model.show(live([real(cost())]));
    const pressed = vi.fn();
    cell.node.addEventListener('mousedown', pressed);
    cell.badge?.dispatchEvent(new MouseEvent('mousedown', { bubbles: true }));
    cell.badge?.click();
    expect(onClick).toHaveBeenCalledWith(CELL);
    expect(pressed).not.toHaveBeenCalled();
    expect(cell.badge?.hasAttribute('data-lm-suppress-shortcuts')).toBe(true);
  });

  it('go when they are no longer wanted, and leave what is saved', async () => {
    open();
    await model.show(live([real(cost())]));
    badges.dispose();
    expect(cell.badge).toBeNull();
    expect(cell.metadata).toEqual({ dpnb: SAVED });
    await model.show(live([real(cost('mu 0.1'))]));
    expect(cell.badge).toBeNull();
    expect(cell.changes).toBe(1);
  });

  it('end with the notebook', () => {
    open();
    notebook.close();
    expect(badges.isDisposed).toBe(true);
  });
});
