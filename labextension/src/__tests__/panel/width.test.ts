import { Panel, SplitPanel, StackedPanel, Widget } from '@lumino/widgets';
import { describe, expect, it } from 'vitest';

import { widen } from '../../panel/width';

/** A page of some width with a document and a side panel, whose widths are given. */
function page(total: number, width: number): { split: SplitPanel; panel: Widget } {
  const split = new SplitPanel();
  const area = new StackedPanel();
  const panel = new Widget();
  area.addWidget(panel);
  split.addWidget(new Panel());
  split.addWidget(area);
  split.setRelativeSizes([total - width, width]);
  Object.defineProperty(split.node, 'clientWidth', { value: total });
  Object.defineProperty(area.node, 'offsetWidth', { value: width });
  return { split, panel };
}

function widened(total: number, width: number): number {
  const { split, panel } = page(total, width);
  widen(panel);
  return Math.round((split.relativeSizes()[1] ?? NaN) * total);
}

describe('the width of the panel', () => {
  it.each([
    [1200, 250, 264],
    [1850, 250, 407],
    [3000, 250, 420]
  ])('on a page of %i pixels goes from %i to %i', (total, before, after) => {
    expect(widened(total, before)).toBe(after);
  });

  it('is never reduced, on a narrow page or after the user has chosen it', () => {
    expect(widened(900, 250)).toBe(250);
    expect(widened(1850, 600)).toBe(600);
  });

  it('stays as it is outside of the Lab', () => {
    const panel = new Widget();
    widen(panel);
    expect(panel.node.style.width).toBe('');
  });
});
