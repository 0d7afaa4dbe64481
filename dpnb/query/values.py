"""One column of a table becomes numbers, codes or names: value by value, whatever the type of the column.  Reads rows.

What a value counts as must not hang on what else is in its column, and libraries choose a column's type by all of its
values.  So everything that may stand in columns of several types is brought to one form first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from importlib.util import find_spec
from typing import Any, TypeAlias, TypeVar

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpnb.query.blocks import ROWS_AT_ONCE, by_blocks, cores, even_blocks, gathered
from dpnb.query.contribution import Integers, name_number
from dpnb.query.schema import Categories, encodable, iso_time, plain, seconds_of, text_of

Codes = NDArray[np.signedinteger[Any]]
"""Places in a list, -1 for none."""

ShortIntegers = NDArray[np.int32]
"""Numbers of units or of rows: a table in memory has fewer than 2**31, which `dpnb.query.prepare` sees to."""

EXACT = 2**53
"""Doubles hold every integer up to here."""

NAMES = 2**60
"""Portable integers that name units are below this."""

ROOM = 4
"""Whole numbers that name units are told apart by a table of all numbers between, if it is not much longer."""

NEAR = 2**16
"""How far apart numbers may be of which each has a place in a table."""

D = TypeVar("D", bound=np.generic)

TIMES = (np.datetime64, np.timedelta64, date, timedelta)
"""pandas' own kinds are dates and spans too."""
WIDE = (nw.Int128, nw.UInt128)
"""Whole numbers that numpy has no type for."""


def time_name(value: Any) -> str | None:
    """The text that names a unit called by a moment or a span of time; None for none."""
    try:
        microseconds = _microseconds(value)
        return None if microseconds is None else f"{'span' if _is_span(value) else 'moment'} {microseconds}"
    except Exception:  # noqa: BLE001  (an odd date: it names nobody)
        return None


def _is_span(value: Any) -> bool:
    return isinstance(value, np.timedelta64 | timedelta)


def _microseconds(value: Any) -> int | None:
    """A moment (since 1970, in UTC) or a span in microseconds; None for none."""
    if _is_span(value):
        span = np.timedelta64(value).astype("timedelta64[us]") if isinstance(value, np.timedelta64) else value
        whole = span.astype(np.int64) if isinstance(span, np.timedelta64) else span // timedelta(microseconds=1)
        return None if pd.isna(value) else int(whole)
    if pd.isna(value):
        return None
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    moment = value.to_datetime64() if isinstance(value, pd.Timestamp) else np.datetime64(value)
    return int(moment.astype("datetime64[us]").astype(np.int64))


@dataclass(frozen=True, repr=False)
class Encoded:
    """A column whose values come again and again, as libraries keep texts and categories.  A private value.

    Parameters
    ----------
    places : int array, shape (rows,)
        The place of each row's value in `values`, -1 for none.
    values : object array
        Those there are, and None at the end.
    """

    places: NDArray[np.signedinteger[Any]]
    values: NDArray[Any]

    def __len__(self) -> int:
        """Rows."""
        return len(self.places)


Values: TypeAlias = NDArray[Any] | Encoded
"""A column, value by value or encoded: which of the two makes no difference to what a row's value counts as."""


def by_value(work: Callable[[NDArray[Any]], NDArray[D]], values: Values) -> NDArray[D]:
    """What a function of single values gives of each row; of a value that comes again it is asked once."""
    return gathered(work(values.values), values.places) if isinstance(values, Encoded) else work(values)


def column_of(series: nw.Series[Any]) -> Values:
    """A column in a form that does not depend on what else is in it.

    Whole numbers beside a null would become doubles, which cannot tell large ones apart: they become objects.  So does
    all else but numbers, times and what is encoded, for which some libraries have an array of another kind where
    nothing is null: polars has texts of one width, which lose zeros at their end, and tables for lists.
    """
    kind = series.dtype
    # Objects stay as they are, unasked: an odd one may raise when a library looks for nulls.
    if kind.is_float() or kind.is_temporal() or kind == nw.Object:
        return series.to_numpy()
    if kind in (nw.String, nw.Categorical, nw.Enum):
        encoded = _encoded(series)
        if encoded is not None:
            return encoded
    number = kind == nw.Boolean or (kind.is_integer() and kind not in WIDE)
    return series.to_numpy() if number and not series.null_count() else _objects(series.to_list())


