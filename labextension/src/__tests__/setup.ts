// Lumino's widgets need one thing that jsdom lacks.
class DragEventStandIn extends MouseEvent {}
if (!('DragEvent' in globalThis)) {
  Object.assign(globalThis, { DragEvent: DragEventStandIn });
}
