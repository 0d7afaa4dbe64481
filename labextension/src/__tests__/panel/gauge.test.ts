import { describe, expect, it } from 'vitest';

import { drawGauge } from '../../panel/gauge';
import type { IGauge } from '../../protocol/snapshot';

const headroom: IGauge = {
  id: 'headroom',
  label: 'Headroom',
  value: 0.83,
  text: '83.0% left',
  kind: 'remaining',
  description: '83.0% of the budget is left.'
};

function drawn(changes: Partial<IGauge> = {}, host: HTMLElement = document.createElement('div')): HTMLElement {
  drawGauge(host, { ...headroom, ...changes });
  return host;
}

describe('drawGauge', () => {
  it('is one meter to a screen reader', () => {
    const host = drawn();
    const attributes = ['role', 'aria-label', 'aria-valuenow', 'aria-valuemin', 'aria-valuemax', 'aria-valuetext'];
    expect(attributes.map(name => host.getAttribute(name))).toEqual([
      'meter',
      'Headroom',
      '0.83',
      '0',
      '1',
      '83.0% left'
    ]);
    expect(host.title).toBe(headroom.description);
    expect(host.querySelector('svg')?.getAttribute('aria-hidden')).toBe('true');
  });

  it('fills as much of the arc as the value says', () => {
    expect(drawn().querySelector('.dpnb-gauge-fill')?.getAttribute('stroke-dasharray')).toBe('83 200');
  });

  it('shows nothing at zero', () => {
    expect(drawn({ value: 0 }).querySelector('.dpnb-gauge-fill')?.getAttribute('visibility')).toBe('hidden');
  });

  it('moves the gauge that is there instead of drawing another', () => {
    const host = drawn();
    const before = host.querySelector('.dpnb-gauge-fill');
    drawn({ value: 0.5, text: '50.0% left' }, host);
    expect(host.querySelector('.dpnb-gauge-fill')).toBe(before);
    expect(host.querySelectorAll('svg')).toHaveLength(1);
    expect(host.textContent).toContain('50.0% left');
  });

  it.each([
    ['remaining', 0.9, 'good'],
    ['remaining', 0.2, 'low'],
    ['remaining', 0, 'out'],
    ['used', 0.1, 'good'],
    ['used', 0.8, 'low'],
    ['used', 1, 'out'],
    ['of a later version', 0, 'plain']
  ])('a gauge of what is %s at %s looks %s', (kind, value, level) => {
    expect(drawn({ kind, value }).dataset.level).toBe(level);
  });

  it('shows markup in a label as text', () => {
    const host = drawn({ label: '<img src=x onerror=alert(1)>' });
    expect(host.querySelector('img')).toBeNull();
    expect(host.textContent).toContain('<img');
  });
});
