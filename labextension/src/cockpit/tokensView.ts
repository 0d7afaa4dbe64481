import type { Actions } from './actions';
import { cellFor, heading, moment } from './tableParts';
import { button, element, type IView, setText, Views } from '../dom/dom';
import type { ITokenHolder } from '../protocol/cockpit';
import { trans } from '../translation';

/** Who has a valid token, and a button that replaces it. */
export class TokensView implements IView<ITokenHolder[]> {
  readonly node: HTMLElement;
  private readonly _rows: Views<ITokenHolder>;

  constructor(actions: Actions) {
    const title = element('h2', 'dpnb-title', trans.__('Tokens'));
    title.id = 'dpnb-tokens-title';
    const body = element('tbody', '');
    this._rows = new Views(body, () => holderRow(actions));
    const headings = [trans.__('Name'), trans.__('Role'), trans.__('Made'), trans.__('Expires'), trans.__('Acts')];
    const caption = element('caption', 'dpnb-visually-hidden', trans.__('Persons with a valid token'));
    const head = element('thead', '', element('tr', '', ...headings.map(heading)));
    this.node = element('section', 'dpnb-block', title, element('table', 'dpnb-tokens-table', caption, head, body));
    this.node.setAttribute('aria-labelledby', title.id);
  }

  update(holders: ITokenHolder[]): void {
    this._rows.update(holders);
  }
}

function holderRow(actions: Actions): IView<ITokenHolder> {
  let holder: ITokenHolder | null = null;
  const name = element('th', 'dpnb-foreign');
  name.scope = 'row';
  const role = cellFor(trans.__('Role'));
  const created = cellFor(trans.__('Made'));
  const expires = cellFor(trans.__('Expires'));
  const rotate = button('dpnb-button', trans.__('New token…'), () => {
    if (holder) {
      void actions.rotate(holder.name);
    }
  });
  return {
    node: element('tr', '', name, role, created, expires, element('td', '', rotate)),
    update: (new_): void => {
      holder = new_;
      setText(name, holder.name);
      setText(role, holder.role);
      setText(created, moment(holder.created));
      setText(expires, holder.expires === null ? trans.__('never') : moment(holder.expires));
      rotate.hidden = !holder.may_rotate;
      rotate.setAttribute('aria-label', trans.__('New token for %1', holder.name));
    }
  };
}
