import { element, type IView, setText, Views } from '../dom/dom';
import type { ITimelineChart, ITimelinePoint } from '../protocol/snapshot';
import type { IContents } from './contents';
import { trans } from '../translation';

/** The values of a chart as a table, for screen readers. */
export class TimelineTable implements IView<ITimelineChart> {
  readonly node = element('div', 'dpnb-visually-hidden');
  private readonly _caption = element('caption', '');
  private readonly _header = element('tr', '');
  private readonly _headings = new Views(this._header, columnHeading);
  private readonly _body = element('tbody', '');
  private readonly _rows: Views<ITimelinePoint>;

  constructor(private readonly _contents: IContents) {
    this._rows = new Views(this._body, () => pointRow(_contents));
    this.node.append(element('table', '', this._caption, element('thead', '', this._header), this._body));
  }

  update(timeline: ITimelineChart): void {
    const { label, text } = this._contents.axis(timeline);
    setText(this._caption, [label, text].filter(part => part !== '').join('; '));
    this._headings.update([trans.__('Request'), ...this._contents.headings(timeline)]);
    this._rows.update(timeline.points);
  }
}

function columnHeading(): IView<string> {
  const node = element('th', '');
  node.scope = 'col';
  return { node, update: text => setText(node, text) };
}

function pointRow(contents: IContents): IView<ITimelinePoint> {
  const name = element('th', '');
  name.scope = 'row';
  const node = element('tr', '', name);
  const cells = new Views(node, (): IView<string> => {
    const cell = element('td', '');
    return { node: cell, update: text => setText(cell, text) };
  });
  return {
    node,
    update: (point): void => {
      setText(name, point.text);
      cells.update(contents.values(point));
    }
  };
}
