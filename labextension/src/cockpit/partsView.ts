import type { Actions } from './actions';
import { percentDown } from './amounts';
import { moveCap } from './caps';
import type { IField } from './dialog';
import { addAgain, addAnalyst, handOver, remove } from './people';
import { cellFor, heading } from './tableParts';
import { button, element, type IView, setText, Views } from '../dom/dom';
import { percent } from '../dom/format';
import { levelOf } from '../panel/gauge';
import type { IPartState, ITableState } from '../protocol/curation';
import { trans } from '../translation';

/** The projects and analysts of a table with what they may spend and have spent. */
export class PartsView implements IView<ITableState> {
  readonly node: HTMLElement;
  private readonly _body = element('tbody', '');
  private readonly _rows: Views<IPartState>;
  private readonly _table: HTMLTableElement;
  private readonly _empty = element(
    'p',
    'dpnb-quiet',
    trans.__('The budget is not divided: every analyst may use all of it.')
  );
  private readonly _add: HTMLButtonElement;
  private _state: ITableState | null = null;

  constructor(actions: Actions | null) {
    this._add = button('dpnb-button', trans.__('Add analyst…'), () => {
      if (this._state && actions) {
        addAnalyst(actions, this._state);
      }
    });
    const title = element('h2', 'dpnb-title', trans.__('Projects and analysts'));
    title.id = 'dpnb-parts-title';
    this._rows = new Views(this._body, () => partRow(actions, () => this._state?.name ?? ''));
    const headings = [trans.__('Name'), trans.__('May spend'), trans.__('Spent'), trans.__('Left')];
    const head = element('tr', '', ...[...headings, ...(actions ? [trans.__('Acts')] : [])].map(heading));
    const caption = element('caption', 'dpnb-visually-hidden', trans.__('Parts of the budget'));
    this._table = element('table', 'dpnb-parts-table', caption, element('thead', '', head), this._body);
    const top = element('div', 'dpnb-block-top', title, ...(actions ? [this._add] : []));
    this.node = element('section', 'dpnb-block', top, this._table, this._empty);
    this.node.setAttribute('aria-labelledby', title.id);
  }

  update(table: ITableState): void {
    const { parts } = table;
    this._state = table;
    this._add.hidden = table.mode === null;
    this._rows.update(parts);
    this._table.hidden = parts.length === 0;
    this._empty.hidden = parts.length > 0;
  }
}

