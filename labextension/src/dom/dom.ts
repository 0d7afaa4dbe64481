import { clock } from './format';

/** A new element with a class, a text (never markup: names come from the user) and children. */
export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  className: string,
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const node = document.createElement(tag);
  node.className = className;
  node.append(...children);
  return node;
}

/** A new button with a text. */
export function button(className: string, text: string, onClick?: () => void): HTMLButtonElement {
  const node = element('button', className, text);
  node.type = 'button';
  if (onClick) {
    node.addEventListener('click', onClick);
  }
  return node;
}

/** The clock time of an instant, the whole of it for those who hover and for machines. */
export function setTime(node: HTMLTimeElement, iso: string): void {
  setText(node, clock(iso));
  node.dateTime = iso;
  node.title = iso;
}

/** Set a text only when it changes, so that a selection inside it survives an update. */
export function setText(node: Element, text: string): void {
  if (node.textContent !== text) {
    node.textContent = text;
  }
}

/** Give an element exactly these children, in this order; the keyboard stays where it is. */
export function arrange(host: Element, nodes: readonly Element[]): void {
  if (nodes.length === host.children.length && nodes.every((node, index) => node === host.children[index])) {
    return;
  }
  const focused = document.activeElement;
  host.replaceChildren(...nodes);
  if (focused instanceof HTMLElement && host.contains(focused)) {
    focused.focus({ preventScroll: true }); // an element that is put back has lost the keyboard
  }
}

/** A part of the page that shows one item and can be brought up to date in place. */
export interface IView<T> {
  readonly node: HTMLElement;
  update(item: T): void;
}

/** One view for each item of a list, kept from one update to the next so that what is there moves or stays. */
export class Views<T> {
  private readonly _views: IView<T>[] = [];

  constructor(
    private readonly host: HTMLElement,
    private readonly make: () => IView<T>
  ) {}

  update(items: readonly T[]): void {
    items.forEach((item, index) => this._at(index).update(item));
    this._views.splice(items.length).forEach(view => view.node.remove());
  }

  private _at(index: number): IView<T> {
    const there = this._views[index];
    if (there) {
      return there;
    }
    const made = this.make();
    this._views.push(made);
    this.host.append(made.node);
    return made;
  }
}
