import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { keepInView } from '../../picker/keepInView';

describe('keepInView', () => {
  const node = document.createElement('div');
  const scroll = vi.fn();
  let top = 0;
  let stop = (): void => undefined;

  beforeEach(() => {
    vi.useFakeTimers();
    scroll.mockReset();
    document.body.replaceChildren(node);
    Object.defineProperty(document.documentElement, 'clientHeight', { value: 800, configurable: true });
    node.getBoundingClientRect = (): DOMRect => new DOMRect(0, top, 100, 200);
    node.scrollIntoView = scroll;
  });

  afterEach(() => {
    stop();
    vi.useRealTimers();
  });

  it('leaves what is visible where it is', () => {
    top = 100;
    stop = keepInView(node);
    vi.advanceTimersByTime(500);
    expect(scroll).not.toHaveBeenCalled();
  });

  it('scrolls when the page moves the element away, also later', () => {
    top = 100;
    stop = keepInView(node);
    vi.advanceTimersByTime(300);
    top = 700;
    vi.advanceTimersByTime(50);
    expect(scroll).toHaveBeenCalledWith({ block: 'nearest' });
  });

  it('leaves the page to the reader who moves it', () => {
    top = 100;
    stop = keepInView(node);
    vi.advanceTimersByTime(50);
    window.dispatchEvent(new Event('wheel'));
    top = 900;
    vi.advanceTimersByTime(500);
    expect(scroll).not.toHaveBeenCalled();
  });

  it('ends', () => {
    top = 100;
    stop = keepInView(node);
    vi.advanceTimersByTime(3000);
    top = 900;
    vi.advanceTimersByTime(500);
    expect(scroll).not.toHaveBeenCalled();
  });
});
