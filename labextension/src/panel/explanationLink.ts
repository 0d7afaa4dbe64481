import { element } from '../dom/dom';
import { trans } from '../translation';

/** Prefix of all links to explanations, in the panel and in outputs of cells. */
const PREFIX = '#dpnb-explain-';

/** Id of the element that explains something. */
export const explanationNodeId = (explanation: string): string => `${PREFIX.slice(1)}${explanation}`;

/** A link to an explanation; hidden if there is none. */
export class ExplanationLink {
  readonly node = element('a', 'dpnb-explanation-link', trans.__('Why?'));

  /** @param subject What is explained, for screen readers, which read the link without its context. */
  update(explanation: string | null, subject: string): void {
    this.node.hidden = explanation === null;
    this.node.href = explanation === null ? '#' : `${PREFIX}${encodeURIComponent(explanation)}`;
    this.node.setAttribute('aria-label', `${trans.__('Why?')} ${subject}`);
  }
}

/**
 * Follow links to explanations anywhere on the page.
 *
 * Events are handled before all other listeners: JupyterLab adds its own to links in outputs, and handles the Enter key
 * inside a notebook.
 *
 * @returns a function that removes the listeners.
 */
export function followExplanationLinks(show: (explanation: string) => void, page: Window = window): () => void {
  const follow = (event: Event): void => {
    const explanation = linked(event.target);
    if (explanation !== null) {
      event.preventDefault();
      event.stopPropagation();
      show(explanation);
    }
  };
  const onClick = (event: MouseEvent): void => {
    if (event.button === 0) {
      follow(event);
    }
  };
  const onKey = (event: KeyboardEvent): void => {
    if (event.key === 'Enter') {
      follow(event);
    }
  };
  page.document.addEventListener('click', onClick, true);
  page.addEventListener('keydown', onKey, true); // before the document, which has the listener of JupyterLab's shortcuts
  return () => {
    page.document.removeEventListener('click', onClick, true);
    page.removeEventListener('keydown', onKey, true);
  };
}

/** Id of the explanation that an element links to. */
function linked(target: EventTarget | null): string | null {
  const link = target instanceof Element ? target.closest(`a[href^="${PREFIX}"]`) : null;
  const name = link?.getAttribute('href')?.slice(PREFIX.length);
  if (name === undefined) {
    return null;
  }
  try {
    return decodeURIComponent(name);
  } catch {
    return name; // not a link of dpnb
  }
}
