import { element } from '../dom/dom';
import type { IOption } from '../protocol/messages';

/** Percentages that have a tick, if the slider reaches them. */
const TICKS = [0.001, 0.01, 0.1, 1, 10, 100];
/** Ticks nearer to an end than these parts of the slider have no number: the ends have labels. */
const LEFT = 0.12;
const RIGHT = 0.26;

/** Draw ticks at round percentages below the slider, whose options are not evenly spaced. */
export function drawTicks(node: HTMLElement, options: readonly IOption[]): void {
  const costs = options.map(({ cost }) => (/^[\d.,]+%/u.test(cost) ? Number.parseFloat(cost) : NaN));
  const ticks = TICKS.flatMap(tick => {
    const place = placeOf(tick, costs);
    return place === null ? [] : [drawn(tick, place)];
  });
  node.replaceChildren(...ticks);
}

/** Where a cost is on the slider, from 0 to 1; null if it is beyond an end. */
function placeOf(cost: number, costs: readonly number[]): number | null {
  for (let index = 0; index + 1 < costs.length; index += 1) {
    const [low, high] = [costs[index] ?? NaN, costs[index + 1] ?? NaN];
    if (low > 0 && low <= cost && cost <= high && low < high) {
      return (index + Math.log(cost / low) / Math.log(high / low)) / (costs.length - 1);
    }
  }
  return null;
}

function drawn(tick: number, place: number): HTMLElement {
  const hasNumber = LEFT < place && place < 1 - RIGHT;
  const node = element('div', 'dpnb-picker-tick', hasNumber ? `${tick}%` : '');
  node.style.left = `calc(8px + ${place.toFixed(4)} * (100% - 16px))`; // the middle of the thumb does not reach the ends
  return node;
}
