import { describe, expect, it } from 'vitest';

import { drawTicks } from '../../picker/ticks';
import type { IOption } from '../../protocol/messages';

const options = (...costs: string[]): IOption[] => costs.map(cost => ({ cost }) as IOption);

function ticks(...costs: string[]): [text: string, left: string][] {
  const node = document.createElement('div');
  drawTicks(node, options(...costs));
  return [...node.querySelectorAll<HTMLElement>('.dpnb-picker-tick')].map(tick => [
    tick.textContent ?? '',
    /\+ (?<place>[\d.]+) \*/u.exec(tick.style.left)?.groups?.place ?? ''
  ]);
}

describe('the ticks of the slider', () => {
  it('are at round percentages, between options that are not evenly spaced', () => {
    const percentages = ['0.05% of the budget', '0.5% of the budget', '5.0% of the budget'];
    expect(ticks(...percentages)).toEqual([
      ['0.1%', '0.1505'],
      ['1%', '0.6505']
    ]);
  });

  it('have no number where the labels of the ends are', () => {
    expect(ticks('1.0% of the budget', '100.0% of the budget').map(([text]) => text)).toEqual(['', '10%', '']);
  });

  it('are omitted without a budget', () => {
    expect(ticks('mu 0.02', 'mu 0.5')).toEqual([]);
    expect(ticks()).toEqual([]);
  });
});