def _encoded(series: nw.Series[Any]) -> Encoded | None:
    """Texts or categories, encoded by the library that has them; None where none can.

    Arrow tells texts apart by their bytes, as Python does.
    """
    native = series.to_native()
    if isinstance(native, pd.Series):
        if isinstance(native.array, pd.Categorical):
            return Encoded(native.array.codes, _objects([*native.array.categories.tolist(), None]))
        if not isinstance(native.dtype, pd.ArrowDtype) and getattr(native.dtype, "storage", "") != "pyarrow":
            return None  # Python's own objects, of which some may be no texts
    if find_spec("pyarrow") is None:
        return None
    import pyarrow as pa

    arrow = native if isinstance(native, pa.ChunkedArray) else series.to_arrow()
    chunks = arrow.chunks if isinstance(arrow, pa.ChunkedArray) else [arrow]
    # One dictionary for all could be refused: for its type of index, or for what it holds.
    found = by_blocks(lambda piece: piece.dictionary_encode(), [piece for chunk in chunks for piece in _pieces(chunk)])
    places: list[ShortIntegers] = [np.empty(0, np.int32)]
    values: list[Any] = []
    for piece in found:
        own = piece.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32)
        own[own >= 0] += len(values)
        places.append(own)
        values += _decoded(piece.dictionary)
    return Encoded(np.concatenate(places), _objects([*values, None]))


