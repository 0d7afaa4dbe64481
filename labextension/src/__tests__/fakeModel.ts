import { Signal } from '@lumino/signaling';
import { vi } from 'vitest';

import type { ILog } from '../log/logStore';
import type { ILogEntry, ISessionSnapshot } from '../protocol/snapshot';
import type { ILedgerModel, LedgerView } from '../kernel/tokens';
import type { ISessionActions } from '../panel/sessionActions';
import { settle } from './fakeKernel';
import { sharedSnapshot } from './fixture';

/** A model that shows what a test tells it to. */
export class FakeModel implements ILedgerModel {
  readonly changed = new Signal<this, void>(this);
  readonly kernelChanged = new Signal<this, string>(this);
  view: LedgerView = { kind: 'no-kernel' };
  kernelId: string | null = 'kernel-1';
  isBusy = false;
  /** Whole logs, by session. */
  readonly logs = new Map<string, ILogEntry[]>();

  /** Lumino draws a little later than it is told to. */
  async show(view: LedgerView): Promise<void> {
    this.view = view;
    this.changed.emit();
    this.kernelChanged.emit(this.kernelId ?? '');
    await settle();
  }

  viewOf(kernelId: string): LedgerView {
    return kernelId === this.kernelId ? this.view : { kind: 'no-kernel' };
  }

  log(session: string): ILog {
    return { rows: this.logs.get(session) ?? [], isComplete: this.logs.has(session), isPending: false };
  }

  readonly reconnect = vi.fn<() => void>();
  readonly compare = vi.fn<(session: string, isShown: boolean) => void>();

  requestLog(session: string): Promise<ILogEntry[] | null> {
    return Promise.resolve(this.logs.get(session) ?? null);
  }
}

export const live = (sessions: ISessionSnapshot[] = sharedSnapshot().sessions): LedgerView => ({
  kind: 'live',
  snapshot: sharedSnapshot({ sessions })
});

/** Tools of a session that only remember what they were asked for. */
export class FakeTools implements ISessionActions {
  logs: Record<string, ILog | undefined> = {};
  cells = new Set<string>();
  readonly requestLog = vi.fn<(session: string) => void>();
  readonly exportLog = vi.fn<(session: ISessionSnapshot) => void>();
  readonly goToCell = vi.fn<(cell: string) => void>();
  readonly reconnect = vi.fn<() => void>();
  readonly compare = vi.fn<(session: string, isShown: boolean) => void>();
  readonly copy = vi.fn<(text: string) => void>();

  log(session: string): ILog {
    return this.logs[session] ?? { rows: [], isComplete: false, isPending: false };
  }

  hasCell(cell: string): boolean {
    return this.cells.has(cell);
  }
}

/** The element that a test cannot do without. */
// eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- as with querySelector, the caller knows
export function found<T extends Element = HTMLElement>(node: ParentNode, selector: string): T {
  const element = node.querySelector<T>(selector);
  if (!element) {
    throw new Error(`nothing matches ${selector}`);
  }
  return element;
}

export const texts = (node: ParentNode, selector: string): (string | null)[] =>
  [...node.querySelectorAll(selector)].map(element => element.textContent);

export function press(node: Element, key: string): KeyboardEvent {
  const event = new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true });
  node.dispatchEvent(event);
  return event;
}
