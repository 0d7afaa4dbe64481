/** Number of points that Page Up and Page Down move. */
const PAGE = 10;

/**
 * Index of the point that a key moves to, on an axis with `count` points; null for a key that does not move.
 *
 * @param now Index of the selected point; -1 for none, which counts as the last.
 */
export function indexForKey(key: string, now: number, count: number): number | null {
  const last = count - 1;
  const from = now < 0 ? last : now;
  const steps = new Map([
    ['ArrowRight', from + 1],
    ['ArrowUp', from + 1],
    ['ArrowLeft', from - 1],
    ['ArrowDown', from - 1],
    ['PageUp', from + PAGE],
    ['PageDown', from - PAGE],
    ['Home', 0],
    ['End', last]
  ]);
  const to = steps.get(key);
  return to === undefined || count === 0 ? null : Math.min(Math.max(to, 0), last);
}