function partRow(actions: Actions | null, table: () => string): IView<IPartState> {
  let part: IPartState | null = null;
  const name = element('span', 'dpnb-part-name dpnb-foreign');
  const level = element('span', 'dpnb-quiet');
  const who = element('th', 'dpnb-part-who', name, ' ', level);
  who.scope = 'row';
  const may = cellFor(trans.__('May spend'), 'dpnb-part-may');
  const spent = cellFor(trans.__('Spent'), 'dpnb-part-spent');
  const fill = element('div', 'dpnb-bar-fill');
  const left = element('span', 'dpnb-part-left');
  const leftCell = cellFor(trans.__('Left'), 'dpnb-part-headroom');
  leftCell.append(left, element('div', 'dpnb-bar', fill));
  const node = element('tr', 'dpnb-part', who, may, spent, leftCell);
  const move = button('dpnb-button', trans.__('Move cap…'), () => part && actions && moveCap(actions, table(), part));
  const revoke = button('dpnb-button', '', () => part && actions && revokeOrRestore(actions, table(), part));
  const hand = button('dpnb-button', trans.__('Hand over…'), () => part && actions && handOver(actions, table(), part));
  const leave = button('dpnb-button', trans.__('Remove…'), () => part && actions && remove(actions, table(), part));
  const back = button('dpnb-button', trans.__('Add again…'), () => part && actions && addAgain(actions, table(), part));
  if (actions) {
    node.append(element('td', 'dpnb-part-acts', move, revoke, hand, leave, back));
  }
  return {
    node,
    update: (new_): void => {
      part = new_;
      const { is_revoked: isRevoked, is_removed: isRemoved, headroom, project } = part;
      node.dataset.level = part.level;
      node.classList.toggle('dpnb-mod-revoked', isRevoked);
      fill.parentElement?.setAttribute('data-level', levelOf(headroom));
      fill.style.width = `${100 * headroom}%`;
      setText(name, part.name);
      const kind = part.level === 'project' ? trans.__('project') : project === null ? '' : trans.__('in %1', project);
      const ended = isRemoved ? trans.__('removed') : isRevoked ? trans.__('revoked') : '';
      setText(level, [kind, ended].filter(text => text !== '').join(' · '));
      const limits = [
        part.cap === null ? '' : trans.__('cap %1', part.cap.words),
        part.ceiling === null ? '' : trans.__('ceiling %1', part.ceiling.words)
      ].filter(text => text !== '');
      setText(may, limits.join('; ') || trans.__('up to the whole budget'));
      setText(spent, trans.__('%1 (%2)', percent(part.share), part.spent.words));
      setText(left, leftOf(part));
      const isAnalyst = part.level === 'analyst';
      hand.hidden = !part.is_unused;
      leave.hidden = !isAnalyst || isRemoved;
      back.hidden = !isAnalyst || !isRemoved;
      revoke.hidden = isRemoved && isAnalyst;
      hand.setAttribute('aria-label', trans.__('Hand over the part of %1', part.name));
      leave.setAttribute('aria-label', trans.__('Remove %1', part.name));
      back.setAttribute('aria-label', trans.__('Add %1 again', part.name));
      move.hidden = !part.has_cap || isRemoved;
      move.setAttribute('aria-label', trans.__('Move the cap of %1', part.name));
      setText(revoke, isRevoked ? trans.__('Restore…') : trans.__('Revoke…'));
      const label = isRevoked ? trans.__('Restore %1', part.name) : trans.__('Revoke %1', part.name);
      revoke.setAttribute('aria-label', label);
    }
  };
}

/** What is left, and of what; within all limits of the part. */
function leftOf({ ceiling, cap, headroom }: IPartState): string {
  const left = percentDown(headroom);
  return ceiling !== null
    ? trans.__('%1 of the ceiling', left)
    : cap !== null
      ? trans.__('%1 of the cap', left)
      : trans.__('%1 of the budget', left);
}

function revokeOrRestore(actions: Actions, table: string, part: IPartState): void {
  if (part.is_revoked) {
    restore(actions, table, part);
  } else {
    revoke(actions, table, part);
  }
}

function restore(actions: Actions, table: string, { level, name }: IPartState): void {
  void actions.table(table, {
    title: trans.__('Restore %1', name),
    what: [
      trans.__('%1 can be charged again, within the cap and what is left.', name),
      trans.__('It is written into the ledger with your name.')
    ],
    confirm: trans.__('Restore'),
    act: () => ({ act: 'restore', level, name }),
    done: trans.__('%1 is restored.', name)
  });
}

/** Revoke a part, or only the tokens of its analyst. */
function revoke(actions: Actions, table: string, { level, name }: IPartState): void {
  const hasTokens = level === 'analyst' && actions.revocable.has(name);
  const what: IField = {
    name: 'what',
    label: trans.__('What'),
    choices: [
      ['part', trans.__('the part: nothing more is charged')],
      ['tokens', trans.__('the tokens alone: logged out everywhere')]
    ],
    hint: trans.__('The part is revoked in the ledger, with your name; the tokens in the log of the service.')
  };
  void actions.withToken({
    title: trans.__('Revoke %1', name),
    what: [
      trans.__('%1 can be charged nothing more. Answers that are recorded stay free.', name),
      hasTokens
        ? trans.__('Without the tokens the part stays as it is, and a new token opens it again.')
        : trans.__('It is written into the ledger with your name.')
    ],
    fields: hasTokens ? [what] : [],
    confirm: trans.__('Revoke'),
    isSevere: true,
    done: trans.__('Revoked: %1.', name),
    make: async (service, { what: chosen }) => {
      if (chosen === 'tokens') {
        await service.token({ act: 'revoke', name });
      } else {
        await service.act(table, { act: 'revoke', level, name });
      }
    }
  });
}
