import { TERMS } from '../protocol/glossary';
import { element } from './dom';
import { trans } from '../translation';

type Term = keyof typeof TERMS;

/** Milliseconds for which a definition stays after the pointer has left its term, so that it can be entered. */
export const STAY_MS = 200;

/** Pixels between a term and its definition, and between a definition and the edge of the page. */
const GAP = 4;

const NAMES = Object.keys(TERMS) as Term[];
const PATTERN = new RegExp(`\\b(${NAMES.join('|')})s?\\b`, 'gi');

/** The definition of a term in the reader's language: the sentences come from Python, so they are no literals. */
// eslint-disable-next-line jupyter/no-dynamic-translation
const sentenceOf = (term: Term): string => trans.__(TERMS[term]);

/** A piece of a text: plain, or the words of a term. */
interface IPiece {
  words: string;
  term: Term | null;
}

/**
 * Show a text in which the first occurrence of each term is underlined and explained.
 *
 * Only for texts of dpnb: a name that a user chose may contain a term with another meaning.
 */
export function setTextWithTerms(node: Element, text: string): void {
  if (node.textContent === text) {
    return;
  }
  const pieces = piecesOf(text);
  const shown = [...node.childNodes];
  // Where only the text between the terms changes, the terms stay, and with them the focus.
  if (shown.length === pieces.length && pieces.every((piece, index) => fits(piece, shown[index]))) {
    pieces.forEach(({ words }, index) => {
      const child = shown[index];
      if (child instanceof Text) {
        child.data = words;
      }
    });
    return;
  }
  node.replaceChildren(...pieces.map(({ words, term }) => (term === null ? words : termElement(term, words))));
  Definition.of(document).hideIfGone();
}

const fits = ({ words, term }: IPiece, child: Node | undefined): boolean =>
  term === null ? child instanceof Text : child instanceof HTMLElement && child.textContent === words;

function piecesOf(text: string): IPiece[] {
  const found = new Set<Term>();
  const pieces: IPiece[] = [];
  let end = 0;
  for (const match of text.matchAll(PATTERN)) {
    const [words, name = ''] = match;
    const term = NAMES.find(one => one === name || one === name.toLowerCase());
    if (term !== undefined && !found.has(term)) {
      found.add(term);
      pieces.push({ words: text.slice(end, match.index), term: null }, { words, term });
      end = match.index + words.length;
    }
  }
  return [...pieces, { words: text.slice(end), term: null }].filter(({ words }) => words !== '');
}

/** A term with its definition on hover, on keyboard focus and for screen readers; the words may be in plural. */
function termElement(term: Term, words: string): HTMLElement {
  const definition = Definition.of(document);
  const node = element('dfn', 'dpnb-term', words);
  node.tabIndex = 0;
  node.setAttribute('aria-describedby', definitionId(term));
  const show = (): void => definition.show(node, sentenceOf(term));
  node.addEventListener('pointerenter', show);
  node.addEventListener('focus', show);
  node.addEventListener('pointerleave', () => definition.hideSoon());
  node.addEventListener('blur', () => definition.hide());
  return node;
}

const definitionId = (term: Term): string => `dpnb-term-${term.replace(' ', '-')}`;

/** The box with the definition of the term that is hovered or has the focus; there is one for each page. */
class Definition {
  private static readonly _all = new WeakMap<Document, Definition>();
  private readonly _box = element('div', 'dpnb-definition');
  private _owner: HTMLElement | null = null;
  private _timer: number | undefined;

  static of(page: Document): Definition {
    const box = Definition._all.get(page) ?? new Definition(page);
    Definition._all.set(page, box);
    return box;
  }

  private constructor(private readonly _page: Document) {
    this._box.setAttribute('aria-hidden', 'true'); // screen readers have the description of the term
    this._box.addEventListener('pointerenter', () => window.clearTimeout(this._timer));
    this._box.addEventListener('pointerleave', () => this.hideSoon());
    _page.addEventListener('scroll', () => this._place(), { capture: true, passive: true });
    window.addEventListener('keydown', event => this._onKey(event), true); // before the shortcuts of JupyterLab
    describe(_page);
  }

  show(owner: HTMLElement, text: string): void {
    window.clearTimeout(this._timer);
    this._owner = owner;
    this._box.textContent = text;
    this._page.body.append(this._box);
    this._place();
  }

  hide(): void {
    window.clearTimeout(this._timer);
    this._owner = null;
    this._box.remove();
  }

  /** Hide it unless the pointer enters it or another term, or its term has the focus. */
  hideSoon(): void {
    window.clearTimeout(this._timer);
    this._timer = window.setTimeout(() => {
      if (this._owner !== this._page.activeElement) {
        this.hide();
      }
    }, STAY_MS);
  }

  /** Hide it if its term is no longer on the page. */
  hideIfGone(): void {
    if (this._owner && !this._owner.isConnected) {
      this.hide();
    }
  }

  /** Escape closes it; if its term has the focus, the key does nothing else. */
  private _onKey(event: KeyboardEvent): void {
    if (event.key === 'Escape' && this._owner) {
      if (this._owner === this._page.activeElement) {
        event.stopPropagation();
        event.preventDefault();
      }
      this.hide();
    }
  }

  /** Below the term, or above it if there is no space; always within the page. */
  private _place(): void {
    if (!this._owner) {
      return;
    }
    const term = this._owner.getBoundingClientRect();
    const { width, height } = this._box.getBoundingClientRect();
    const { clientWidth, clientHeight } = this._page.documentElement;
    const left = Math.max(GAP, Math.min(term.left, clientWidth - width - GAP));
    const isBelow = term.bottom + GAP + height <= clientHeight || term.top - GAP - height < 0;
    const top = isBelow ? term.bottom + GAP : term.top - GAP - height;
    this._box.style.left = `${left}px`;
    this._box.style.top = `${top}px`;
  }
}

/** Add the hidden definitions to which terms refer for screen readers; once for each page, whatever script it is. */
function describe(page: Document): void {
  const [first] = NAMES;
  if (first !== undefined && page.getElementById(definitionId(first)) === null) {
    const definitions = NAMES.map(term => {
      const node = element('span', '', sentenceOf(term));
      node.id = definitionId(term);
      return node;
    });
    const list = element('div', 'dpnb-definitions', ...definitions);
    list.hidden = true;
    page.body.append(list);
  }
}
