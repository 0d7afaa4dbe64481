// Generated from dpnb/_protocol/cockpit.py by .ci/protocol.py: edit that file.

import { isBoolean, isFields, isText, listOf, orNull } from './guards';
import { type ITableState, isTableState } from './curation';

/** The answer to a login. */
export interface ILogin {
  /** What the page sends with every further request, beside the cookie. */
  csrf: string;
  /** Name of the person. */
  name: string;
  /** "owner", "curator" or "auditor". */
  role: string;
  /** When the login ends; ISO 8601, UTC. */
  ends: string;
}

/** A person with a valid token. */
export interface ITokenHolder {
  name: string;
  role: string;
  /** When the token was made. */
  created: string;
  expires: string | null;
  /** Whether the reader may replace it. */
  may_rotate: boolean;
}

/** Everything that the page shows but the log. */
export interface IServiceState {
  /** ISO 8601, UTC. */
  time: string;
  /** Of the reader. */
  name: string;
  /** Of the reader. */
  role: string;
  /** Whether the reader may do more than read. */
  may_act: boolean;
  tables: ITableState[];
  /** Empty for an auditor. */
  tokens: ITokenHolder[];
}

/** What there is after an act about an analyst of a table. */
export interface IPeopleChanged {
  table: ITableState;
  /** A new token of the person who came, which is not shown again; null if none was made. */
  token: string | null;
}

/** A token, which is not shown again. */
export interface INewToken {
  name: string;
  /** Empty if none was made. */
  token: string;
}

export const isLogin = (value: unknown): value is ILogin =>
  isFields(value) && isText(value.csrf) && isText(value.name) && isText(value.role) && isText(value.ends);

export const isTokenHolder = (value: unknown): value is ITokenHolder =>
  isFields(value) &&
  isText(value.name) &&
  isText(value.role) &&
  isText(value.created) &&
  orNull(isText)(value.expires) &&
  isBoolean(value.may_rotate);

export const isServiceState = (value: unknown): value is IServiceState =>
  isFields(value) &&
  isText(value.time) &&
  isText(value.name) &&
  isText(value.role) &&
  isBoolean(value.may_act) &&
  listOf(isTableState)(value.tables) &&
  listOf(isTokenHolder)(value.tokens);

export const isPeopleChanged = (value: unknown): value is IPeopleChanged =>
  isFields(value) && isTableState(value.table) && orNull(isText)(value.token);

export const isNewToken = (value: unknown): value is INewToken =>
  isFields(value) && isText(value.name) && isText(value.token);
