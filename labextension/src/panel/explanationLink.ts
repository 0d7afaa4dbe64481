import { element } from '../dom/dom';

/** What every link to an explanation begins with, in the panel and in what the kernel prints below cells. */
const START = '#dpnb-explain-';

/** Id of the element that explains something. */
export const explanationNodeId = (explanation: string): string => `${START.slice(1)}${explanation}`;

/** A link to an explanation; null links to nothing and is hidden. */
export class ExplanationLink {
  readonly node = element('a', 'dpnb-explanation-link', 'Why?');

  /** @param subject What is explained, for screen readers, which read the link alone. */
  update(explanation: string | null, subject: string): void {
    this.node.hidden = explanation === null;
    this.node.href = explanation === null ? '#' : `${START}${encodeURIComponent(explanation)}`;
    this.node.setAttribute('aria-label', `Why? ${subject}`);
  }
}

/**
 * Let links to explanations work wherever they are on the page.
 *
 * They are caught before anything else sees them: JupyterLab gives links in outputs listeners of its own, and takes the
 * Enter key away from whatever has the keyboard inside a notebook.
 *
 * @returns what undoes it.
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
  page.addEventListener('keydown', onKey, true); // before the document, where the Lab's shortcuts listen
  return () => {
    page.document.removeEventListener('click', onClick, true);
    page.removeEventListener('keydown', onKey, true);
  };
}

/** The explanation that a place on the page links to. */
function linked(target: EventTarget | null): string | null {
  const link = target instanceof Element ? target.closest(`a[href^="${START}"]`) : null;
  const name = link?.getAttribute('href')?.slice(START.length);
  if (name === undefined) {
    return null;
  }
  try {
    return decodeURIComponent(name);
  } catch {
    return name; // not written by us
  }
}
