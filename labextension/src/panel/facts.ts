import { element, type IView, setText } from '../dom/dom';
import { setTextWithTerms } from '../dom/terms';
import type { ISessionSnapshot } from '../protocol/snapshot';
import { trans } from '../translation';

/** What is spent, as a share of the budget. */
export class SpentView implements IView<ISessionSnapshot> {
  private readonly _percent = element('div', 'dpnb-spent-percent');
  readonly node = element('div', 'dpnb-spent', this._percent);

  update({ spent }: ISessionSnapshot): void {
    setText(this._percent, spent);
  }
}

/** What is guaranteed, for whom, and which engine holds the rows. */
export class GuaranteeView implements IView<ISessionSnapshot> {
  private readonly _unitName = element('dt', 'dpnb-fact-name');
  private readonly _unit = element('dd', 'dpnb-privacy-unit');
  private readonly _guarantee = element('dd', 'dpnb-guarantee');
  private readonly _engine = element('dd', 'dpnb-engine');
  readonly node = element(
    'dl',
    'dpnb-facts',
    this._unitName,
    this._unit,
    element('dt', 'dpnb-fact-name', trans.__('Guarantee')),
    this._guarantee,
    element('dt', 'dpnb-fact-name', trans.__('Table')),
    this._engine
  );

  constructor() {
    setTextWithTerms(this._unitName, trans.__('Privacy unit'));
  }

  update({ guarantee, promise, privacy_unit: unit, engine }: ISessionSnapshot): void {
    setText(this._unit, unit);
    setText(this._engine, trans.__('in %1', engine));
    setText(this._guarantee, promise);
    this._guarantee.title = guarantee; // also in the accounting details, with its terms
  }
}
