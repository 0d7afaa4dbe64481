// Generated from dpnb/_protocol/timeline.py by .ci/protocol.py: edit that file.

import { isCount, isFields, isNumber, isProportion, isText, listOf, orNull } from './guards';

/** The part of a timeline that shows the budget. */
export interface IBudgetAxis {
  label: string;
  /** More about it in words; may be empty. */
  text: string;
}

/** The part of a timeline that shows the odometers. */
export interface IOdometerAxis {
  label: string;
  /** The value at which the scale ends, unless a curve exceeds it; null where the curves alone determine the scale. */
  end: number | null;
  /** What the scale and the curves mean. */
  text: string;
}

/** One odometer of a timeline. */
export interface ICurve {
  /** Stable name, unique within a timeline. */
  id: string;
  label: string;
}

/** The state of a session at one moment. */
export interface ITimelinePoint {
  /** Number of the last request before this moment; 0 is before the first request. */
  id: number;
  /** Fraction of the budget that was spent; null without a budget, for all points. */
  spent: number | null;
  /** What each curve reported, in the order of the curves; null where it reported nothing. */
  bounds: (number | null)[];
  /** The request in words. */
  text: string;
}

/** The budget and the odometers from request to request; thinned by the kernel, so not every request has a point. */
export interface ITimelineChart {
  budget: IBudgetAxis;
  odometers: IOdometerAxis;
  curves: ICurve[];
  /** Oldest first; each has one bound for every curve. */
  points: ITimelinePoint[];
}

export const isBudgetAxis = (value: unknown): value is IBudgetAxis =>
  isFields(value) && isText(value.label) && isText(value.text);

export const isOdometerAxis = (value: unknown): value is IOdometerAxis =>
  isFields(value) && isText(value.label) && orNull(isNumber)(value.end) && isText(value.text);

export const isCurve = (value: unknown): value is ICurve => isFields(value) && isText(value.id) && isText(value.label);

export const isTimelinePoint = (value: unknown): value is ITimelinePoint =>
  isFields(value) &&
  isCount(value.id) &&
  orNull(isProportion)(value.spent) &&
  listOf(orNull(isNumber))(value.bounds) &&
  isText(value.text);

export const isTimelineChart = (value: unknown): value is ITimelineChart =>
  isFields(value) &&
  isBudgetAxis(value.budget) &&
  isOdometerAxis(value.odometers) &&
  listOf(isCurve)(value.curves) &&
  listOf(isTimelinePoint)(value.points);
