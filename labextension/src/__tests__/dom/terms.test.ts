import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { setTextWithTerms, STAY_MS } from '../../dom/terms';
import { TERMS } from '../../protocol/glossary';
import { found, press } from '../fakeModel';

let host: HTMLElement;

beforeEach(() => {
  vi.useFakeTimers();
  host = document.createElement('p');
  document.body.replaceChildren(...document.body.querySelectorAll('.dpnb-definitions'), host);
});

afterEach(() => {
  press(document.body, 'Escape');
  vi.useRealTimers();
});

function show(text: string): HTMLElement[] {
  setTextWithTerms(host, text);
  return [...host.querySelectorAll<HTMLElement>('.dpnb-term')];
}

const words = (text: string): (string | null)[] => show(text).map(node => node.textContent);
const definition = (): string | null => document.querySelector('.dpnb-definition')?.textContent ?? null;
const point = (node: Element, type: string): boolean => node.dispatchEvent(new MouseEvent(type));

describe('setTextWithTerms', () => {
  it.each<[string, string[]]>([
    ['mu 0.1158 of 0.4483', ['mu']],
    ['(2, 1e-06)-DP, enforced as 0.4484-GDP', ['DP', 'GDP']],
    ['Headroom', ['Headroom']],
    ['Privacy unit', ['Privacy unit']],
    ['Same guarantee under each filter; other filters', ['filter']],
    ['rho 0.1 and delta 1e-7, then delta again', ['rho', 'delta']],
    ['RDP, zCDP, formula, deltas of multimus', ['deltas']],
    ['no term', []]
  ])('underlines the terms of %j, each once', (text, expected) => {
    expect(words(text)).toEqual(expected);
    expect(host.textContent).toBe(text);
  });

  it('explains every term that it knows', () => {
    for (const [term, sentence] of Object.entries(TERMS)) {
      const [node] = show(`a ${term} b`);
      expect(document.getElementById(node?.getAttribute('aria-describedby') ?? '')?.textContent).toBe(sentence);
    }
    expect(document.querySelectorAll('.dpnb-definitions')).toHaveLength(1);
  });

  it('keeps a term and its focus while the numbers around it change', () => {
    const [before] = show('mu 0.1 of 1');
    before?.focus();
    expect(show('mu 0.2 of 1')).toEqual([before]);
    expect(document.activeElement).toBe(before);
    expect(host.textContent).toBe('mu 0.2 of 1');
    expect(words('rho 0.2 of 1')).toEqual(['rho']);
    expect(words('all of it')).toEqual([]);
  });

  it('shows markup as text', () => {
    show('<img src=x> mu');
    expect(host.querySelector('img')).toBeNull();
  });
});

describe('the definition of a term', () => {
  it('is shown on keyboard focus, until the focus leaves or Escape is pressed', () => {
    const [node] = show('mu 0.1');
    expect(node?.tabIndex).toBe(0);
    node?.focus();
    expect(definition()).toBe(TERMS.mu);
    node?.blur();
    expect(definition()).toBeNull();
    node?.focus();
    const heard = vi.fn();
    document.addEventListener('keydown', heard);
    expect(node && press(node, 'Escape').defaultPrevented).toBe(true);
    expect(definition()).toBeNull();
    expect(heard, 'the first Escape closes it and nothing else').not.toHaveBeenCalled();
    expect(node && press(node, 'Escape').defaultPrevented).toBe(false);
    expect(heard).toHaveBeenCalledOnce();
    document.removeEventListener('keydown', heard);
  });

  it('stays under the pointer, also when the pointer moves into it', () => {
    const [node] = show('mu 0.1');
    expect(node && point(node, 'pointerenter')).toBe(true);
    expect(definition()).toBe(TERMS.mu);
    expect(node && point(node, 'pointerleave')).toBe(true);
    point(found(document, '.dpnb-definition'), 'pointerenter');
    vi.advanceTimersByTime(2 * STAY_MS);
    expect(definition()).toBe(TERMS.mu);
    point(found(document, '.dpnb-definition'), 'pointerleave');
    vi.advanceTimersByTime(STAY_MS);
    expect(definition()).toBeNull();
  });

  it('stays at a term that has the focus when the pointer leaves it', () => {
    const [node] = show('mu 0.1');
    node?.focus();
    expect(node && point(node, 'pointerleave')).toBe(true);
    vi.advanceTimersByTime(2 * STAY_MS);
    expect(definition()).toBe(TERMS.mu);
  });

  it('closes on Escape from elsewhere, which then does what it otherwise does', () => {
    const [node] = show('mu 0.1');
    expect(node && point(node, 'pointerenter')).toBe(true);
    expect(press(document.body, 'Escape').defaultPrevented).toBe(false);
    expect(definition()).toBeNull();
  });

  it('is gone with its term', () => {
    const [node] = show('mu 0.1');
    expect(node && point(node, 'pointerenter')).toBe(true);
    show('spent');
    expect(definition()).toBeNull();
  });

  it('is that of another term when the pointer moves there', () => {
    const [rho, delta] = show('rho 0.1 and delta 1e-7');
    expect(rho && point(rho, 'pointerenter')).toBe(true);
    expect(rho && point(rho, 'pointerleave')).toBe(true);
    expect(delta && point(delta, 'pointerenter')).toBe(true);
    vi.advanceTimersByTime(2 * STAY_MS);
    expect(definition()).toBe(TERMS.delta);
  });
});
