/** Small questions about values that came from elsewhere and may be anything. */

export type Fields = Record<string, unknown>;

export const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const isText = (value: unknown): value is string => typeof value === 'string';

export const isTextOrNull = (value: unknown): value is string | null => value === null || isText(value);

export const haveText = (fields: Fields, ...names: string[]): boolean => names.every(name => isText(fields[name]));

export const haveTextOrNull = (fields: Fields, ...names: string[]): boolean =>
  names.every(name => isTextOrNull(fields[name]));

export const isNumber = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value);

export const isNumberOrNull = (value: unknown): value is number | null => value === null || isNumber(value);

/** Whether it can count things, or number them. */
export const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

/** Whether it is a part of a whole. */
export const isShare = (value: unknown): value is number => isNumber(value) && value >= 0 && value <= 1;

export function isListOf<T>(value: unknown, isItem: (item: unknown) => item is T): value is T[] {
  return Array.isArray(value) && value.every(isItem);
}
