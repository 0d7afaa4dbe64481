// What Lumino's widgets and ours need and jsdom lacks.
class DragEventStandIn extends MouseEvent {}
if (!('DragEvent' in globalThis)) {
  Object.assign(globalThis, { DragEvent: DragEventStandIn });
}
Element.prototype.scrollIntoView = (): void => undefined;
