import { button, element, type IView, setText } from '../dom/dom';
import { isOutOfDate } from '../dom/format';
import { type IConnectionSnapshot, OUT_OF_DATE } from '../protocol/snapshot';
import { trans } from '../translation';
import { ExplanationLink } from './explanationLink';

/** Milliseconds during which the button does not send a second request. */
const PAUSE = 2_000;

/**
 * Where the table of a remote session is, and whether the figures are up to date; hidden for a local session.
 *
 * Figures that are out of date are announced by a sentence in a box, with a button that reconnects now.
 */
export class ConnectionView implements IView<IConnectionSnapshot | null> {
  readonly node = element('div', 'dpnb-connection');
  private readonly _where = element('span', 'dpnb-connection-where');
  /** Always on the page, so that screen readers also announce that the figures are up to date again. */
  private readonly _state = element('span', 'dpnb-connection-state');
  private readonly _why = new ExplanationLink();
  private readonly _button = button('dpnb-connection-button', trans.__('Reconnect'), () => this._onClick());

  constructor(private readonly _reconnect: () => void) {
    this._state.setAttribute('role', 'status');
    this.node.tabIndex = -1; // it receives the focus when the button that has it is hidden
    this.node.append(this._where, ' ', this._state, ' ', this._why.node, ' ', this._button);
    this.update(null);
  }

  update(connection: IConnectionSnapshot | null): void {
    const isOutdated = isOutOfDate(connection);
    this.node.hidden = connection === null;
    this.node.classList.toggle('dpnb-mod-out-of-date', isOutdated);
    setText(this._where, connection ? trans.__('Table %1.', connection.where) : '');
    setText(this._state, connection ? sentence(connection) : '');
    this._why.update(isOutdated ? OUT_OF_DATE : null, connection?.text ?? '');
    if (!isOutdated && document.activeElement === this._button) {
      this.node.focus({ preventScroll: true });
    }
    this._button.hidden = !isOutdated;
  }

  private _onClick(): void {
    if (this._button.getAttribute('aria-disabled') === 'true') {
      return;
    }
    // Not disabled, since a disabled button loses the focus.
    this._button.setAttribute('aria-disabled', 'true');
    setTimeout(() => this._button.removeAttribute('aria-disabled'), PAUSE);
    this._reconnect();
  }
}

/** The state of a connection as a sentence. */
function sentence({ is_current: isCurrent, text }: IConnectionSnapshot): string {
  const words = `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
  return isCurrent ? words : `${words} ${trans.__('All figures here are the last known.')}`;
}
