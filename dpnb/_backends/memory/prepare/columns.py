"""A column of any library in a form that does not depend on what else is in it.  Reads rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, TypeAlias, TypeVar

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpnb._backends.memory.blocks import ROWS_AT_ONCE, by_blocks, cores, gathered
from dpnb._plan.schema import EXACT, plain

D = TypeVar("D", bound=np.generic)

WIDE = (nw.Int128, nw.UInt128)
"""Whole numbers that numpy has no type for."""


@dataclass(frozen=True, repr=False)
class DictionaryColumn:
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


Values: TypeAlias = NDArray[Any] | DictionaryColumn
"""A column, value by value or encoded: which of the two makes no difference to what a row's value counts as."""


UNUSUAL = (complex, np.complexfloating, np.longdouble)
"""Types of numbers to which one value can convert its whole column."""


def value_of(value: Any) -> Any:
    """A single value in the form that it has if no other value of its column forces a wider type on it.

    A complex number without an imaginary part becomes its real part.  A wide float becomes the nearest double, or an
    integer if it is one that a double may not hold.
    """
    value = plain(value)
    if not isinstance(value, UNUSUAL):
        return value
    if not isinstance(value, np.longdouble):
        return value_of(value.real) if value.imag == 0 else complex(value)
    return int(value) if EXACT <= abs(value) < np.inf and value == np.rint(value) else float(value)


def by_value(work: Callable[[NDArray[Any]], NDArray[D]], values: Values) -> NDArray[D]:
    """What a function of single values gives of each row; of a value that comes again it is asked once."""
    return gathered(work(values.values), values.places) if isinstance(values, DictionaryColumn) else work(values)


def column_of(series: nw.Series[Any]) -> Values:
    """A column in a form that does not depend on what else is in it.

    Whole numbers beside a null would become doubles, which cannot tell large ones apart: they become objects.  So does
    all else but numbers, times and what is encoded, for which some libraries have an array of another kind where
    nothing is null: polars has texts of one width, which lose zeros at their end, and tables for lists.
    """
    kind = series.dtype
    # Objects stay as they are, unasked: an odd one may raise when a library looks for nulls.
    if kind.is_float() or kind == nw.Object:
        return series.to_numpy()
    if kind.is_temporal():
        return _whole_or_each(series, lambda: series.to_numpy())
    if kind in (nw.String, nw.Categorical, nw.Enum):
        encoded = _encoded(series)
        if encoded is not None:
            return encoded
    number = kind == nw.Boolean or (kind.is_integer() and kind not in WIDE)
    if number and not series.null_count():
        return series.to_numpy()
    return _whole_or_each(series, lambda: objects(series.to_list()))


def _whole_or_each(series: nw.Series[Any], work: Callable[[], NDArray[Any]]) -> NDArray[Any]:
    """A column at once; where Arrow has a value that Python has none for, one by one, and None for such a value."""
    try:
        return work()
    except Exception:
        if find_spec("pyarrow") is None:
            raise
    return objects([_one_decoded(value) for value in series.to_arrow()])


def _encoded(series: nw.Series[Any]) -> DictionaryColumn | None:
    """Texts or categories, encoded by the library that has them; None where none can.

    Arrow tells texts apart by their bytes, as Python does.
    """
    native = series.to_native()
    if isinstance(native, pd.Series):
        if isinstance(native.array, pd.Categorical):
            return DictionaryColumn(native.array.codes, objects([*native.array.categories.tolist(), None]))
        if not isinstance(native.dtype, pd.ArrowDtype) and getattr(native.dtype, "storage", "") != "pyarrow":
            return None  # Python's own objects, of which some may be no texts
    if find_spec("pyarrow") is None:
        return None
    import pyarrow as pa

    arrow = native if isinstance(native, pa.ChunkedArray) else series.to_arrow()
    chunks = arrow.chunks if isinstance(arrow, pa.ChunkedArray) else [arrow]
    # One dictionary for all could be refused: for its type of index, or for what it holds.
    found = by_blocks(lambda piece: piece.dictionary_encode(), [piece for chunk in chunks for piece in _pieces(chunk)])
    places: list[NDArray[np.int32]] = [np.empty(0, np.int32)]
    values: list[Any] = []
    for piece in found:
        own = piece.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32)
        own[own >= 0] += len(values)
        places.append(own)
        values += _decoded(piece.dictionary)
    return DictionaryColumn(np.concatenate(places), objects([*values, None]))


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
    except Exception:  # noqa: BLE001  (no text, a year after 9999, nanoseconds: it does not count)
        return None


def objects(values: Sequence[Any]) -> NDArray[Any]:
    """An array of Python's objects, whatever they are."""
    array = np.empty(len(values), object)
    for place, value in enumerate(values):  # one by one: numpy looks into what it is given as a list
        array[place] = value
    return array
