import type { RenderProps } from '@anywidget/types';
import { expect, it } from 'vitest';

import widget from '../widgets/gauges';
import { sharedSession } from './fixture';

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

it('leaves the list of releases to the panel', () => {
  expect(rendered(sharedSession()).el.querySelector('ol')).toBeNull();
});

it('says so when it cannot read its state', () => {
  expect(rendered({ v: 0 }).el.textContent).toContain('another version');
});

it('stops listening when its output is cleared', () => {
  const { model, close } = rendered(sharedSession());
  close();
  expect(model.listening).toBe(0);
});
