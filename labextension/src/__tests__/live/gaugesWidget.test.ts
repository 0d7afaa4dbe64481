import type { RenderProps } from '@anywidget/types';
import { expect, it, vi } from 'vitest';

import widget from '../../widgets/gauges';
import { found } from '../fakeModel';
import { LOST, sharedSession } from '../fixture';

/** A widget's kernel side with one trait. */
class FakeModel {
  private readonly listeners = new Set<() => void>();

  constructor(private state: unknown) {}

  get(): unknown {
    return this.state;
  }

  set(state: unknown): void {
    this.state = state;
    this.listeners.forEach(listener => listener());
  }

  on(_: string, listener: () => void): void {
    this.listeners.add(listener);
  }

  off(_: string, listener: () => void): void {
    this.listeners.delete(listener);
  }

  readonly send = vi.fn();

  get listening(): number {
    return this.listeners.size;
  }
}

function rendered(state: unknown): { model: FakeModel; el: HTMLElement; close: () => void } {
  const model = new FakeModel(state);
  const el = document.createElement('div');
  const props = { model, el } as unknown as RenderProps<{ state: unknown }>;
  return { model, el, close: widget.render(props) };
}

it('shows the gauges of its session and follows them', () => {
  const { model, el } = rendered(sharedSession());
  const [headroom] = el.querySelectorAll('[role=meter]');
  expect(headroom?.getAttribute('aria-valuetext')).toBe('83.3% left');
  const gauges = sharedSession().gauges.map(gauge => ({ ...gauge, text: 'moved' }));
  model.set(sharedSession(0, { gauges }));
  expect(headroom?.getAttribute('aria-valuetext')).toBe('moved');
});

it('folds the timeline and the accounting details until the reader opens them, and then leaves them open', () => {
  const { model, el } = rendered(sharedSession());
  const folds = [...el.querySelectorAll('details')];
  expect(folds.map(fold => fold.open)).toEqual([false, false]);
  folds[1]?.querySelector('summary')?.click();
  model.set(sharedSession(0, { odometers: sharedSession().odometers.slice(1) }));
  expect([...el.querySelectorAll('details')]).toEqual(folds);
  expect(folds.map(fold => fold.open)).toEqual([false, true]);
});

it('leaves the keyboard where it is when a number moves', () => {
  const { model, el } = rendered(sharedSession());
  document.body.append(el);
  el.querySelector('summary')?.focus();
  model.set(sharedSession(0, { spent: '22.4% spent' }));
  expect(document.activeElement).toBe(el.querySelector('summary'));
});

it('leaves the list of releases to the panel', () => {
  expect(rendered(sharedSession()).el.querySelector('.dpnb-log, .dpnb-release, .dpnb-refusal')).toBeNull();
});

it('shows the budget over time, and what to do next without a button that it could not serve', () => {
  expect(rendered(sharedSession()).el.querySelector('.dpnb-timeline-steps')).not.toBeNull();
  const { el } = rendered(sharedSession(1));
  expect(el.querySelector('.dpnb-next-code')?.textContent).toBe('df = session.frame');
  expect(el.querySelector('.dpnb-next button')).toBeNull();
});

it('says so when it cannot read its state', () => {
  expect(rendered({ v: 0 }).el.textContent).toContain('another version');
});

it('stops listening when its output is cleared', () => {
  const { model, close } = rendered(sharedSession());
  close();
  expect(model.listening).toBe(0);
});

it('asks its kernel for the comparison when the reader opens the accounting details', async () => {
  const { model, el } = rendered(sharedSession(0, { is_compared: false }));
  document.body.append(el);
  found(el, '.dpnb-accounting > summary').click();
  const request = { method: 'compare', session: 'rand-hie.dpnb', is_shown: true };
  await vi.waitFor(() => expect(model.send).toHaveBeenCalledWith(request));
});

it('asks its kernel to reconnect', () => {
  const { model, el } = rendered(sharedSession(0, { connection: LOST }));
  found(el, '.dpnb-connection-button').click();
  expect(model.send).toHaveBeenCalledWith({ method: 'reconnect' });
});
