import { arrange, element, type IView, setText, Views } from '../dom/dom';
import { Fold } from '../dom/fold';
import { setTextWithTerms } from '../dom/terms';
import type { IMechanism, IPart } from '../protocol/snapshot';
import { trans } from '../translation';

/** Maximum number of parts that are shown; if there are more, all are collapsed. */
export const PARTS_SHOWN = 6;

/** The interactive mechanisms with their states, open ones first. */
export class MechanismsView implements IView<IMechanism[]> {
  readonly node = element('section', 'dpnb-mechanisms');
  private readonly _list = element('ul', 'dpnb-mechanism-list');
  /** By id: a closed mechanism moves down with the parts that the reader unfolded. */
  private _rows = new Map<string, IView<IMechanism>>();

  constructor() {
    const title = trans.__('Interactive mechanisms');
    this.node.setAttribute('aria-label', title);
    this.node.append(element('h4', 'dpnb-heading', title), this._list);
  }

  update(mechanisms: IMechanism[]): void {
    this.node.hidden = mechanisms.length === 0;
    const rows = [...mechanisms].sort(openFirst).map((mechanism): [string, IView<IMechanism>] => {
      const row = this._rows.get(mechanism.id) ?? mechanismRow();
      row.update(mechanism);
      return [mechanism.id, row];
    });
    this._rows = new Map(rows);
    arrange(
      this._list,
      rows.map(([, row]) => row.node)
    );
  }
}

const isOpen = ({ state }: IMechanism): boolean => state === 'open';

const openFirst = (a: IMechanism, b: IMechanism): number => Number(isOpen(b)) - Number(isOpen(a));

function mechanismRow(): IView<IMechanism> {
  const name = element('span', 'dpnb-mechanism-name');
  const kind = element('span', 'dpnb-mechanism-kind');
  const state = element('span', 'dpnb-mechanism-state');
  const line = element('div', 'dpnb-mechanism-line', name, ' ', kind, ' ', state);
  const text = element('div', 'dpnb-mechanism-text');
  const sentence = element('div', 'dpnb-visually-hidden');
  const parts = new PartsView();
  const node = element('li', 'dpnb-mechanism', line, text, sentence, parts.node);
  return {
    node,
    update: (mechanism): void => {
      node.dataset.mechanism = mechanism.id;
      node.dataset.state = mechanism.state;
      node.title = mechanism.description;
      setText(name, mechanism.name);
      setText(kind, mechanism.kind);
      setText(state, mechanism.state);
      setTextWithTerms(text, mechanism.text);
      setText(sentence, mechanism.description);
      parts.update(mechanism);
    }
  };
}

/** The spending of each part of a mechanism, as a bar and as text. */
class PartsView implements IView<IMechanism> {
  readonly node = element('div', 'dpnb-parts');
  private readonly _fold = new Fold('dpnb-parts-fold', '');
  private readonly _list = element('ul', 'dpnb-part-list');
  private readonly _items = new Views(this._list, partItem);

  update({ name, parts }: IMechanism): void {
    const isMany = parts.length > PARTS_SHOWN;
    this.node.hidden = parts.length === 0;
    this._fold.rename(trans.__('Parts (%1)', parts.length));
    this._list.setAttribute('aria-label', trans.__('Parts of %1', name));
    this._items.update(parts);
    arrange(this._fold.body, isMany ? [this._list] : []);
    arrange(this.node, [isMany ? this._fold.node : this._list]);
  }
}

function partItem(): IView<IPart> {
  const name = element('span', 'dpnb-part-name');
  const text = element('span', 'dpnb-part-text');
  const fill = element('div', 'dpnb-bar-fill');
  const bar = element('div', 'dpnb-bar', fill);
  bar.setAttribute('aria-hidden', 'true'); // the text states the same
  const node = element('li', 'dpnb-part', element('div', 'dpnb-part-line', name, ' ', text), bar);
  return {
    node,
    update: (part): void => {
      node.dataset.part = part.name;
      fill.style.width = `${100 * part.value}%`;
      setText(name, part.name);
      setText(text, part.text);
    }
  };
}
