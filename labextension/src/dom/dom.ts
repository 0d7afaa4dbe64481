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

/** Show the clock time of an instant, with the full timestamp as tooltip and machine-readable value. */
export function setTime(node: HTMLTimeElement, iso: string): void {
  setText(node, clock(iso));
  node.dateTime = iso;
  node.title = iso;
}

/** Set a text only if it changes, so that a selection inside it survives an update. */
export function setText(node: Element, text: string): void {
  if (node.textContent !== text) {
    node.textContent = text;
  }
}

/** Give an element exactly these children, in this order; the focus does not move. */
export function arrange(host: Element, nodes: readonly Element[]): void {
  if (nodes.length === host.children.length && nodes.every((node, index) => node === host.children[index])) {
    return;
  }
  const focused = document.activeElement;
  host.replaceChildren(...nodes);
  if (focused instanceof HTMLElement && host.contains(focused)) {
    focused.focus({ preventScroll: true }); // an element that is inserted again has lost the focus
  }
}

/** A part of the page that shows one item and is updated in place. */
export interface IView<T> {
  readonly node: HTMLElement;
  update(item: T): void;
}

/** One view for each item of a list; views are reused by updates. */
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
    const existing = this._views[index];
    if (existing) {
      return existing;
    }
    const view = this.make();
    this._views.push(view);
    this.host.append(view.node);
    return view;
  }
}
