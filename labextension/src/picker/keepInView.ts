/** Milliseconds for which the page may still move what was drawn: outputs above it are drawn again, too. */
const DURATION = 1500;

/** What the reader does to move the page. */
const READER_EVENTS = ['wheel', 'touchmove', 'pointerdown', 'keydown'] as const;

/**
 * Keep an element inside the visible part of the page while the page settles, until the reader moves the page.
 *
 * @returns a function that stops it.
 */
export function keepInView(node: HTMLElement): () => void {
  const end = performance.now() + DURATION;
  let frame = 0;
  const stop = (): void => {
    cancelAnimationFrame(frame);
    READER_EVENTS.forEach(name => window.removeEventListener(name, stop, true));
  };
  const step = (): void => {
    if (performance.now() > end) {
      stop();
      return;
    }
    if (node.isConnected && !isInView(node)) {
      const isTall = node.offsetHeight > visibleBox(node).height;
      node.scrollIntoView({ block: isTall ? 'start' : 'nearest' });
    }
    frame = requestAnimationFrame(step);
  };
  READER_EVENTS.forEach(name => window.addEventListener(name, stop, { capture: true, passive: true }));
  frame = requestAnimationFrame(step);
  return stop;
}

/** Whether an element is visible as a whole, or from its start if it is taller than the page. */
function isInView(node: HTMLElement): boolean {
  const { top, bottom, height } = node.getBoundingClientRect();
  const box = visibleBox(node);
  return height > box.height ? Math.abs(top - box.top) <= 2 : top >= box.top - 1 && bottom <= box.bottom + 1;
}

/** The visible part of what scrolls the element. */
function visibleBox(node: HTMLElement): { top: number; bottom: number; height: number } {
  let top = 0;
  let bottom = document.documentElement.clientHeight;
  for (let parent = node.parentElement; parent; parent = parent.parentElement) {
    if (/auto|scroll/.test(getComputedStyle(parent).overflowY) && parent.scrollHeight > parent.clientHeight) {
      const box = parent.getBoundingClientRect();
      top = Math.max(top, box.top);
      bottom = Math.min(bottom, box.bottom);
    }
  }
  return { top, bottom, height: bottom - top };
}
