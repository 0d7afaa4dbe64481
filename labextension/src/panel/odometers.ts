import { element, type IView, setText, Views } from '../dom/dom';
import { setTextWithTerms } from '../dom/terms';
import type { IOdometerReading, ISessionSnapshot } from '../protocol/snapshot';
import { trans } from '../translation';

/** How the bounds of a kind of odometer may be used. */
const noteOf = (kind: string, hasFilter: boolean): string | undefined =>
  new Map([
    [
      'time-uniform',
      hasFilter
        ? trans.__("valid at every moment, and therefore larger than the filter's guarantee; choose one in advance")
        : trans.__('valid at every moment; choose one in advance')
    ],
    ['accumulator', trans.__('the answers are within every budget of at least this bound that was fixed in advance')]
  ]).get(kind);

/** The odometers of one kind, and how their bounds may be used. */
type Group = [kind: string, odometers: IOdometerReading[], note: string | undefined];

/** The bound of each odometer on the loss so far, with a sentence that states what the bound proves. */
export class OdometersView implements IView<Pick<ISessionSnapshot, 'odometers' | 'filters'>> {
  readonly node = element('section', 'dpnb-odometers');
  private readonly _list = element('div', '');
  private readonly _groups = new Views(this._list, odometerGroup);

  constructor() {
    const heading = element('h5', 'dpnb-subheading');
    setTextWithTerms(heading, trans.__('Odometers'));
    this.node.append(heading, this._list);
  }

  update({ odometers, filters }: Pick<ISessionSnapshot, 'odometers' | 'filters'>): void {
    this.node.hidden = odometers.length === 0;
    const groups = new Map<string, IOdometerReading[]>();
    for (const odometer of odometers) {
      groups.set(odometer.kind, [...(groups.get(odometer.kind) ?? []), odometer]);
    }
    const hasFilter = filters.length > 0; // none without a budget
    this._groups.update([...groups].map(([kind, group]): Group => [kind, group, noteOf(kind, hasFilter)]));
  }
}

function odometerGroup(): IView<Group> {
  const reading = element('span', 'dpnb-reading-name');
  const meaning = element('span', 'dpnb-reading-meaning');
  const list = element('ul', 'dpnb-odometer-list');
  const node = element('div', 'dpnb-reading', element('p', 'dpnb-reading-note', reading, meaning), list);
  const items = new Views(list, odometerItem);
  return {
    node,
    update: ([name, odometers, note]): void => {
      node.dataset.reading = name;
      list.setAttribute('aria-label', trans.__('Odometers, %1', name));
      setText(reading, name);
      setText(meaning, note === undefined ? '' : `: ${note}`);
      items.update(odometers);
    }
  };
}

function odometerItem(): IView<IOdometerReading> {
  const label = element('span', 'dpnb-odometer-label');
  const text = element('span', 'dpnb-odometer-text');
  const sentence = element('div', 'dpnb-odometer-sentence');
  const node = element('li', 'dpnb-odometer', element('div', 'dpnb-odometer-line', label, ' ', text), sentence);
  return {
    node,
    update: (odometer): void => {
      node.dataset.odometer = odometer.id;
      setText(label, odometer.label);
      setText(text, odometer.text);
      setText(sentence, odometer.description);
    }
  };
}
