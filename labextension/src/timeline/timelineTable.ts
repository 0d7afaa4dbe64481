import { element, type IView, setText, Views } from '../dom/dom';
import { percent, roundedUp } from '../dom/format';
import type { ITimeline, ITimelinePoint } from '../protocol/timeline';

/** The values of the charts as a table, for screen readers. */
export class TimelineTable implements IView<ITimeline> {
  readonly node = element('div', 'dpnb-visually-hidden');
  private readonly _caption = element('caption', '');
  private readonly _header = element('tr', '');
  private readonly _headings = new Views(this._header, columnHeading);
  private readonly _body = element('tbody', '');
  private readonly _rows = new Views(this._body, pointRow);

  constructor() {
    this.node.append(element('table', '', this._caption, element('thead', '', this._header), this._body));
  }

  update({ budget, odometers, curves, points }: ITimeline): void {
    const titles = curves.length > 0 ? [budget, odometers] : [budget];
    setText(this._caption, titles.map(({ label, text }) => `${label}; ${text}`).join('. '));
    this._headings.update(['Request', 'Spent', ...curves.map(curve => curve.label)]);
    this._rows.update(points);
  }
}

function columnHeading(): IView<string> {
  const node = element('th', '');
  node.scope = 'col';
  return { node, update: text => setText(node, text) };
}

function pointRow(): IView<ITimelinePoint> {
  const name = element('th', '');
  name.scope = 'row';
  const node = element('tr', '', name);
  const cells = new Views(node, (): IView<string> => {
    const cell = element('td', '');
    return { node: cell, update: text => setText(cell, text) };
  });
  return {
    node,
    update: ({ text, spent, bounds }): void => {
      setText(name, text);
      cells.update([percent(spent), ...bounds.map(value => (value === null ? '–' : roundedUp(value, 4)))]);
    }
  };
}
