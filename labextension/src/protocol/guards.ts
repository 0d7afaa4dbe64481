/** Type guards for values of unknown origin; the guards of the protocol are generated from these. */

export type Guard<T> = (value: unknown) => value is T;

export type Fields = Record<string, unknown>;

export const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const isText = (value: unknown): value is string => typeof value === 'string';

export const isBoolean = (value: unknown): value is boolean => typeof value === 'boolean';

export const isNumber = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value);

/** Whether a value is a non-negative integer. */
export const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

/** Whether a value is a number from 0 to 1. */
export const isProportion = (value: unknown): value is number => isNumber(value) && value >= 0 && value <= 1;

export const oneOf =
  <T extends string | number>(...known: T[]): Guard<T> =>
  (value): value is T =>
    (known as unknown[]).includes(value);

export const orNull =
  <T>(isValue: Guard<T>): Guard<T | null> =>
  (value): value is T | null =>
    value === null || isValue(value);

export const listOf =
  <T>(isItem: Guard<T>): Guard<T[]> =>
  (value): value is T[] =>
    Array.isArray(value) && value.every(isItem);

export const mapOf =
  <T>(isItem: Guard<T>): Guard<Record<string, T>> =>
  (value): value is Record<string, T> =>
    isFields(value) && Object.values(value).every(isItem);
