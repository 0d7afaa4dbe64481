import { element } from '../dom/dom';

/** The heading of a column. */
export function heading(text: string): HTMLTableCellElement {
  const node = element('th', '', text);
  node.scope = 'col';
  return node;
}

/** A cell that shows its column's heading itself where the page is too narrow for columns. */
export function cellFor(label: string, className = ''): HTMLTableCellElement {
  const node = element('td', className);
  node.dataset.label = label;
  return node;
}

/** Day and time of an instant, in the reader's time zone. */
export function moment(iso: string): string {
  const date = new Date(iso);
  return Number.isNaN(date.getTime()) ? iso : date.toLocaleString([], { dateStyle: 'medium', timeStyle: 'short' });
}
