"""Columns of a source as a data frame in which no value depends on another: Arrow's types, or values one by one.

Types that a source declares are kept, and a session refuses one that cannot match the schema.  Where each value has a
type of its own, as in a worksheet, a column has Python objects, which are read one by one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dpnb._backends.reading import Wanted
from dpnb._sources.missing import MissingValues
from dpnb.errors import SchemaError
from dpnb.schema import plain, text_of

if TYPE_CHECKING:
    from dpnb._backends.source_table import SourceTable

SHOWN = 10
"""Largest number of tables that a message lists."""


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

    missing, columns = MissingValues(wanted.reading.missing), {}
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

    missing, made = MissingValues(wanted.reading.missing), {}
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
