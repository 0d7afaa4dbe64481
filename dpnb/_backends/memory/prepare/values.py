"""Conversion of a column to numbers or codes, value by value, whatever the type of the column.  Reads rows.

The result for a value must not depend on the other values of its column, and libraries choose a column's type by all of
its values.  So a value that can occur in columns of several types is first converted to one form.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpnb._backends.memory.blocks import by_blocks, even_blocks
from dpnb._backends.memory.prepare.columns import Instants, Values, by_value, value_of
from dpnb._plan.constants import TRUTH, CategoryValues, values_of
from dpnb._plan.expressions.periods import to_instants
from dpnb.schema import MAX_EXACT_INTEGER, Bounded, Categories, Dates, encodable, text_of
from dpnb.times import Zone, seconds_of, time_text, utc_text

# --- points in time and durations of any library ----------------------------------------------------------------------


TIMES = (np.datetime64, np.timedelta64, date, timedelta)
"""Types of dates, times and durations, of which those of pandas are subclasses."""


def time_name(value: Any) -> str | None:
    """The name of a unit whose value in the unit column is a point in time or a duration; None if it is missing."""
    try:
        whole = microseconds(value)
        return None if whole is None else f"{'span' if is_duration(value) else 'moment'} {whole}"
    except Exception:  # noqa: BLE001  (an unusual date that cannot be converted: the row has no unit)
        return None


def is_duration(value: Any) -> bool:
    """Whether a time is a duration, not a point in time."""
    return isinstance(value, np.timedelta64 | timedelta)


def microseconds(value: Any) -> int | None:
    """A point in time (since 1970, in UTC) or a duration in microseconds; None if it is missing."""
    import pandas as pd  # imported when first used

    if is_duration(value):
        span = np.timedelta64(value).astype("timedelta64[us]") if isinstance(value, np.timedelta64) else value
        whole = span.astype(np.int64) if isinstance(span, np.timedelta64) else span // timedelta(microseconds=1)
        return None if pd.isna(value) else int(whole)
    if pd.isna(value):
        return None
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    moment = value.to_datetime64() if isinstance(value, pd.Timestamp) else np.datetime64(value)
    return int(moment.astype("datetime64[us]").astype(np.int64))


# --- conversion of a column to numbers or codes -----------------------------------------------------------------------


Codes = NDArray[np.signedinteger[Any]]
"""Indices in a list, -1 for a value that is not in it."""

MAX_TABLE_RANGE = 2**16
"""Largest range of whole numbers that are looked up in a table."""

MAX_DAYS = 2**63 // (86_400 * 10**6)
"""Largest number of days whose microseconds fit 64 bits."""


class _Cache(dict[Any, int]):
    """The result of a function for each value, computed once."""

    def __init__(self, work: Callable[[Any], int]) -> None:
        super().__init__()
        self._work = work

    def __missing__(self, value: Any) -> int:
        result = self[value] = self._work(value)
        return result


TEXT_TYPES = {str, float, type(None)}
"""Types of texts and nulls; equal values of these have one type, so that results can be cached by value."""


def each(values: NDArray[Any], work: Callable[[Any], int], kind: np.dtype[Any]) -> NDArray[Any]:
    """The result of a function for each value; in a column of texts it is computed once for each text."""
    values = values.astype(object, copy=False)
    cached = _Cache(work).__getitem__ if set(map(type, values)) <= TEXT_TYPES else work
    return np.fromiter(map(cached, values), kind, len(values))


def floats(values: NDArray[Any]) -> NDArray[np.float64]:
    """Finite numbers; NaN for any other value.

    A complex number without an imaginary part counts as its real part; other complex numbers do not count.  Texts count
    as the numbers or truth values that they write, since a library may have left them texts because of another row.
    """
    if values.dtype.kind in "biuf":
        numbers = values.astype(np.float64, copy=False)
    elif values.dtype.kind in "OUSc":
        numbers = np.fromiter((_float(value) for value in values.astype(object)), np.float64, len(values))
    else:  # dates, durations, records: not numbers
        numbers = np.full(len(values), np.nan)
    finite = np.isfinite(numbers)
    return numbers if finite.all() else np.where(finite, numbers, np.nan)


def _float(value: Any) -> float:
    try:
        value = value_of(value)
        return math.nan if isinstance(value, TIMES) else float(TRUTH.get(value, value) if type(value) is str else value)
    except Exception:  # noqa: BLE001  (row evaluation is total: a value that is not a number does not count)
        return math.nan


def seconds(values: NDArray[Any], zone: Zone | None = None) -> NDArray[np.float64]:
    """Points in time in seconds since 1970; NaN for any other value.

    A value without a zone of its own is local time of `zone`, None for UTC.
    """
    if values.dtype.kind == "M":
        days = values.astype("datetime64[D]").astype(np.int64)
        in_range = (days > -MAX_DAYS) & (days < MAX_DAYS)  # excludes NaT; beyond, numpy overflows silently
        micros = values.astype("datetime64[us]").astype(np.int64)
        if zone is not None and not isinstance(values, Instants):
            micros = to_instants(micros, zone)
        return np.where(in_range, micros / 1e6, np.nan)
    if values.dtype.kind in "OUS":
        return np.fromiter((_second(value, zone) for value in values), np.float64, len(values))
    return np.full(len(values), np.nan)


def _second(value: Any, zone: Zone | None) -> float:
    try:
        if isinstance(value, str):
            return seconds_of(utc_text(time_text(value, ""), zone))
        micros = None if not isinstance(value, TIMES) or is_duration(value) else microseconds(value)
        if micros is None:
            return math.nan
        if zone is not None and getattr(value, "tzinfo", None) is None:
            micros = int(to_instants(np.array([micros]), zone)[0])
        return micros / 1e6
    except Exception:  # noqa: BLE001  (row evaluation is total: a value that is not a date does not count)
        return math.nan


def reader_of(column: Bounded | Dates) -> Callable[[NDArray[Any]], NDArray[np.float64]]:
    """What reads the values of a column as numbers, or dates in seconds, before they are clamped."""
    return partial(seconds, zone=column.clock) if isinstance(column, Dates) else floats


def texts(values: Values) -> tuple[Codes, dict[str, int]]:
    """The code of each row's text, -1 for a value that is not a text; and the code of each text of the column."""
    code_of: dict[str, int] = {}

    def work(values: NDArray[Any]) -> Codes:
        if values.dtype.kind in "Mm":
            return np.full(len(values), -1, np.int8)
        codes = each(values, lambda value: _text_code(value, code_of), np.dtype(np.int32))
        return codes.astype(_code_dtype(len(code_of)), copy=False)

    return by_value(work, values), code_of


