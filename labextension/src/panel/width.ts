import { SplitPanel, type Widget } from '@lumino/widgets';

/** The panel's part of the page, and the most pixels that it takes: lines of text need no more. */
const PART = 0.22;
const MOST = 420;

/**
 * Make a side panel as wide as its text needs where the page has room, at the expense of the widest area.
 *
 * It is never made narrower, and the user can drag its edge as before.
 */
export function widen(panel: Widget): void {
  let area: Widget = panel;
  while (area.parent && !(area.parent instanceof SplitPanel)) {
    area = area.parent;
  }
  const split = area.parent;
  if (!(split instanceof SplitPanel)) {
    return;
  }
  const total = split.node.clientWidth;
  const missing = Math.min(MOST, PART * total) - area.node.offsetWidth;
  const sizes = split.relativeSizes();
  const index = split.widgets.indexOf(area);
  const widest = sizes.indexOf(Math.max(...sizes));
  if (total > 0 && missing > 0 && widest !== index) {
    sizes[index] = (sizes[index] ?? 0) + missing / total;
    sizes[widest] = (sizes[widest] ?? 0) - missing / total;
    split.setRelativeSizes(sizes);
  }
}
