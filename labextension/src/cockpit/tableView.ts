import type { Actions } from './actions';
import { SPENT_OVER_TIME, timelineOf } from './budgetOverTime';
import { LogView } from './logView';
import { PartsView } from './partsView';
import { RecordsView } from './recordsView';
import { RequestsView } from './requestsView';
import type { Service } from './service';
import { saveStatement } from './statement';
import { StoppedView } from './stoppedView';
import { button, element, type IView, setText, Views } from '../dom/dom';
import { setTextWithTerms } from '../dom/terms';
import { GaugeView } from '../panel/gauge';
import type { ITableState } from '../protocol/curation';
import type { IGauge } from '../protocol/snapshot';
import { TimelineView } from '../timeline/timeline';
import { trans } from '../translation';

/** One table: its budget, the requests, the parts and the log. */
export class TableView implements IView<ITableState> {
  readonly node: HTMLElement;
  private readonly _name = element('h1', 'dpnb-table-name dpnb-foreign');
  private readonly _facts = element('p', 'dpnb-quiet');
  private readonly _notice = element('p', 'dpnb-notice');
  private readonly _frozen = element('p', 'dpnb-frozen');
  private readonly _gauges: Views<IGauge>;
  private readonly _spent = element('p', 'dpnb-spent-percent');
  private readonly _loss = element('p', 'dpnb-quiet');
  private readonly _guarantee = element('p', 'dpnb-guarantee');
  private readonly _timeline = new TimelineView(SPENT_OVER_TIME);
  private readonly _freeze = button('dpnb-button', '', () => this._onFreeze());
  private readonly _blocks: IView<ITableState>[];
  private _table: ITableState | null = null;

  constructor(
    service: Service,
    private readonly _actions: Actions | null,
    fail: (error: unknown) => void
  ) {
    const gauges = element('div', 'dpnb-gauges');
    this._gauges = new Views(gauges, () => new GaugeView());
    const words = element('div', 'dpnb-overview-words', this._spent, this._loss, this._guarantee);
    const overview = element('div', 'dpnb-overview', gauges, words, this._timeline.node);
    const save = button('dpnb-button', trans.__('Statement…'), () => {
      if (this._table) {
        void saveStatement(service, this._table);
      }
    });
    const bar = element('div', 'dpnb-table-acts', save, ...(_actions ? [this._freeze] : []));
    const top = element('section', 'dpnb-block', this._name, this._facts, this._notice, this._frozen, overview, bar);
    top.setAttribute('aria-label', trans.__('Budget'));
    this._blocks = [
      new StoppedView(_actions),
      new RequestsView(service, _actions, fail),
      new PartsView(_actions),
      new LogView(service, fail),
      new RecordsView(service, fail)
    ];
    this.node = element('div', 'dpnb-session dpnb-table', top, ...this._blocks.map(({ node }) => node));
  }

  update(table: ITableState): void {
    this._table = table;
    setText(this._name, table.name);
    const mode = table.mode === null ? [] : [trans.__('%1 mode', table.mode)];
    setText(this._facts, [...mode, trans.__('version %1', table.version), table.privacy_unit].join(' · '));
    const notice = [table.notice, table.fault].filter(text => text !== null).join(' ');
    setText(this._notice, notice);
    this._notice.hidden = notice === '';
    setText(this._frozen, trans.__('Frozen: %1. Nothing can be charged.', table.frozen ?? ''));
    this._frozen.hidden = table.frozen === null;
    this._gauges.update(table.gauges);
    setText(this._spent, table.spent);
    setText(this._loss, table.spent_loss);
    setTextWithTerms(this._guarantee, trans.__('Guarantee: %1.', table.guarantee));
    this._timeline.update(timelineOf(table.moments));
    setText(this._freeze, table.frozen === null ? trans.__('Freeze…') : trans.__('Unfreeze…'));
    this._freeze.setAttribute(
      'aria-label',
      table.frozen === null ? trans.__('Freeze %1', table.name) : trans.__('Unfreeze %1', table.name)
    );
    this._blocks.forEach(block => block.update(table));
  }

  private _onFreeze(): void {
    const { _table: table, _actions: actions } = this;
    if (!table || !actions) {
      return;
    }
    const { name, frozen } = table;
    void (frozen === null
      ? actions.table(name, {
          title: trans.__('Freeze %1', name),
          what: [trans.__('No analyst can be charged anything until you end it. Recorded answers stay free.')],
          fields: [
            {
              name: 'why',
              label: trans.__('Reason'),
              kind: 'long',
              hint: trans.__('Analysts read it.'),
              isRequired: true
            }
          ],
          confirm: trans.__('Freeze'),
          isSevere: true,
          act: ({ why = '' }) => ({ act: 'freeze', why }),
          done: trans.__('%1 is frozen.', name)
        })
      : actions.table(name, {
          title: trans.__('Unfreeze %1', name),
          what: [trans.__('Analysts can be charged again. It was frozen because: %1', frozen)],
          confirm: trans.__('Unfreeze'),
          act: () => ({ act: 'unfreeze' }),
          done: trans.__('%1 is no longer frozen.', name)
        }));
  }
}
