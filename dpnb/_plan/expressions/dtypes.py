"""The types of expressions, with their bounds or public values."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import NoReturn, TypeVar

from dpnb._plan.expressions.nodes import Expression, Literal
from dpnb._plan.expressions.text import iso_text, words
from dpnb.errors import PlanError, SchemaError
from dpnb.schema import (
    ALLOWED_MAGNITUDES,
    MIN_RELATIVE_RANGE,
    Bounded,
    Categories,
    ColumnType,
    Dates,
    Key,
    Text,
    has_allowed_magnitude,
)
from dpnb.times import EPOCH, UTC_ZONE, Zone, constant_text, iso_time, seconds_of, time_text

OPEN_END = sys.float_info.max
"""The edge of a cut that represents infinity."""


@dataclass(frozen=True)
class Numeric:
    """A number in ``[low, high]``; `whole` if it has no fraction.

    A whole number is a multiple of `step` above `low`, and so is `high`.
    """

    low: float
    high: float
    whole: bool = False
    step: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", float(self.low))
        object.__setattr__(self, "high", float(self.high))

    @property
    def magnitude(self) -> float:
        """Largest absolute value."""
        return max(abs(self.low), abs(self.high))

    @property
    def distance(self) -> int:
        """What every difference of two values is a multiple of: the step, and 0 of a constant."""
        return 0 if self.low == self.high else self.step

    @classmethod
    def among(cls, low: float, high: float, whole: bool, *distances: float) -> Numeric:
        """A number in ``[low, high]``; if it is whole, every difference of two values is made up of these distances."""
        is_known = whole and all(map(math.isfinite, distances))
        return cls(low, high, whole, math.gcd(*map(int, distances)) or 1 if is_known else 1)


@dataclass(frozen=True)
class Categorical:
    """One of a public list of values."""

    values: tuple[Key, ...]

    @property
    def numeric(self) -> bool:
        """Whether every category is a number, so that categories have an order."""
        return all(isinstance(value, int | float) and not isinstance(value, bool) for value in self.values)


@dataclass(frozen=True)
class String:
    """A text whose values are not public; `max_length` is the largest length that counts."""

    max_length: int | None = None


@dataclass(frozen=True)
class Boolean:
    """True, false, or neither."""


@dataclass(frozen=True)
class Timestamp:
    """A point in time, in seconds since 1970; its parts are those of the local time of its zone, None for UTC."""

    low: float
    high: float
    zone: Zone | None = None

    @property
    def zone_name(self) -> str:
        """The name of its zone."""
        return UTC_ZONE if self.zone is None else self.zone.name

    @property
    def local(self) -> tuple[float, float]:
        """The first and the last local time, in seconds since 1970."""
        return (self.low, self.high) if self.zone is None else self.zone.local_range(self.low, self.high)


@dataclass(frozen=True)
class Duration:
    """A difference of two points in time, in seconds."""

    low: float
    high: float


Dtype = Numeric | Categorical | String | Boolean | Timestamp | Duration
K = TypeVar("K", Numeric, Boolean, String)


def literal_kind(value: Key) -> Dtype:
    """The type of a constant: a number must be 0 or between `MIN_MAGNITUDE` and `MAX_MAGNITUDE` in absolute value."""
    if isinstance(value, bool):
        return Boolean()
    if isinstance(value, str):
        return Categorical((value,))
    if not has_allowed_magnitude(value):
        raise PlanError(
            f"{value!r}: a number in a query must be {ALLOWED_MAGNITUDES}; rows without a number never count"
        )
    return Numeric(float(value), float(value), whole=float(value).is_integer())


def date_literal(node: Expression, literal: Literal, kind: Timestamp | None = None) -> Timestamp:
    """A constant that is used with dates of type `kind`; raises `PlanError` if it is not a date.

    Without a distance from UTC it is in UTC.  Where the dates have another zone it must have one, as it has if
    `as_constant` made it.
    """
    try:
        text = time_text(literal.value, words(node))
        seconds = seconds_of(iso_time(text, words(node)))
    except SchemaError as error:
        raise PlanError(str(error)) from None
    zone = None if kind is None else kind.zone
    if zone is None or kind is None:
        return Timestamp(seconds, seconds)
    if not text.endswith("Z"):
        refuse(node, f"a date that is used with dates in {zone.name} states its distance from UTC; got {text!r}")
    if kind.low <= seconds <= kind.high:
        return Timestamp(seconds, seconds, zone)
    # Beyond the dates that the table is for, its distance from UTC is the one that the constant states.
    ahead = datetime.fromisoformat(str(literal.value)).utcoffset() or timedelta()
    own = Zone(zone.name, ((math.floor(seconds), ahead // timedelta(seconds=1)),))
    return Timestamp(seconds, seconds, own)


def utc_literal(seconds: float) -> Literal:
    """A point in time in seconds since 1970 as a constant."""
    return Literal(f"{(EPOCH + timedelta(seconds=seconds)).isoformat()}Z")


def as_constant(node: Expression, kind: Timestamp, text: str) -> str:
    """A date or time as a constant of dates of type `kind`; without a distance from UTC it is local time of theirs."""
    try:
        return constant_text(time_text(text, words(node)), kind.zone, (kind.low, kind.high), words(node))
    except SchemaError as error:
        raise PlanError(str(error)) from None


def of_zone(node: Expression, kind: Timestamp, zone: str) -> None:
    """Refuse a node that states another zone than that of its dates: the words of a query say which one it is."""
    if zone != kind.zone_name:
        refuse(node, f"is in local time of {zone!r}, and its dates are in {kind.zone_name!r}")


def number_of(value: Key, kind: Dtype) -> float:
    """A constant as a number; a date in seconds."""
    if isinstance(value, str) and isinstance(kind, Timestamp | Duration):
        return seconds_of(iso_time(value, "date"))
    return float(value)


def needs(wanted: type[K], node: Expression, kind: Dtype, rule: str) -> K:
    """The type of an argument, checked to be the required one."""
    if not isinstance(kind, wanted):
        refuse(node, f"{rule}; this is {described(kind)}")
    return kind


def described(kind: Dtype) -> str:
    """A type in words."""
    return {
        Numeric: "a number",
        Categorical: "a category",
        String: "a text",
        Boolean: "a condition",
        Timestamp: "a date",
        Duration: "a duration",
    }[type(kind)]


def refuse(node: Expression, fault: str) -> NoReturn:
    """Refuse an expression."""
    raise PlanError(f"{words(node)}: {fault}")


# --- expressions as columns -------------------------------------------------------------------------------------------


def declared_dtype(column: ColumnType) -> Dtype:
    """The type of a declared column."""
    match column:
        case Bounded(low, high, integer):
            return Numeric(low, high, integer)
        case Categories(values):
            return Categorical(values)
        case Dates():
            return _timestamp(column)
        case Text(max_length):
            return String(max_length)


@lru_cache(maxsize=256)
def _timestamp(dates: Dates) -> Timestamp:
    """The type of a column of dates; to read its bounds takes longer than all else that most expressions need."""
    return Timestamp(dates.low, dates.high, dates.clock)


def as_column(node: Expression, kind: Dtype) -> ColumnType:
    """The declaration of a column with the values of an expression; its bounds contain those of the expression."""
    match kind:
        case Numeric():
            return _bounded(kind)
        case Categorical(values):
            return Categories(values)
        case Boolean():
            return Categories((False, True))
        case Timestamp(low, high, zone):
            if zone is None:
                return Dates(iso_text(low), iso_text(high))
            return Dates(utc_literal(low).value, utc_literal(high).value, zone=zone.name, offsets=zone.offsets)  # type: ignore[arg-type]
        case String(max_length):
            return Text(max_length)
    refuse(node, "a duration cannot be a column of a unit's rows; use its days, as in .dt.days")


def _bounded(kind: Numeric) -> Bounded:
    low, high = (math.floor(kind.low), math.ceil(kind.high)) if kind.whole else (kind.low, kind.high)
    if low == high or high / 2 - low / 2 < MIN_RELATIVE_RANGE * kind.magnitude / 2:  # no declared column is constant
        high = low + max(1.0, math.ceil(2 * MIN_RELATIVE_RANGE * kind.magnitude))
    return Bounded(low, high, kind.whole)
