import type { INotebookTracker } from '@jupyterlab/notebook';
import { Signal } from '@lumino/signaling';
import { beforeEach, describe, expect, it } from 'vitest';

import { TabCache } from '../../kernel/cache';
import { CellRuns } from '../../kernel/cellRuns';
import { followCells } from '../../kernel/followCells';
import { KernelWatch } from '../../kernel/kernelWatch';
import { LedgerModel } from '../../kernel/ledgerModel';
import type { PanelRequest } from '../../protocol/messages';
import { FakeHost, FakeKernel, settle } from '../fakeKernel';
import { sharedSnapshot } from '../fixture';

const started = (cell: string, request: string): PanelRequest => ({
  method: 'cell_started',
  cell_id: cell,
  request_id: request
});
const scheduled = (cell: string, code: string): PanelRequest => ({ method: 'cell_scheduled', cell_id: cell, code });
const ended = (cell: string): PanelRequest => ({ method: 'cell_ended', cell_id: cell });

describe('the runs of cells', () => {
  let sent: PanelRequest[];
  let isLoaded: boolean;
  let runs: CellRuns;

  beforeEach(() => {
    sent = [];
    isLoaded = true;
    runs = new CellRuns('page', request => isLoaded && sent.push(request) > 0);
  });

  it('are not reported where the page sends the requests', () => {
    runs.schedule('a', 'x = 1');
    runs.onRequest('1', 'page', 'x = 1');
    runs.end('a');
    runs.schedule('b', 'y');
    expect(sent).toEqual([]);
  });

  it('are reported as soon as the server is seen to send the request of a scheduled cell', () => {
    runs.schedule('a', 'x = 1');
    runs.onRequest('1', 'server', 'x = 1');
    expect(sent).toEqual([started('a', '1')]);
  });

  it('are announced from then on, also those that wait in a queue', () => {
    runs.schedule('a', 'x');
    runs.schedule('b', 'y');
    runs.onRequest('1', 'server', 'x');
    runs.schedule('c', 'z');
    expect(sent).toEqual([started('a', '1'), scheduled('b', 'y'), scheduled('c', 'z')]);
    runs.onRequest('2', 'server', 'y');
    expect(sent.slice(3)).toEqual([started('b', '2')]);
  });

  it('are taken in order where cells have the same code', () => {
    runs.schedule('a', 'x');
    runs.schedule('b', 'x');
    runs.onRequest('1', 'server', 'x');
    runs.onRequest('2', 'server', 'x');
    expect(sent.filter(({ method }) => method === 'cell_started')).toEqual([started('a', '1'), started('b', '2')]);
  });

  it('are withdrawn if the cell is not run after all', () => {
    runs.schedule('a', 'x');
    runs.schedule('b', 'y');
    runs.onRequest('1', 'server', 'x');
    runs.end('a');
    runs.end('b');
    expect(sent.slice(2)).toEqual([ended('b')]);
  });

  it('of other pages and programs are left alone', () => {
    runs.schedule('a', 'x');
    runs.onRequest('1', 'another page', 'y');
    expect(sent).toEqual([]);
  });

  it('before dpnb was loaded are reported when it is', () => {
    isLoaded = false;
    runs.schedule('a', '%load_ext dpnb');
    runs.schedule('b', 'session');
    runs.onRequest('1', 'server', '%load_ext dpnb');
    expect(sent).toEqual([]);
    isLoaded = true;
    runs.flush();
    runs.flush();
    expect(sent).toEqual([started('a', '1'), scheduled('b', 'session')]);
  });

  it('of a process that has ended are forgotten', () => {
    isLoaded = false;
    runs.schedule('a', 'x');
    runs.onRequest('1', 'server', 'x');
    runs.schedule('b', 'y');
    runs.clear();
    isLoaded = true;
    runs.flush();
    expect(sent).toEqual([]);
  });
});

describe('the cells of a notebook', () => {
  it('are reported to its kernel, once dpnb has sent its first message', () => {
    const kernel = new FakeKernel();
    const host = new FakeHost(kernel);
    const other = new FakeKernel('kernel-2');
    const otherHost = new FakeHost(other);
    const model = new LedgerModel(new TabCache());
    model.follow(host);
    model.follow(otherHost);
    const panels = [
      { content: {}, sessionContext: host },
      { content: {}, sessionContext: otherHost }
    ];
    const tracker = { find: (matches: (panel: object) => boolean): object | undefined => panels.find(matches) };
    const signals = { executionScheduled: new Signal<object, never>({}), executed: new Signal<object, never>({}) };
    followCells(signals, model, tracker as unknown as INotebookTracker);
    const cell = (id: string, type = 'code', code = id): object => ({
      isDisposed: false,
      model: { id, type, sharedModel: { getSource: (): string => code } }
    });
    const schedule = (one: object): void =>
      signals.executionScheduled.emit({ notebook: panels[0]?.content, cell: one } as never);
    schedule(cell('a'));
    schedule(cell('words', 'markdown'));
    schedule(cell('b'));
    kernel.run('1', 'a', 'server');
    kernel.push(sharedSnapshot());
    expect(kernel.sent).toEqual([started('a', '1'), scheduled('b', 'b')]);
    signals.executed.emit({ notebook: panels[0]?.content, cell: cell('b') } as never);
    expect(kernel.sent.slice(2)).toEqual([ended('b')]);
    expect(other.sent).toEqual([]);
  });
});

describe('a page', () => {
  beforeEach(() => window.sessionStorage.clear());

  const setVisibility = (state: string): void => {
    Object.defineProperty(document, 'visibilityState', { value: state, configurable: true });
    document.dispatchEvent(new Event('visibilitychange'));
  };

  it('announces itself while it is visible, to every process of the kernel', async () => {
    const kernel = new FakeKernel();
    const watch = new KernelWatch(kernel.connection, new TabCache());
    await settle();
    expect(kernel.announced).toEqual([]); // dpnb is not loaded
    kernel.push(sharedSnapshot());
    kernel.push({ ...sharedSnapshot(), seq: 1000 });
    expect(kernel.announced).toEqual([true]);
    setVisibility('hidden');
    setVisibility('visible');
    expect(kernel.announced).toEqual([true, false, true]);
    kernel.broadcast({ dpnb: { ...sharedSnapshot(), process_id: 'new' } }, 'comm_msg', 'new comm');
    expect(kernel.announced).toEqual([true, false, true, true]);
    watch.dispose();
    setVisibility('visible');
    expect(kernel.announced).toEqual([true, false, true, true, false]);
  });
});
