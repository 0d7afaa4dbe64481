import type { Actions } from './actions';
import type { Act } from './acts';
import { amountFields, amountOf, type Components, percentOf, shareOf } from './amounts';
import type { IField } from './dialog';
import type { IAmount, IPartState } from '../protocol/curation';
import { trans } from '../translation';

/** Ask for another cap: in percent, in exact amounts, or none. */
export function moveCap(actions: Actions, table: string, part: IPartState): void {
  const { name } = part;
  const fields = fieldsOf(part);
  void actions.table(table, {
    title: trans.__('Move the cap of %1', name),
    what: [
      trans.__('From now on %1 can be charged at most this amount in total, within %2.', name, outerOf(part)),
      trans.__('What was charged stays charged. Earlier approvals of requests end.')
    ],
    fields,
    confirm: trans.__('Move the cap'),
    act: values => {
      const { kind } = values;
      const isAsItIs = fields.every(({ name: of, value, when }) => when?.[1] !== kind || values[of] === value);
      if (isAsItIs && (part.cap === null) === (kind === 'none')) {
        throw new Error(trans.__('This is the cap as it is. Write another one, or cancel.')); // rounded, so not sent
      }
      return actOf(part, values);
    },
    done: trans.__('The cap of %1 is moved.', name)
  });
}

/** What limits the part beside its cap. */
function outerOf({ ceiling, project }: IPartState): string {
  if (ceiling !== null) {
    return trans.__('the ceiling %1', ceiling.words);
  }
  return project === null ? trans.__('the budget') : trans.__('the limits of %1', project);
}

function fieldsOf(part: IPartState): IField[] {
  const { cap, cap_share: share, limit, of, spent, spent_share: spentShare } = part;
  const kind: IField = {
    name: 'kind',
    label: trans.__('Cap'),
    choices: [
      ['percent', trans.__('In percent')],
      ['exact', trans.__('In exact amounts')],
      ['none', trans.__('No cap but %1', outerOf(part))]
    ],
    value: cap === null ? 'none' : share === null ? 'exact' : 'percent'
  };
  const percent: IField = {
    name: 'percent',
    label: trans.__('Percent'),
    value: share !== null ? percentOf(share) : cap === null ? '100' : '',
    hint: trans.__(
      'Of %1: of the square of mu, and of each other component. Spent so far: %2% (%3).',
      of.words,
      percentOf(spentShare),
      spent.words
    ),
    isRequired: true,
    when: ['kind', 'percent']
  };
  const exact = amountFields(limit).map((field): IField => ({ ...field, when: ['kind', 'exact'] }));
  return [kind, percent, ...exact];
}

function actOf(part: IPartState, values: Record<string, string>): Act {
  const { level, name, spent, spent_share: spentShare } = part;
  const act = { act: 'move_cap' as const, level, name };
  if (values.kind === 'none') {
    return { ...act, cap: null };
  }
  const wanted = values.kind === 'percent' ? { share: shareOf(values.percent ?? '') } : amountOf(values);
  const isBelow = 'share' in wanted ? Number(wanted.share) < spentShare : isLess(wanted, spent);
  if (isBelow) {
    throw new Error(
      trans.__(
        'At least what is spent: %1% (%2). To refuse further charges, revoke.',
        percentOf(spentShare),
        spent.words
      )
    );
  }
  return { ...act, cap: wanted };
}

/** Whether a component is less than what is spent, which is rounded up: by more than a rounding. */
const isLess = (wanted: Components, spent: IAmount): boolean =>
  (['mu', 'discovery_delta', 'pure_epsilon'] as const).some(
    name => Number(wanted[name] ?? '0') < (1 - 1e-9) * Number(spent[name] ?? '0')
  );
