import type { Service } from './service';
import { element, type IView } from '../dom/dom';
import { trans } from '../translation';

/** Which row's plans are shown; null for a row without a plan. */
export interface IPlanOf {
  table: string;
  row: number | null;
}

/** The whole plans of a row, below its words; read when the reader opens them, since they may be large. */
export class PlanView implements IView<IPlanOf> {
  readonly node: HTMLDetailsElement;
  private readonly _body = element('div', 'dpnb-plan-body');
  private _of: IPlanOf = { table: '', row: null };
  private _isRead = false;

  constructor(
    private readonly _service: Service,
    private readonly _fail: (error: unknown) => void
  ) {
    const title = element('summary', 'dpnb-plan-title', trans.__('Whole plan'));
    this.node = element('details', 'dpnb-plan', title, this._body);
    this.node.addEventListener('toggle', () => void this._read());
  }

  update(of: IPlanOf): void {
    this.node.hidden = of.row === null;
    if (of.table !== this._of.table || of.row !== this._of.row) {
      this._of = of;
      this.node.open = false;
      this._forget();
    }
  }

  private _forget(): void {
    this._isRead = false;
    this._body.replaceChildren();
  }

  private async _read(): Promise<void> {
    const { table, row } = this._of;
    if (!this.node.open || this._isRead || row === null) {
      return;
    }
    this._isRead = true;
    try {
      const { plans } = await this._service.plans(table, row);
      if (row === this._of.row && table === this._of.table) {
        this._body.replaceChildren(...plans.map(planText));
      }
    } catch (error) {
      this._forget();
      this.node.open = false;
      this._fail(error);
    }
  }
}

/** A plan as a text, which is scrolled by the keyboard too. */
function planText(plan: string): HTMLElement {
  const node = element('pre', 'dpnb-plan-text dpnb-foreign', plan);
  node.tabIndex = 0;
  node.setAttribute('role', 'group');
  node.setAttribute('aria-label', trans.__('Whole plan'));
  return node;
}
