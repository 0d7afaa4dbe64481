"""Files in which each value has a type of its own: Excel and SQLite.  Reads rows, value by value."""

from __future__ import annotations

import sqlite3
import warnings
from collections.abc import Iterator
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
            rows = _rows(sheet)
            named = {place: str(cell) for place, cell in next(rows, {}).items()}
            header = [*named.values()]
            chosen = {*chosen_names(header, wanted)}
            places = {name: place for place, name in named.items() if name in chosen}
            columns: dict[str, list[Any]] = {name: [] for name in places}
            count = 0
            for row in rows:
                count += 1
                for name, place in places.items():
                    cell = row.get(place)
                    columns[name].append(None if cell in ERRORS else cell)
    return table_of_values(columns, count, header, wanted)


def _rows(sheet: Any) -> Iterator[dict[int, Any]]:
    """The cells of each row that has some, by their columns.

    openpyxl raises at a cell whose content is not of its type, such as a number NaN: it is an empty one here.
    """
    from openpyxl.worksheet._reader import WorkSheetParser  # what iter_rows of a worksheet uses

    book = sheet.parent
    formats = {"date_formats": book._date_formats, "timedelta_formats": book._timedelta_formats}
    with sheet._get_source() as file:
        parser = WorkSheetParser(file, sheet._shared_strings, data_only=True, epoch=book.epoch, **formats)
        parse = parser.parse_cell

        def parse_alone(element: Any) -> dict[str, Any]:
            try:
                found: dict[str, Any] = parse(element)
            except Exception:  # noqa: BLE001  (of a cell alone)
                return {"column": parser.col_counter, "value": None}
            return found

        parser.parse_cell = parse_alone
        for _, cells in parser.parse():
            row = {cell["column"]: cell["value"] for cell in cells if cell["value"] is not None}
            if row:
                yield row  # as in a text file, without empty lines


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
