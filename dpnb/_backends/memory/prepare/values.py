"""One column of a table becomes numbers or codes: value by value, whatever the type of the column.  Reads rows.

What a value counts as must not hang on what else is in its column, and libraries choose a column's type by all of its
values.  So everything that may stand in columns of several types is brought to one form first.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpnb._backends.memory.blocks import by_blocks, even_blocks
from dpnb._backends.memory.prepare.columns import Values, by_value, value_of
from dpnb._backends.memory.prepare.times import TIMES, is_span, microseconds
from dpnb._plan.schema import EXACT, Categories, encodable, iso_time, seconds_of, text_of

Codes = NDArray[np.signedinteger[Any]]
"""Places in a list, -1 for none."""

NEAR = 2**16
"""How far apart numbers may be of which each has a place in a table."""


MOST_DAYS = 2**63 // (86_400 * 10**6)
"""From 1970 on that 64 bits count in microseconds."""


class _Cache(dict[Any, int]):
    """What a function gives for each value, worked out once."""

    def __init__(self, work: Callable[[Any], int]) -> None:
        super().__init__()
        self._work = work

    def __missing__(self, value: Any) -> int:
        found = self[value] = self._work(value)
        return found


TEXTS = {str, float, type(None)}
"""Of texts and what stands for none; no two of such values that are equal differ in type."""


def each(values: NDArray[Any], work: Callable[[Any], int], kind: np.dtype[Any]) -> NDArray[Any]:
    """What a function gives for each value, worked out once for each text where there are only texts."""
    values = values.astype(object, copy=False)
    once = _Cache(work).__getitem__ if set(map(type, values)) <= TEXTS else work
    return np.fromiter(map(once, values), kind, len(values))


def floats(values: NDArray[Any]) -> NDArray[np.float64]:
    """Numbers; NaN for what is no finite one.

    A complex number counts by its real part where it has no imaginary part, and otherwise not at all.
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
        return math.nan if isinstance(value, TIMES) else float(value_of(value))  # of a complex number no float
    except Exception:  # noqa: BLE001  (row evaluation is total: whatever it is, it does not count)
        return math.nan


def seconds(values: NDArray[Any]) -> NDArray[np.float64]:
    """Moments in seconds since 1970; NaN for what is none."""
    if values.dtype.kind == "M":
        days = values.astype("datetime64[D]").astype(np.int64)
        near = (days > -MOST_DAYS) & (days < MOST_DAYS)  # numpy would wrap round what is beyond; neither is NaT
        return np.where(near, values.astype("datetime64[us]").astype(np.int64) / 1e6, np.nan)
    if values.dtype.kind in "OUS":
        return np.fromiter((_second(value) for value in values), np.float64, len(values))
    return np.full(len(values), np.nan)


def _second(value: Any) -> float:
    try:
        if isinstance(value, str):
            return seconds_of(iso_time(value, ""))
        found = None if not isinstance(value, TIMES) or is_span(value) else microseconds(value)
        return math.nan if found is None else found / 1e6
    except Exception:  # noqa: BLE001  (row evaluation is total: whatever it is, it does not count)
        return math.nan


def texts(values: Values) -> tuple[Codes, dict[str, int]]:
    """The place of each row's text in the column's own list, -1 for what is none; and the list, place by text."""
    places: dict[str, int] = {}

    def work(values: NDArray[Any]) -> Codes:
        if values.dtype.kind in "Mm":
            return np.full(len(values), -1, np.int8)
        found = each(values, lambda value: _text(value, places), np.dtype(np.int32))
        return found.astype(_kind_of_codes(len(places)), copy=False)

    return by_value(work, values), places


def _kind_of_codes(size: int) -> np.dtype[Any]:
    """The smallest type of places in a list of some size, and of one more: where 0 stands for nothing."""
    return np.min_scalar_type(-size - 1)


def _text(value: Any, texts: dict[str, int]) -> int:
    try:
        text = None if isinstance(value, TIMES) else text_of(value_of(value))
        # What cannot be written to a ledger is no text.
        return -1 if text is None or not encodable(text) else texts.setdefault(text, len(texts))
    except Exception:  # noqa: BLE001  (an odd object: no text)
        return -1


def codes_of(values: Values, column: Categories) -> Codes:
    """The place of each row's value in the declared list, -1 for what is not in it."""
    return by_value(lambda values: _codes_of(values, column), values)


def _codes_of(values: NDArray[Any], column: Categories) -> Codes:
    code_of = {key: code for code, key in enumerate(column.values)}
    kind = _kind_of_codes(len(column.values))
    if values.dtype.kind in "biuf":
        near = _near_codes(values, column, kind)
        if near is not None:
            return near
        positions, distinct = pd.factorize(values)
        table = np.array([_code(value, code_of) for value in distinct.tolist()] + [-1], kind)
        return np.asarray(table[positions])
    if values.dtype.kind in "Mm":
        return np.full(len(values), -1, kind)
    return each(values, lambda value: _code(value, code_of), kind)


def _near_codes(values: NDArray[Any], column: Categories, kind: np.dtype[Any]) -> Codes | None:
    """The same for numbers and a list of whole numbers that are near each other; None for others."""
    if not column.numeric or any(key != key // 1 for key in column.values):  # type: ignore[operator]
        return None
    low, high = int(min(column.values)), int(max(column.values))
    if max(abs(low), abs(high)) > EXACT or high - low > NEAR:
        return None
    table = np.full(high - low + 2, -1, kind)  # the last for what is not near
    table[[int(key) - low for key in column.values]] = np.arange(len(column.values))
    codes: Codes = np.empty(len(values), kind)

    def fill(part: slice) -> None:
        own = values[part].astype(np.float64) if values.dtype.kind == "f" else values[part]
        inside = (own >= low) & (own <= high)
        whole = np.where(inside, own, 0).astype(np.int64)
        places = np.where(inside & (whole == own), whole - low, high - low + 1)
        codes[part] = table[places]

    by_blocks(fill, even_blocks(len(values)))
    return codes


def _code(value: Any, code_of: dict[Any, int]) -> int:
    try:
        return -1 if isinstance(value, TIMES) else code_of.get(value_of(value), -1)
    except Exception:  # noqa: BLE001  (not hashable, or an odd object: no category)
        return -1
