import { isFields } from './guards';
import { type ILogChunk, isLogChunk } from './messages';
import * as shape from './snapshot';
import type { ITimelineChart } from './snapshot';

/** Whether a value received from a kernel is a session that can be shown. */
export const isSessionSnapshot = (value: unknown): value is shape.ISessionSnapshot =>
  shape.isSessionSnapshot(value) && isDrawable(value.timeline);

/** Whether a value received from a kernel is a snapshot that can be shown. */
export const isSnapshot = (value: unknown): value is shape.ISnapshot =>
  shape.isSnapshot(value) && value.sessions.every(session => isDrawable(session.timeline));

/** Whether every point has one bound for each curve: otherwise one curve would be drawn as another. */
const isDrawable = ({ curves, points }: ITimelineChart): boolean =>
  points.every(point => point.bounds.length === curves.length);

/**
 * The snapshot inside the data of a comm message.
 *
 * @returns null if the message is not from dpnb; "unreadable" if it is but does not follow the protocol, since a budget
 * must not be shown in part.
 */
export function readSnapshot(data: unknown): shape.ISnapshot | 'unreadable' | null {
  if (!isFields(data) || data.dpnb === undefined) {
    return null;
  }
  return isSnapshot(data.dpnb) ? data.dpnb : 'unreadable';
}

/** The part of a log inside the data of a comm message; null if there is none that follows the protocol. */
export function readLogChunk(data: unknown): ILogChunk | null {
  const chunk: unknown = isFields(data) ? data.dpnb_log : undefined;
  return isLogChunk(chunk) ? chunk : null;
}
