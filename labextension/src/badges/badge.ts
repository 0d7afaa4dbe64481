import type { ICost } from './badgeMemory';
import { button, element, setText, Views } from '../dom/dom';

/** A cost, and whether it is only known from the saved notebook. */
export type BadgeLine = ICost & { isSaved: boolean };

/** What one cell cost, in the notebook's left margin: a line for each session that charged it. */
export class Badge {
  readonly node: HTMLButtonElement;
  private readonly _lines: Views<string>;

  constructor(onClick: () => void) {
    this.node = button('dpnb-badge', '', onClick);
    // The notebook would take Enter for itself, and a press of the mouse for the beginning of a selection.
    this.node.setAttribute('data-lm-suppress-shortcuts', 'true');
    this.node.addEventListener('mousedown', event => event.stopPropagation());
    this.node.addEventListener('keydown', event => {
      if (event.key === 'Enter' || event.key === ' ') {
        event.stopPropagation();
      }
    });
    this._lines = new Views(this.node, () => {
      const node = element('span', 'dpnb-badge-line');
      return { node, update: (text): void => setText(node, text) };
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
  }
}

function sentence({ description, notice, isSaved }: BadgeLine): string {
  return [description, notice, isSaved ? '(as saved with the notebook)' : undefined]
    .filter(part => part !== undefined)
    .join(' ');
}
