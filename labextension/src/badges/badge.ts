import type { ICost } from './badgeMemory';
import { button, element, setText, Views } from '../dom/dom';
import { isOutOfDate } from '../dom/format';
import type { IConnectionSnapshot } from '../protocol/snapshot';
import { trans } from '../translation';

/** A cost, whether it comes from the saved notebook instead of a live session, and the connection of that session. */
export type BadgeLine = ICost & { isSaved: boolean; connection: IConnectionSnapshot | null };

/** A cost of which the percentage is enough in a margin that is narrower than the words: the tooltip has all of them. */
const IS_SHARE = /^\S+% of the budget$/u;
/** Characters in a row of a badge. */
const ROW = 11;

/** The rows of text that a cost takes in the margin. */
export const rowsOf = ({ cost }: ICost): number => (IS_SHARE.test(cost) ? 1 : Math.ceil(cost.length / ROW));

/** The cost of one cell, in the left margin of the notebook: one line for each session that was charged. */
export class Badge {
  readonly node: HTMLButtonElement;
  private readonly _lines: Views<string>;

  constructor(onClick: () => void) {
    this.node = button('dpnb-badge', '', onClick);
    // The notebook would handle Enter itself, and start a selection at a press of the mouse.
    this.node.setAttribute('data-lm-suppress-shortcuts', 'true');
    this.node.addEventListener('mousedown', event => event.stopPropagation());
    this.node.addEventListener('keydown', event => {
      if (event.key === 'Enter' || event.key === ' ') {
        event.stopPropagation();
      }
    });
    this._lines = new Views(this.node, () => {
      const share = element('span', 'dpnb-badge-share');
      const rest = element('span', 'dpnb-badge-rest');
      const node = element('span', 'dpnb-badge-line', share, rest);
      return {
        node,
        update: (text): void => {
          const isShare = IS_SHARE.test(text);
          setText(share, isShare ? (text.split(' ', 1)[0] ?? '') : '');
          setText(rest, text.slice(share.textContent?.length));
          rest.classList.toggle('dpnb-visually-hidden', isShare);
        }
      };
    });
  }

  update(lines: readonly BadgeLine[]): void {
    this._lines.update(lines.map(line => line.cost));
    const words = lines.map(sentence).join('\n');
    if (this.node.title !== words) {
      this.node.title = words;
      this.node.setAttribute('aria-label', words);
    }
    this.node.classList.toggle(
      'dpnb-mod-not-private',
      lines.some(line => line.notice !== undefined)
    );
    this.node.classList.toggle(
      'dpnb-mod-saved',
      lines.some(line => line.isSaved)
    );
    this.node.classList.toggle(
      'dpnb-mod-out-of-date',
      lines.some(line => isOutOfDate(line.connection))
    );
  }
}

function sentence({ description, notice, isSaved, connection }: BadgeLine): string {
  const where = connection ? trans.__('Table %1: %2.', connection.where, connection.text) : undefined;
  return [description, notice, isSaved ? trans.__('(as saved with the notebook)') : undefined, where]
    .filter(part => part !== undefined)
    .join(' ');
}
