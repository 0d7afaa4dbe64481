// Generated from dpnb/_protocol/connection.py by .ci/protocol.py: edit that file.

import { isBoolean, isFields, isText } from './guards';

export const OUT_OF_DATE = 'out-of-date';

/** The connection of a session to the service that has its table. */
export interface IConnectionSnapshot {
  /** Where the table is, in words, for example "on the curator's server, https://dp.example.org". */
  where: string;
  /** Whether the figures of the session include everything that the service has charged, as far as is known. */
  is_current: boolean;
  /** The state in words: "up to date", or since when and why it is not, and what happens next. */
  text: string;
}

export const isConnectionSnapshot = (value: unknown): value is IConnectionSnapshot =>
  isFields(value) && isText(value.where) && isBoolean(value.is_current) && isText(value.text);
