import type { IField } from './dialog';
import type { IAmount } from '../protocol/curation';
import { trans } from '../translation';

/** An amount as an act names it: the components, without words. */
export type Components = Omit<IAmount, 'words'>;

/**
 * The fields of a dialog for an amount of budget.
 *
 * @param isPart Whether a part of the amount is asked for: then without the components that it does not have.
 */
export function amountFields(amount: IAmount, isPart = false): IField[] {
  const fields = [
    { name: 'mu', label: trans.__('mu'), value: amount.mu ?? '', hint: trans.__('For numbers; squares of mu add up.') },
    {
      name: 'discovery_delta',
      label: trans.__('Delta of discovered groups'),
      value: amount.discovery_delta ?? '',
      hint: trans.__('Empty: none.')
    },
    {
      name: 'pure_epsilon',
      label: trans.__('Epsilon of scans and selections'),
      value: amount.pure_epsilon ?? '',
      hint: trans.__('Empty: none.')
    }
  ];
  return isPart ? fields.filter(({ value }) => value !== '') : fields;
}

/** The amount that a reader has written; the service checks it. */
export function amountOf(values: Record<string, string>): Components {
  const read = (name: string): string | null => (values[name] ?? '') || null;
  return { mu: read('mu'), discovery_delta: read('discovery_delta'), pure_epsilon: read('pure_epsilon') };
}

/** What is left is never shown larger than it is. */
export const percentDown = (share: number): string =>
  `${(Math.floor(Number((1000 * share).toPrecision(12))) / 10).toFixed(1)}%`;

/** A share as a reader writes a percentage; the service has rounded it. */
export const percentOf = (share: number): string => String(Number((100 * share).toPrecision(12)));

/** A percentage that a reader has written, as exactly that share. */
export function shareOf(percent: string): string {
  const digits = /^(\d+(?:[.,]\d+)?)\s*%?$/.exec(percent)?.[1]?.replace(',', '.') ?? '0';
  if (!(Number(digits) > 0 && Number(digits) <= 100)) {
    throw new Error(trans.__('The percentage must be a number above 0 and at most 100, such as 12.5.'));
  }
  return `${digits}e-2`;
}
