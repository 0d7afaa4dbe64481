import { describe, expect, it } from 'vitest';

import { GaugeView } from '../../panel/gauge';
import type { IGauge } from '../../protocol/snapshot';
import { found } from '../fakeModel';

const headroom: IGauge = {
  id: 'headroom',
  label: 'Headroom',
  value: 0.83,
  text: '83.0% left',
  kind: 'remaining',
  end: null,
  note: null,
  description: '83.0% of the budget is left.'
};

const odometer: IGauge = {
  ...headroom,
  id: 'mixture',
  label: 'Odometer',
  kind: 'loss',
  text: 'loss so far at most 2.521',
  end: '2.584 when the budget is spent',
  note: 'A bound at every moment with confidence 99.9999%.'
};

function drawn(changes: Partial<IGauge> = {}, view = new GaugeView()): HTMLElement {
  view.update({ ...headroom, ...changes });
  return view.node;
}

const meter = (node: HTMLElement): HTMLElement => found(node, '[role=meter]');

describe('GaugeView', () => {
  it.each([headroom, odometer])('is one meter to a screen reader: $label', gauge => {
    const node = drawn(gauge);
    const attributes = ['aria-label', 'aria-valuenow', 'aria-valuemin', 'aria-valuemax', 'aria-valuetext'];
    expect(attributes.map(name => meter(node).getAttribute(name))).toEqual([gauge.label, '0.83', '0', '1', gauge.text]);
    expect(meter(node).title).toBe(gauge.description);
    expect(node.querySelectorAll('[role=meter]')).toHaveLength(1);
    expect(meter(node).querySelector('[tabindex]'), 'the content of a meter cannot be reached').toBeNull();
  });

  it('fills as much of the arc as the value says', () => {
    expect(found(drawn(), '.dpnb-gauge-fill').getAttribute('stroke-dasharray')).toBe('83 200');
  });

  it('shows nothing at zero', () => {
    expect(found(drawn({ value: 0 }), '.dpnb-gauge-fill').getAttribute('visibility')).toBe('hidden');
  });

  it('moves the gauge that is there instead of drawing another', () => {
    const view = new GaugeView();
    const before = drawn({}, view).querySelector('.dpnb-gauge-fill');
    const node = drawn({ value: 0.5, text: '50.0% left' }, view);
    expect(node.querySelector('.dpnb-gauge-fill')).toBe(before);
    expect(node.querySelectorAll('svg')).toHaveLength(1);
    expect(node.textContent).toContain('50.0% left');
  });

  it.each([
    ['remaining', 0.9, 'good'],
    ['remaining', 0.2, 'low'],
    ['remaining', 0, 'out'],
    ['loss', 0.1, 'plain'],
    ['loss', 1, 'plain'],
    ['of a later version', 0, 'plain']
  ])('a gauge of the kind %s at %s looks %s', (kind, value, level) => {
    expect(meter(drawn({ kind, value })).dataset.level).toBe(level);
  });

  it('shows an odometer on a scale of its own, with a sentence that is always there', () => {
    const node = drawn(odometer);
    expect(found(node, '.dpnb-bar-fill').style.width).toBe('83%');
    expect(found(node, '.dpnb-loss-scale').textContent).toBe('0 2.584 when the budget is spent');
    expect(found(node, '.dpnb-loss-note').hidden).toBe(false);
    expect(found(node, '.dpnb-loss-note').textContent).toBe(odometer.note);
    expect(node.querySelector('svg')).toBeNull();
  });

  it('hides the scale and the sentence of an odometer that has none', () => {
    const node = drawn({ ...odometer, end: null, note: null });
    expect(found(node, '.dpnb-loss-scale').hidden).toBe(true);
    expect(found(node, '.dpnb-loss-note').hidden).toBe(true);
  });

  it('shows markup in a label as text', () => {
    const node = drawn({ label: '<img src=x onerror=alert(1)>' });
    expect(node.querySelector('img')).toBeNull();
    expect(node.textContent).toContain('<img');
  });
});