def _pieces(chunk: Any) -> list[Any]:
    """An array of Arrow's in as many as there are cores, if it is long and not encoded yet."""
    share = max(len(chunk) // cores() + 1, ROWS_AT_ONCE)
    encoded = hasattr(chunk, "dictionary")
    return [chunk] if encoded else [chunk.slice(start, share) for start in range(0, len(chunk), share)]


def _decoded(values: Any) -> list[Any]:
    """The values of an array of Arrow's; None for texts that are none."""
    try:
        return list(values.to_pylist())
    except UnicodeDecodeError:
        return [_one_decoded(value) for value in values]


def _one_decoded(value: Any) -> Any:
    try:
        return value.as_py()
    except UnicodeDecodeError:
        return None


def _objects(values: Sequence[Any]) -> NDArray[Any]:
    array = np.empty(len(values), object)
    for place, value in enumerate(values):  # one by one: numpy looks into what it is given as a list
        array[place] = value
    return array


class _Remembered(dict[Any, int]):
    """What a function gives for each value, worked out once."""

    def __init__(self, work: Callable[[Any], int]) -> None:
        super().__init__()
        self._work = work

    def __missing__(self, value: Any) -> int:
        found = self[value] = self._work(value)
        return found


TEXTS = {str, float, type(None)}
"""Of texts and what stands for none; no two of such values that are equal differ in type."""


def _each(values: NDArray[Any], work: Callable[[Any], int], kind: np.dtype[Any]) -> NDArray[Any]:
    """What a function gives for each value, worked out once for each text where there are only texts."""
    values = values.astype(object, copy=False)
    once = _Remembered(work).__getitem__ if set(map(type, values)) <= TEXTS else work
    return np.fromiter(map(once, values), kind, len(values))


def floats(values: NDArray[Any]) -> NDArray[np.float64]:
    """Numbers; NaN for what is no finite one."""
    if values.dtype.kind in "biuf":
        numbers = values.astype(np.float64, copy=False)
    elif values.dtype.kind in "OUS":
        numbers = np.fromiter((_float(value) for value in values.astype(object)), np.float64, len(values))
    else:  # dates, durations, complex numbers, records: not numbers
        numbers = np.full(len(values), np.nan)
    finite = np.isfinite(numbers)
    return numbers if finite.all() else np.where(finite, numbers, np.nan)


def _float(value: Any) -> float:
    try:
        return math.nan if isinstance(value, complex) else float(value)
    except Exception:  # noqa: BLE001  (row evaluation is total: whatever it is, it does not count)
        return math.nan


def seconds(values: NDArray[Any]) -> NDArray[np.float64]:
    """Moments in seconds since 1970; NaN for what is none."""
    if values.dtype.kind == "M":
        moments = values.astype("datetime64[us]").astype(np.int64) / 1e6
        return np.where(np.isnat(values), np.nan, moments)
    if values.dtype.kind in "OUS":
        return np.fromiter((_second(value) for value in values), np.float64, len(values))
    return np.full(len(values), np.nan)


def _second(value: Any) -> float:
    try:
        if isinstance(value, str):
            return seconds_of(iso_time(value, ""))
        microseconds = None if not isinstance(value, TIMES) or _is_span(value) else _microseconds(value)
        return math.nan if microseconds is None else microseconds / 1e6
    except Exception:  # noqa: BLE001  (row evaluation is total: whatever it is, it does not count)
        return math.nan


def texts(values: Values) -> tuple[Codes, dict[str, int]]:
    """The place of each row's text in the column's own list, -1 for what is none; and the list, place by text."""
    places: dict[str, int] = {}

    def work(values: NDArray[Any]) -> Codes:
        if values.dtype.kind in "Mm":
            return np.full(len(values), -1, np.int8)
        found = _each(values, lambda value: _text(value, places), np.dtype(np.int32))
        return found.astype(_kind_of_codes(len(places)), copy=False)

    return by_value(work, values), places


def _kind_of_codes(size: int) -> np.dtype[Any]:
    """The smallest type of places in a list of some size, and of one more: where 0 stands for nothing."""
    return np.min_scalar_type(-size - 1)


def _text(value: Any, texts: dict[str, int]) -> int:
    try:
        text = None if isinstance(value, TIMES) else text_of(plain(value))
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
    return _each(values, lambda value: _code(value, code_of), kind)


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
        return code_of.get(value, -1)
    except Exception:  # noqa: BLE001  (not hashable, or an odd object: no category)
        return -1


def unit_names(values: Values) -> Values:
    """What names each row's unit.

    Moments and spans of time have many types, of which a table has another one as soon as one value is odd.  So they
    all become the same text.
    """
    if isinstance(values, Encoded):
        return Encoded(values.places, _unit_names(values.values))
    return _unit_names(values)


def _unit_names(values: NDArray[Any]) -> NDArray[Any]:
    if values.dtype.kind in "Mm":
        return _objects([time_name(value) for value in values])
    if values.dtype.kind == "O":
        return _objects([time_name(value) if isinstance(value, TIMES) else value for value in values])
    return values


def number_units(values: Values) -> tuple[ShortIntegers, Integers]:
    """Number each row's unit 0, 1, ..., -1 where there is none; and each unit's name as a portable integer."""
    codes, names = distinct_units(values)
    if isinstance(names, np.ndarray) and names.dtype.kind in "iu":  # as `name_number` does, all at once
        wide = names.astype(np.uint64 if names.dtype.kind == "u" else np.int64, copy=False)
        return codes, (np.abs(wide) % NAMES).astype(np.int64, copy=False)
    return codes, np.array([*map(_name_number, names)], np.int64)


def distinct_units(values: Values) -> tuple[ShortIntegers, Sequence[Any] | NDArray[Any]]:
    """Number each row's unit 0, 1, ..., -1 where there is none, and list the values that name them, in that order.

    Names that are no plain numbers are told apart by Python's own equality, one by one: libraries have several notions
    of equal texts, and choose among them by what else is in the column.
    """
    if isinstance(values, Encoded):
        there = np.zeros(len(values.values), np.bool_)
        there[values.places] = True
        number = np.full(len(there), -1, np.int32)  # also of values that no row has
        number[there], distinct = distinct_units(values.values[there])
        return number[values.places], distinct
    if values.dtype.kind == "i" and len(values) and int(values.max()) - int(values.min()) <= ROOM * len(values):
        return _near_units(values)
    if values.dtype.kind in "biuf":
        codes, distinct = pd.factorize(values)
        return codes.astype(np.int32), distinct
    numbers: dict[Any, int] = {}
    return _each(values, lambda value: _number(value, numbers), np.dtype(np.int32)), list(numbers)


def _near_units(values: NDArray[Any]) -> tuple[ShortIntegers, Integers]:
    """The same for whole numbers that are near each other."""
    low, high = int(values.min()), int(values.max())
    there = np.zeros(high - low + 1, np.bool_)
    codes = np.empty(len(values), np.int32)

    def places(part: slice) -> Integers:
        return values[part].astype(np.int64, copy=False) - low

    def note(part: slice) -> None:
        there[places(part)] = True

    by_blocks(note, even_blocks(len(values)))
    numbered = np.cumsum(there, dtype=np.int32) - 1

    def number(part: slice) -> None:
        codes[part] = numbered[places(part)]

    by_blocks(number, even_blocks(len(values)))
    return codes, np.flatnonzero(there) + low


def _number(value: Any, numbers: dict[Any, int]) -> int:
    try:
        number = numbers.get(value)
        if number is None:
            number = -1 if pd.isna(value) is True else numbers.setdefault(value, len(numbers))
        return number
    except Exception:  # noqa: BLE001  (not hashable: it names nobody)
        return -1


def _name_number(name: Any) -> int:
    try:
        return name_number(name)
    except Exception:  # noqa: BLE001  (an odd object without a text)
        return 0
