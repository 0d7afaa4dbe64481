import type { Actions } from './actions';
import { cellFor, heading, moment } from './tableParts';
import { button, element, type IView, setText, Views } from '../dom/dom';
import type { ITokenHolder } from '../protocol/curation';
import { trans } from '../translation';

/** Who has a valid token, and what can be done about it. */
export class TokensView implements IView<ITokenHolder[]> {
  readonly node: HTMLElement;
  private readonly _rows: Views<ITokenHolder>;

  /** @param roles The roles that the reader may give. */
  constructor(actions: Actions, roles: () => string[]) {
    const add = button('dpnb-button', trans.__('New person…'), () => newPerson(actions, roles()));
    const title = element('h2', 'dpnb-title', trans.__('Tokens'));
    title.id = 'dpnb-tokens-title';
    const body = element('tbody', '');
    this._rows = new Views(body, () => holderRow(actions));
    const headings = [trans.__('Name'), trans.__('Role'), trans.__('Made'), trans.__('Expires'), trans.__('Acts')];
    const caption = element('caption', 'dpnb-visually-hidden', trans.__('Persons with a valid token'));
    const head = element('thead', '', element('tr', '', ...headings.map(heading)));
    const top = element('div', 'dpnb-block-top', title, add);
    this.node = element('section', 'dpnb-block', top, element('table', 'dpnb-tokens-table', caption, head, body));
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
      replace(actions, holder.name);
    }
  });
  const extend = button('dpnb-button', trans.__('Extend…'), () => {
    if (holder) {
      extendTokens(actions, holder);
    }
  });
  const revoke = button('dpnb-button', trans.__('Revoke…'), () => {
    if (holder) {
      revokeTokens(actions, holder.name);
    }
  });
  return {
    node: element('tr', '', name, role, created, expires, element('td', 'dpnb-part-acts', extend, rotate, revoke)),
    update: (new_): void => {
      holder = new_;
      setText(name, holder.name);
      setText(role, holder.role);
      setText(created, moment(holder.created));
      setText(expires, holder.expires === null ? trans.__('never') : moment(holder.expires));
      extend.hidden = !holder.may_extend;
      rotate.hidden = revoke.hidden = !holder.may_rotate;
      extend.setAttribute('aria-label', trans.__('Extend the tokens of %1', holder.name));
      revoke.setAttribute('aria-label', trans.__('Revoke the tokens of %1', holder.name));
      rotate.setAttribute('aria-label', trans.__('New token for %1', holder.name));
    }
  };
}

function newPerson(actions: Actions, roles: string[]): void {
  void actions.withToken({
    title: trans.__('New person'),
    what: [
      trans.__(
        'The person gets a token, which is shown once: send it as you would send a password. Add an analyst of a table with parts there: that makes the token too.'
      )
    ],
    fields: [
      { name: 'name', label: trans.__('Name'), hint: trans.__('Letters, digits, . _ @ and -'), isRequired: true },
      { name: 'role', label: trans.__('Role'), choices: roles.map(role => [role, role]), value: roles[0] ?? '' },
      {
        name: 'expires',
        label: trans.__('The token expires'),
        hint: trans.__('A date, or a period such as 30d. Empty: never.')
      }
    ],
    confirm: trans.__('Make a token'),
    done: trans.__('The person has a token.'),
    make: async (service, { name = '', role = '', expires = '' }, made) => {
      const { token } = await service.token({ act: 'new', name, role, expires: expires || null });
      made.push({ name, token });
    }
  });
}

function extendTokens(actions: Actions, { name, expires }: ITokenHolder): void {
  void actions.withToken({
    title: trans.__('Extend the tokens of %1', name),
    what: [
      expires === null
        ? trans.__('The tokens of %1 do not expire now: a date ends them earlier.', name)
        : trans.__('The last token of %1 expires %2.', name, moment(expires)),
      trans.__('All valid tokens of %1 get the new end; notebooks and pages that use them go on.', name)
    ],
    fields: [
      {
        name: 'expires',
        label: trans.__('The tokens expire'),
        hint: trans.__('A date, or a period from now such as 30d. Empty: never.'),
        value: '90d'
      }
    ],
    confirm: trans.__('Extend'),
    done: trans.__('The tokens of %1 are extended.', name),
    make: async (service, { expires: until = '' }) => {
      await service.token({ act: 'extend', name, expires: until || null });
    }
  });
}

function replace(actions: Actions, name: string): void {
  void actions.withToken({
    title: trans.__('New token for %1', name),
    what: [
      trans.__('The current token of %1 is revoked at once: notebooks and pages that use it are logged out.', name),
      trans.__('The new token is shown once. Send it to %1 as you would send a password.', name)
    ],
    confirm: trans.__('Revoke and make a new token'),
    done: trans.__('The token of %1 is replaced.', name),
    make: async (service, _values, made) => {
      made.push({ name, token: (await service.token({ act: 'replace', name })).token });
    }
  });
}

function revokeTokens(actions: Actions, name: string): void {
  void actions.withToken({
    title: trans.__('Revoke the tokens of %1', name),
    what: [trans.__('%1 is logged out at once, everywhere. A part of a budget stays as it is.', name)],
    confirm: trans.__('Revoke'),
    isSevere: true,
    done: trans.__('The tokens of %1 are revoked.', name),
    make: async service => {
      await service.token({ act: 'revoke', name });
    }
  });
}
