/** How far Page Up and Page Down go. */
const PAGE = 10;

/**
 * Where a key moves on an axis with this many points; null for a key that moves nowhere.
 *
 * @param now Index of the point that is chosen, or -1 while none is: then the last one counts as chosen.
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
