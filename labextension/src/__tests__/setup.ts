import { afterEach, vi } from 'vitest';

// What Lumino's widgets and ours need and jsdom lacks.
class DragEventStandIn extends MouseEvent {}
if (!('DragEvent' in globalThis)) {
  Object.assign(globalThis, { DragEvent: DragEventStandIn });
}
Element.prototype.scrollIntoView = (): void => undefined;

// Files share a process, so none leaves a stopped clock to the next.
afterEach(() => {
  vi.useRealTimers();
});
