import { expect, it, vi } from 'vitest';

import { Notebooks } from '../../badges/notebooks';
import { FakeCell, FakeNotebook, FakeTracker } from '../fakeNotebook';

const activate = vi.fn<(id: string) => void>();

function opened(): { one: FakeNotebook; two: FakeNotebook; tracker: FakeTracker; notebooks: Notebooks } {
  activate.mockClear();
  const one = new FakeNotebook('one', 'kernel-1', [new FakeCell('a'), new FakeCell('b')]);
  const two = new FakeNotebook('two', 'kernel-2', [new FakeCell('c')]);
  const tracker = new FakeTracker(one, two);
  return { one, two, tracker, notebooks: new Notebooks(tracker.tracker, activate) };
}

it('knows the cells of the notebooks of a kernel', () => {
  const { notebooks } = opened();
  expect(notebooks.hasCell('kernel-1', 'b')).toBe(true);
  expect(notebooks.hasCell('kernel-1', 'c')).toBe(false);
  expect(notebooks.hasCell(null, 'a')).toBe(false);
});

it('says when cells come and go, and then knows it', () => {
  const { one, two, tracker, notebooks } = opened();
  const changed = vi.fn();
  notebooks.changed.connect(changed);
  expect(notebooks.hasCell('kernel-1', 'new')).toBe(false);
  one.useCells([new FakeCell('new')]);
  expect(notebooks.hasCell('kernel-1', 'new')).toBe(true);
  expect(notebooks.hasCell('kernel-1', 'a')).toBe(false);
  two.useKernel('kernel-1');
  expect(notebooks.hasCell('kernel-1', 'c')).toBe(true);
  tracker.add(new FakeNotebook('three', 'kernel-1', [new FakeCell('d')]));
  expect(notebooks.hasCell('kernel-1', 'd')).toBe(true);
  two.close();
  expect(notebooks.hasCell('kernel-1', 'c')).toBe(false);
  expect(changed).toHaveBeenCalledTimes(4);
});

it('goes to a cell: its notebook to the front, the cell into sight, the keyboard onto it', async () => {
  const { one, notebooks } = opened();
  const cell = one.content.widgets[1];
  document.body.append(cell?.node ?? '');
  expect(await notebooks.goToCell('kernel-1', 'b')).toBe(true);
  expect(activate).toHaveBeenCalledWith('one');
  expect(one.content.activeCellIndex).toBe(1);
  expect(one.content.mode).toBe('command');
  expect(one.content.scrollToItem).toHaveBeenCalledWith(1, 'center');
  expect(document.activeElement).toBe(cell?.node);
});

it('goes nowhere when the cell is not there', async () => {
  const { notebooks } = opened();
  expect(await notebooks.goToCell('kernel-2', 'b')).toBe(false);
  expect(activate).not.toHaveBeenCalled();
});

it('goes nowhere when the notebook is closed on the way', async () => {
  const { one, notebooks } = opened();
  const gone = notebooks.goToCell('kernel-1', 'b');
  one.close();
  expect(await gone).toBe(false);
  expect(one.content.scrollToItem).not.toHaveBeenCalled();
});

it('goes nowhere when the notebook cannot be loaded', async () => {
  const { one, notebooks } = opened();
  one.revealed = Promise.reject(new Error('the server is gone'));
  expect(await notebooks.goToCell('kernel-1', 'b')).toBe(false);
});

it('prefers the notebook in front when two on one kernel show the cell', async () => {
  const { one, two, tracker, notebooks } = opened();
  two.useKernel('kernel-1');
  two.useCells([new FakeCell('b')]);
  tracker.currentWidget = two.panel;
  await notebooks.goToCell('kernel-1', 'b');
  expect(activate.mock.calls).toEqual([['two']]);
  expect(one.content.scrollToItem).not.toHaveBeenCalled();
});

it('has no cells on a page without notebooks', () => {
  expect(new Notebooks(null, activate).hasCell('kernel-1', 'a')).toBe(false);
});
