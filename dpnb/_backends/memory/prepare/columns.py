"""The columns of any library in a form in which a value does not depend on the column's other values.  Reads rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from dpnb._backends.memory.blocks import ROWS_AT_ONCE, by_blocks, cores, gathered
from dpnb.schema import MAX_EXACT_INTEGER, plain

D = TypeVar("D", bound=np.generic)

WIDE = (nw.Int128, nw.UInt128)
"""Types of whole numbers that numpy does not have."""


@dataclass(frozen=True, repr=False)
class DictionaryColumn:
    """A dictionary-encoded column, as libraries store texts and categories.  A private value."""

    codes: NDArray[np.signedinteger[Any]]  # index of each row's value in `values`; -1 for a missing value
    values: NDArray[Any]  # the values of the dictionary, and None at the end

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.codes)


class Instants(NDArray[Any] if TYPE_CHECKING else np.ndarray):  # type: ignore[misc]
    """Times in UTC of a column that has a zone; those of other columns are local times of the declared one."""


Values: TypeAlias = NDArray[Any] | DictionaryColumn
"""A column, plain or dictionary-encoded; a value counts as the same in both."""


UNUSUAL = (complex, np.complexfloating, np.longdouble)
"""Types of numbers to which a library converts a whole column if one value has the type."""


def value_of(value: Any) -> Any:
    """A single value in the form that it has if no other value of its column requires a wider type.

    A complex number without an imaginary part becomes its real part.  A `longdouble` becomes the nearest double, or an
    integer if it is one that a double may not represent.
    """
    value = plain(value)
    if not isinstance(value, UNUSUAL):
        return value
    if not isinstance(value, np.longdouble):
        return value_of(value.real) if value.imag == 0 else complex(value)
    return int(value) if MAX_EXACT_INTEGER <= abs(value) < np.inf and value == np.rint(value) else float(value)


def by_value(work: Callable[[NDArray[Any]], NDArray[D]], values: Values) -> NDArray[D]:
    """The result of an elementwise function for each row; computed once for each value of a dictionary."""
    return gathered(work(values.values), values.codes) if isinstance(values, DictionaryColumn) else work(values)


def column_of(series: nw.Series[Any]) -> Values:
    """A column in a form in which a value does not depend on the column's other values.

    Whole numbers in a column with nulls would become doubles, which cannot represent all large ones, so they become
    objects.  So do all other types except numbers, times and dictionary-encoded columns: some libraries return another
    kind of array if there are no nulls; for example, polars returns texts of fixed width, which lose trailing NUL
    characters.
    """
    kind = series.dtype
    # Objects are not inspected: an unusual object may raise when a library checks it for null.
    if kind.is_float() or kind == nw.Object:
        return series.to_numpy()
    if kind.is_temporal():
        times = _converted(series, lambda: series.to_numpy())
        return times.view(Instants) if getattr(kind, "time_zone", None) and times.dtype.kind == "M" else times
    if kind in (nw.String, nw.Categorical, nw.Enum):
        encoded = _encoded(series)
        if encoded is not None:
            return encoded
    number = kind == nw.Boolean or (kind.is_integer() and kind not in WIDE)
    if number and not series.null_count():
        return series.to_numpy()
    return _converted(series, lambda: objects(series.to_list()))


def _converted(series: nw.Series[Any], work: Callable[[], NDArray[Any]]) -> NDArray[Any]:
    """The result of `work`; if Arrow cannot convert some value to Python, the single values, with None for these."""
    try:
        return work()
    except Exception:
        if find_spec("pyarrow") is None:
            raise
    return objects([_one_decoded(value) for value in series.to_arrow()])


def _encoded(series: nw.Series[Any]) -> DictionaryColumn | None:
    """Texts or categories, encoded by their own library or by Arrow; None if neither can.

    Arrow compares texts by their bytes, as Python does.
    """
    import pandas as pd  # imported when first used

    native = series.to_native()
    if isinstance(native, pd.Series):
        if isinstance(native.array, pd.Categorical):
            return DictionaryColumn(native.array.codes, objects([*native.array.categories.tolist(), None]))
        if not isinstance(native.dtype, pd.ArrowDtype) and getattr(native.dtype, "storage", "") != "pyarrow":
            return None  # Python objects, which need not be texts
    if find_spec("pyarrow") is None:
        return None
    import pyarrow as pa

    arrow = native if isinstance(native, pa.ChunkedArray) else series.to_arrow()
    chunks = arrow.chunks if isinstance(arrow, pa.ChunkedArray) else [arrow]
    # Each piece keeps its own dictionary: Arrow may be unable to unify them, for their index type or their values.
    pieces = [piece for chunk in chunks for piece in _pieces(chunk)]
    values: list[Any] = []
    codes = np.empty(len(arrow), np.int32)
    encoded = by_blocks(lambda piece: piece.dictionary_encode(), pieces)
    ends = np.cumsum([0, *map(len, encoded)]).tolist()
    firsts = []
    for piece in encoded:
        firsts.append(len(values))
        values += _decoded(piece.dictionary)

    def fill(number: int) -> None:
        own = encoded[number].indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
        codes[ends[number] : ends[number + 1]] = np.where(own < 0, -1, own + firsts[number])

    by_blocks(fill, range(len(encoded)))
    return DictionaryColumn(codes, objects([*values, None]))


def _pieces(chunk: Any) -> list[Any]:
    """An Arrow array split into pieces for all cores, if it is long and not dictionary-encoded."""
    share = max(len(chunk) // cores() + 1, ROWS_AT_ONCE)
    encoded = hasattr(chunk, "dictionary")
    return [chunk] if encoded else [chunk.slice(start, share) for start in range(0, len(chunk), share)]


def _decoded(values: Any) -> list[Any]:
    """The values of an Arrow array; None for invalid UTF-8."""
    try:
        return list(values.to_pylist())
    except UnicodeDecodeError:
        return [_one_decoded(value) for value in values]


def _one_decoded(value: Any) -> Any:
    try:
        return value.as_py()
    except Exception:  # noqa: BLE001  (invalid UTF-8, a year after 9999, nanoseconds: it does not count)
        return None


def objects(values: Sequence[Any]) -> NDArray[Any]:
    """A one-dimensional array of any Python objects."""
    array = np.empty(len(values), object)
    for index, value in enumerate(values):  # one by one: numpy would convert nested sequences to more dimensions
        array[index] = value
    return array