def _code_dtype(size: int) -> np.dtype[Any]:
    """The smallest integer type for the codes of a list of some size, -1, and 1 more than the codes."""
    return np.min_scalar_type(-size - 1)


def _text_code(value: Any, code_of: dict[str, int]) -> int:
    try:
        text = None if isinstance(value, TIMES) else text_of(value_of(value))
        # A text that cannot be encoded could not be written to a ledger, so it does not count.
        return -1 if text is None or not encodable(text) else code_of.setdefault(text, len(code_of))
    except Exception:  # noqa: BLE001  (an unusual object that cannot be converted does not count)
        return -1


def codes_of(values: Values, column: Categories) -> Codes:
    """The index of each row's value among the declared categories; -1 for any other value."""
    known, kind = values_of(column.values), _code_dtype(len(column.values))
    return by_value(lambda values: _codes_of(values, known, kind), values)


def _codes_of(values: NDArray[Any], known: CategoryValues, kind: np.dtype[Any]) -> Codes:
    import pandas as pd  # imported when first used

    if values.dtype.kind in "biuf":
        codes = _codes_by_table(values, known.numbers, kind)
        if codes is not None:
            return codes
        positions, distinct = pd.factorize(values)
        table = np.array([_code(value, known) for value in distinct.tolist()] + [-1], kind)
        return np.asarray(table[positions])
    if values.dtype.kind in "Mm":
        return np.full(len(values), -1, kind)
    return each(values, lambda value: _code(value, known), kind)


def _codes_by_table(values: NDArray[Any], numbers: dict[int | float, int], kind: np.dtype[Any]) -> Codes | None:
    """`codes_of` for numbers, by a lookup table, if those that count are whole and in a small range; else None."""
    if not numbers or any(key != key // 1 for key in numbers):
        return None
    low, high = int(min(numbers)), int(max(numbers))
    if max(abs(low), abs(high)) > MAX_EXACT_INTEGER or high - low > MAX_TABLE_RANGE:
        return None
    table = np.full(high - low + 2, -1, kind)  # the last entry for values outside the range
    table[[int(key) - low for key in numbers]] = list(numbers.values())
    codes: Codes = np.empty(len(values), kind)

    def fill(part: slice) -> None:
        own = values[part].astype(np.float64) if values.dtype.kind == "f" else values[part]
        inside = (own >= low) & (own <= high)
        whole = np.where(inside, own, 0).astype(np.int64)
        codes[part] = table[np.where(inside & (whole == own), whole - low, high - low + 1)]

    by_blocks(fill, even_blocks(len(values)))
    return codes


def _code(value: Any, known: CategoryValues) -> int:
    try:
        value = value_of(value)
        if isinstance(value, TIMES):
            return -1
        if isinstance(value, Decimal) and value != value.to_integral_value():
            value = float(value)  # to which a declared number is rounded too
        return known.texts.get(value, -1) if isinstance(value, str) else known.numbers.get(value, -1)
    except Exception:  # noqa: BLE001  (not hashable, or an unusual object: it is not a category)
        return -1
