"""Files whose columns, or whose values, have declared types: Parquet, Feather, DuckDB; Excel, SQLite."""

from __future__ import annotations

import sqlite3
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote_to_bytes

from dpnb._backends.reading import Wanted
from dpnb._sources.columns import chosen_names, only_table, quoted, table_of_arrow, table_of_values
from dpnb._sources.source import DataSource, refuse_unfinished
from dpnb.errors import SchemaError

if TYPE_CHECKING:
    from dpnb._backends.source_table import SourceTable


def read_parquet(source: DataSource, wanted: Wanted) -> SourceTable:
    """Read a Parquet file, or all in a folder; those in a folder ``year=2020`` in it have the text 2020 as year."""
    import pyarrow as pa
    from pyarrow import dataset

    path = source.path
    if (path / "_delta_log").is_dir() or any(path.glob("metadata/*.metadata.json")):
        raise SchemaError(
            "is a table of Delta Lake or Iceberg, whose files also have rows that were deleted or changed; open it in "
            "an engine, or write the rows that it has now into a Parquet file"
        )
    files = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
    parents = [part for file in files for part in file.relative_to(path).parent.parts] if path.is_dir() else []
    partitions = [*dict.fromkeys(part.partition("=")[0] for part in parents if "=" in part)]
    # As texts: pyarrow would infer numbers, of which 007 would be 7, from the names of all folders.  Encoded, as they
    # are: it would raise at a name that is not UTF-8.
    texts = pa.schema([(name, pa.string()) for name in partitions])
    hive = dataset.HivePartitioning(texts, segment_encoding="none")
    of_folder = {"partitioning": hive, "partition_base_dir": str(path)} if partitions else {}
    data = dataset.dataset([*map(str, files)], format="parquet", **of_folder)
    if len(files) > 1:
        stated = _common_schema([fragment.physical_schema for fragment in data.get_fragments()], wanted, partitions)
        data = data.replace_schema(pa.schema([*stated, *texts]))
    header = data.schema.names
    table = data.to_table(columns=chosen_names(header, wanted))
    for name in set(partitions).intersection(table.column_names):
        table = table.set_column(table.column_names.index(name), name, _unescaped(table[name]))
    return table_of_arrow(table, header, wanted, partitions)


def _common_schema(schemas: Sequence[Any], wanted: Wanted, partitions: Collection[str]) -> Any:
    """The columns of all files of a folder, each with the type that all state; a file may lack one, or have only nulls.

    pyarrow would give all files the types of the first, and raise at a value that has not that type.
    """
    import pyarrow as pa

    fields = [field for schema in schemas for field in schema]
    found: dict[str, Any] = {}
    for field in fields:
        if field.name not in found or pa.types.is_null(found[field.name].type):
            found[field.name] = field
    for name in chosen_names([name for name in found if name not in partitions], wanted):
        kinds = {_kind_of(field.type): None for field in fields if field.name == name} | {pa.null(): None}
        if len(kinds) > 2:
            stated = ", ".join(str(kind) for kind in kinds if kind != pa.null())
            raise SchemaError(
                f"column {name!r}: must have one type in all files of the folder, which state {stated}; write them "
                "again with one"
            )
        if any(schema.names.count(name) > 1 for schema in schemas):
            raise SchemaError(f"column {name!r}: must not be in a file of the folder more than once; rename one")
    return pa.schema([*found.values()])


def _kind_of(kind: Any) -> Any:
    """What a type must have in common with others; nothing for lists and the like, which cannot be declared."""
    import pyarrow as pa

    if pa.types.is_nested(kind):
        return pa.null()
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _unescaped(names: Any) -> Any:
    """The texts that names of folders write; null for one that is not UTF-8."""
    import pyarrow as pa

    encoded = pa.chunked_array([names.combine_chunks()]).combine_chunks().dictionary_encode()
    texts = [_decoded(unquote_to_bytes(name)) for name in encoded.dictionary.to_pylist()]
    return pa.DictionaryArray.from_arrays(encoded.indices, pa.array(texts, pa.string())).cast(pa.string())


def _decoded(text: bytes) -> str | None:
    try:
        return text.decode()
    except UnicodeDecodeError:
        return None


def read_feather(source: DataSource, wanted: Wanted) -> SourceTable:
    """Read a Feather file, which is Arrow's format for files."""
    from pyarrow import feather

    table = feather.read_table(source.path, memory_map=False)
    header = table.column_names
    return table_of_arrow(table.select([header.index(name) for name in chosen_names(header, wanted)]), header, wanted)


WIDE = ("HUGEINT", "UHUGEINT")
"""Types of whole numbers that may be longer than the 38 digits of Arrow's decimal numbers."""


def read_duckdb(source: DataSource, wanted: Wanted) -> SourceTable:
    """Read a table of a DuckDB file; a view may read this file alone."""
    import duckdb

    refuse_unfinished(source.path, ".wal")
    alone: dict[str, Any] = {"enable_external_access": "false", "autoload_known_extensions": "false"}
    with duckdb.connect(str(source.path), read_only=True, config=alone) as connection:
        listed = connection.sql(
            "select schema_name, table_name from duckdb_tables() union all "
            "select schema_name, view_name from duckdb_views() where not internal order by all"
        ).fetchall()
        tables = {name if schema == "main" else f"{schema}.{name}": (schema, name) for schema, name in listed}
        origin = ".".join(map(quoted, tables[only_table(source.table, [*tables], "table")]))
        whole = connection.sql(f"from {origin}")
        kinds = dict(zip(whole.columns, map(str, whole.types), strict=True))
        chosen = chosen_names(whole.columns, wanted)
        columns = ", ".join(
            f"try_cast({quoted(name)} as decimal(38, 0)) as {quoted(name)}" if kinds[name] in WIDE else quoted(name)
            for name in chosen
        )
        found = whole.select(columns or "null").to_arrow_table().select(chosen)
        return table_of_arrow(found, whole.columns, wanted)


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
