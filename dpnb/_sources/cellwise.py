"""Files in which each value has a type of its own: Excel and SQLite.  Reads rows, value by value."""

from __future__ import annotations

import sqlite3
import warnings
from contextlib import closing
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from dpnb._backends.reading import Wanted
from dpnb._sources.columns import chosen_names, only_table, quoted, table_of_values
from dpnb._sources.source import DataSource, refuse_unfinished

if TYPE_CHECKING:
    from dpnb._backends.source_table import SourceTable

ERRORS = frozenset({"#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#N/A", "#GETTING_DATA"})
"""What a cell of Excel holds whose formula failed."""


def read_excel(source: DataSource, wanted: Wanted) -> SourceTable:
    """Read a worksheet, cell by cell, of formulas the values that were stored; the first row names the columns."""
    import openpyxl

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they quote cells
        with closing(openpyxl.load_workbook(source.path, read_only=True, data_only=True)) as book:
            sheet = book[only_table(source.table, [one.title for one in book.worksheets], "sheet")]
            sheet.reset_dimensions()  # which some programs write wrongly
            rows = sheet.iter_rows(values_only=True)
            first = next((row for row in rows if any(cell is not None for cell in row)), ())
            header = ["" if cell is None else str(cell) for cell in first]
            places = {name: header.index(name) for name in chosen_names(header, wanted) if name}
            columns: dict[str, list[Any]] = {name: [] for name in places}
            count = 0
            for row in rows:
                if all(cell is None for cell in row):
                    continue  # as in a text file
                count += 1
                for name, place in places.items():
                    cell = row[place] if place < len(row) else None
                    columns[name].append(None if cell in ERRORS else cell)
    return table_of_values(columns, count, [name for name in header if name], wanted)


def read_sqlite(source: DataSource, wanted: Wanted) -> SourceTable:
    """Read a table of a SQLite file, in which each value has a type, whatever its column declares."""
    refuse_unfinished(source.path, "-wal")
    refuse_unfinished(source.path, "-journal")
    address = f"file:{quote(str(source.path.absolute()))}?mode=ro&immutable=1"
    with closing(sqlite3.connect(address, uri=True)) as connection:
        connection.text_factory = _decoded
        names = connection.execute("select name from sqlite_master where type in ('table', 'view') order by name")
        tables = [name for (name,) in names if not name.startswith("sqlite_")]
        origin = quoted(only_table(source.table, tables, "table"))
        header = [one[0] for one in connection.execute(f"select * from {origin} limit 0").description]  # noqa: S608  (quoted)
        chosen = chosen_names(header, wanted)
        rows = connection.execute(f"select {', '.join(map(quoted, chosen)) or 'null'} from {origin}")  # noqa: S608
        columns: dict[str, list[Any]] = {name: [] for name in chosen}
        count = 0
        for row in rows:
            count += 1
            for values, value in zip(columns.values(), row, strict=False):
                values.append(value)
    return table_of_values(columns, count, header, wanted)


def _decoded(text: bytes) -> str | None:
    try:
        return text.decode()
    except UnicodeDecodeError:
        return None
