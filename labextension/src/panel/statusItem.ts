import { Widget } from '@lumino/widgets';

import { element } from '../dom/dom';
import { isOutOfDate, newestSession, statusLine } from '../dom/format';
import type { Setting } from '../setting';
import type { ILedgerModel } from '../kernel/tokens';
import { trans } from '../translation';

/** The line in the status bar about the most recently used session; a click opens the panel. */
export class StatusItem extends Widget {
  private readonly _button = element('button', 'dpnb-status');

  constructor(
    private readonly _model: ILedgerModel,
    private readonly _headline: Setting<string>,
    onClick: () => void
  ) {
    super();
    this._button.type = 'button';
    this._button.addEventListener('click', onClick);
    this.node.append(this._button);
    _model.changed.connect(this._draw, this);
    _headline.changed.connect(this._draw, this);
    this._draw();
  }

  private _draw(): void {
    const session = newestSession(this._model.view);
    this._button.textContent = statusLine(this._model.view, this._headline.value) ?? '';
    const connection = session?.connection;
    const where = connection ? ` ${trans.__('Table %1', connection.where)}: ${connection.text}.` : '';
    this._button.title = session ? `${session.name}: ${session.guarantee}. ${session.spent}.${where}` : '';
    this._button.classList.toggle('dpnb-mod-out-of-date', isOutOfDate(connection ?? null));
    this._button.classList.toggle('dpnb-mod-not-private', Boolean(session?.notice));
  }
}
