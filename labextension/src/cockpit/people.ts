import type { Actions } from './actions';
import { percentDown, shareOf } from './amounts';
import type { IField } from './dialog';
import type { IPartState, ITableState } from '../protocol/curation';
import { trans } from '../translation';

const RECORDED = (): string => trans.__('The act is written into the ledger with your name.');

const TOKEN_SHOWN = (): string =>
  trans.__('A person without a token gets one, which is shown once: send it as you would send a password.');

const expiresField = (): IField => ({
  name: 'expires',
  label: trans.__('The token expires'),
  hint: trans.__('A date, or a period such as 30d or 8w. Empty: never.')
});

/** Give a person a part of the budget. */
export function addAnalyst(actions: Actions, { name: table, mode, free, parts }: ITableState): void {
  const isReserved = mode === 'reserved';
  const projects = parts.filter(({ level, is_removed: isRemoved }) => level === 'project' && !isRemoved);
  const sources = [{ name: '', free }, ...projects];
  const labels = sources.map(({ name, free: left }): [string, string] => {
    const whole = name === '' ? trans.__('none') : name;
    return [name, left === null ? whole : trans.__('%1 · %2 of it left', whole, percentDown(left))];
  });
  const chosen = sources.find(({ free: left }) => (left ?? 0) > 0) ?? sources[0];
  const share: IField = {
    name: 'share',
    label: isReserved ? trans.__('Ceiling, in percent') : trans.__('Cap, in percent'),
    hint: isReserved
      ? trans.__(
          'Of the budget, or of the project; of several people together. Of the budget, %1 is left.',
          percentDown(free ?? 0)
        )
      : trans.__('Of the budget, or of the cap of the project; of several people together. Empty: no cap.'),
    value: isReserved && chosen?.free ? percentDown(chosen.free).replace('%', '') : '',
    isRequired: isReserved
  };
  const project: IField = { name: 'project', label: trans.__('Project'), choices: labels, value: chosen?.name ?? '' };
  void actions.withToken({
    title: trans.__('Add an analyst to %1', table),
    what: [
      isReserved
        ? trans.__('The person can then be charged up to the ceiling, which is fixed and is kept for them.')
        : trans.__(
            'The person can then be charged within the cap and what is left of the budget, and sees all answers.'
          ),
      TOKEN_SHOWN(),
      RECORDED()
    ],
    fields: [
      {
        name: 'name',
        label: trans.__('Name'),
        hint: trans.__('Letters, digits, . _ @ and -. Several people, separated by commas, get equal parts.'),
        isRequired: true
      },
      ...(projects.length > 0 ? [project] : []),
      share,
      expiresField()
    ],
    confirm: trans.__('Add'),
    done: trans.__('The analyst is added.'),
    make: async (service, { name: names = '', project: of = '', share: percent = '', expires = '' }, made) => {
      const people = [...new Set(names.split(',').map(name => name.trim()))].filter(name => name !== '');
      const amount = percent === '' ? null : { share: partOf(percent, people.length) };
      for (const name of people.filter(one => !made.some(known => known.name === one))) {
        const act = { act: 'add_analyst' as const, name, project: of || null, amount, expires: expires || null };
        made.push({ name, token: (await service.person(table, act)).token ?? '' });
      }
    }
  });
}

/** The share of each of several people, rounded down so that all together are within the percentage. */
function partOf(percent: string, people: number): string {
  const share = shareOf(percent);
  return people === 1 ? share : String(Math.floor((1e9 * Number(share)) / people) / 1e9);
}

/** Let a removed analyst back to their own part. */
export function addAgain(actions: Actions, table: string, { name }: IPartState): void {
  void actions.withToken({
    title: trans.__('Add %1 again', name),
    what: [
      trans.__(
        '%1 can be charged again, in the part from which they were removed: what was charged stays charged.',
        name
      ),
      TOKEN_SHOWN(),
      RECORDED()
    ],
    fields: [expiresField()],
    confirm: trans.__('Add again'),
    done: trans.__('%1 is added again.', name),
    make: async (service, { expires = '' }, made) => {
      const act = { act: 'add_analyst' as const, name, project: null, amount: null, expires: expires || null };
      made.push({ name, token: (await service.person(table, act)).token ?? '' });
    }
  });
}

/** End all access of an analyst to a table. */
export function remove(actions: Actions, table: string, { name }: IPartState): void {
  void actions.withToken({
    title: trans.__('Remove %1', name),
    what: [
      trans.__(
        '%1 can be charged nothing more and can no longer open the table. What was charged stays charged.',
        name
      ),
      trans.__('The tokens of %1 are revoked, unless another table of the service is open to them.', name),
      RECORDED()
    ],
    confirm: trans.__('Remove'),
    isSevere: true,
    done: trans.__('%1 is removed.', name),
    make: async service => {
      await service.person(table, { act: 'remove_analyst', name });
    }
  });
}

/** Give an unused part to another person. */
export function handOver(actions: Actions, table: string, { name, ceiling }: IPartState): void {
  void actions.withToken({
    title: trans.__('Hand over the part of %1', name),
    what: [
      trans.__(
        'Another person gets the ceiling of %1, %2, of which nothing was charged. %1 can no longer open the table, and loses the tokens unless another table of the service is open to them.',
        name,
        ceiling?.words ?? ''
      ),
      trans.__(
        'The new holder learns that %1 was answered nothing. Decide about it with nothing in mind that other analysts asked or were told.',
        name
      ),
      TOKEN_SHOWN(),
      RECORDED()
    ],
    fields: [
      {
        name: 'to',
        label: trans.__('To'),
        hint: trans.__('The name of a person who has no part yet.'),
        isRequired: true
      },
      expiresField()
    ],
    confirm: trans.__('Hand over'),
    isSevere: true,
    done: trans.__('The part of %1 is handed over.', name),
    make: async (service, { to = '', expires = '' }, made) => {
      const act = { act: 'hand_over' as const, name, to, expires: expires || null };
      made.push({ name: to, token: (await service.person(table, act)).token ?? '' });
    }
  });
}
