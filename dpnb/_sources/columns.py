"""Columns of sources other than CSV as a data frame in which no value depends on another.  Reads rows.

Types that a source declares are kept, and a session refuses one that cannot match the schema.  Where each value has a
type of its own, as in a worksheet, a column has Python objects, which are read one by one.

Beside nulls, the values that the declaration lists are missing, the same in every format.  A text is missing if it is
in the list.  A number is missing if some text of the list writes it, and a date or a time likewise in ISO 8601; a truth
value never is.  Each value is compared alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from dpnb._backends.reading import Wanted
from dpnb._plan.constants import DECIMAL, MAX_DIGITS
from dpnb.errors import SchemaError
from dpnb.schema import plain, text_of

if TYPE_CHECKING:
    from dpnb._backends.source_table import SourceTable


SHOWN = 10
"""Largest number of tables that a message lists."""


class _MissingValues:
    """The values that a list of texts declares as missing."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = frozenset(texts)
        self._numbers = [text for text in texts if DECIMAL.fullmatch(text) and len(text) <= MAX_DIGITS]
        self._times: list[datetime] = []
        for text in texts:
            with suppress(ValueError):
                self._times.append(datetime.fromisoformat(text))
        numbers = {number for text in self._numbers for number in (Decimal(text), float(text))}
        days = {moment.date() for moment in self._times if moment.time() == time() and moment.tzinfo is None}
        self._values = frozenset[object]({*numbers, *days, *self._times})

    def __bool__(self) -> bool:
        return bool(self._texts)

    def has(self, value: Any) -> bool:
        """Whether a single value is missing; it is a text, a number, a date or any object."""
        if isinstance(value, str):
            return value in self._texts
        return isinstance(value, int | float | Decimal | date) and not isinstance(value, bool) and value in self._values

    def nulls_of(self, column: Any) -> Any:
        """A column of Arrow with nulls for the values that are missing."""
        import pyarrow as pa
        import pyarrow.compute as pc

        kind = column.type
        encoded = pa.types.is_dictionary(kind)
        values = self._of(kind.value_type if encoded else kind)
        if not len(values):
            return column

        def without(chunk: Any) -> Any:
            if encoded:
                of_codes = pc.is_in(chunk.dictionary, values)
                codes = pc.if_else(of_codes.take(chunk.indices), pa.scalar(None, chunk.indices.type), chunk.indices)
                return pa.DictionaryArray.from_arrays(codes, chunk.dictionary)
            return pc.if_else(pc.is_in(chunk, values), pa.scalar(None, kind), chunk)

        return pa.chunked_array([without(chunk) for chunk in column.chunks], kind)

    def _of(self, kind: Any) -> Any:
        """The missing values of an Arrow type, as an array of it."""
        import pyarrow as pa

        candidates: Sequence[object] = ()
        if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
            candidates = sorted(self._texts)
        elif pa.types.is_floating(kind):
            candidates = [*map(float, self._numbers)]
        elif pa.types.is_integer(kind):
            candidates = [int(number) for number in map(Decimal, self._numbers) if number == number.to_integral_value()]
        elif pa.types.is_decimal(kind):
            candidates = [*map(Decimal, self._numbers)]
        elif pa.types.is_date(kind):
            candidates = [moment.date() for moment in self._times if moment.time() == time()]
        elif pa.types.is_timestamp(kind):
            candidates = [moment for moment in self._times if (moment.tzinfo is None) == (kind.tz is None)]
        values = []
        for value in candidates:
            with suppress(pa.ArrowInvalid, OverflowError):  # beyond the type: no value is equal to it
                values.append(pa.scalar(value, kind))
        return pa.array([one.as_py() for one in values], kind)


def chosen_names(header: Sequence[str], wanted: Wanted) -> list[str]:
    """The columns that are read: those that are wanted, as far as there is exactly one of that name."""
    once = [name for name, times in Counter(header).items() if times == 1]
    return once if wanted.columns is None else [name for name in once if name in wanted.columns]


def table_of_arrow(table: Any, header: Sequence[str], wanted: Wanted, untyped: Collection[str] = ()) -> SourceTable:
    """The data frame of an Arrow table, whose columns were chosen among those of `header`.

    Those of `untyped` are texts because the source states no type: each is read as declared, as a field of a CSV file.
    What identifies a unit stays a text.
    """
    import pandas as pd

    missing, columns = _MissingValues(wanted.reading.missing), {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        kept = missing.nulls_of(column) if missing else column
        if name in untyped and name != wanted.unit:
            columns[name] = pd.Series(kept.to_numpy(), dtype=object, copy=False)
        else:
            columns[name] = pd.Series(pd.arrays.ArrowExtensionArray(kept), copy=False)
    return _framed(columns, table.num_rows, header, wanted, names_units_by_texts=wanted.unit in untyped)


def table_of_values(columns: Mapping[str, list[Any]], rows: int, header: Sequence[str], wanted: Wanted) -> SourceTable:
    """The data frame of columns of Python objects, whose values each have a type of their own.

    What identifies a unit is read as text, so that 7, 7.0 and "7" are one unit wherever a program wrote them.
    """
    import pandas as pd

    missing, made = _MissingValues(wanted.reading.missing), {}
    for name, values in columns.items():
        kept = [None if missing.has(value) else value for value in values] if missing else values
        if name == wanted.unit:
            made[name] = pd.Series([text_of(plain(value)) for value in kept], dtype="string[pyarrow]")
        else:
            array = np.empty(rows, object)
            array[:] = kept
            made[name] = pd.Series(array, dtype=object, copy=False)
    return _framed(made, rows, header, wanted, names_units_by_texts=True)


def _framed(
    columns: Mapping[str, Any], rows: int, header: Sequence[str], wanted: Wanted, *, names_units_by_texts: bool
) -> SourceTable:
    import pandas as pd

    from dpnb._backends.source_table import SourceTable

    table = SourceTable(columns, index=pd.RangeIndex(rows), copy=False)
    table.reading, table.header, table.names_units_by_texts = wanted.reading, [*header], names_units_by_texts
    return table


def only_table(given: str, tables: Sequence[str], what: str) -> str:
    """The table of a file that a source names, which may be left out if there is one; `what` is what a table is."""
    if given in tables or (not given and len(tables) == 1):
        return given or tables[0]
    shown = ", ".join(map(repr, tables[:SHOWN])) + (", ..." if len(tables) > SHOWN else "")
    fault = f"it has no {what} {given!r}" if given else f"it has {len(tables)} {what}s"
    raise SchemaError(f"{fault}; write one of them after the file's name, as in FILE#{what.upper()}: {shown or 'none'}")


def quoted(name: str) -> str:
    """A name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def decoded(text: bytes | None, codec: str = "utf-8") -> str | None:
    """A text of a source, which may store any bytes as one; None if they are not in the encoding."""
    try:
        return None if text is None else text.decode(codec)
    except UnicodeDecodeError:
        return None
