"""Files whose columns have declared types: Parquet, Feather, and tables of DuckDB.  Reads rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes

from dpnb._backends.reading import Wanted
from dpnb._sources.columns import chosen_names, only_table, quoted, table_of_arrow
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
