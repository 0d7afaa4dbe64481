"""Files whose columns have declared types: Parquet, Feather, and tables of DuckDB.  Reads rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpnb._backends.reading import Wanted
from dpnb._sources.columns import chosen_names, only_table, quoted, table_of_arrow
from dpnb._sources.source import DataSource, refuse_unfinished

if TYPE_CHECKING:
    from dpnb._backends.source_table import SourceTable


def read_parquet(source: DataSource, wanted: Wanted) -> SourceTable:
    """Read a Parquet file, or all in a folder; those in a folder ``year=2020`` in it have the text 2020 as year."""
    import pyarrow as pa
    from pyarrow import dataset

    path = source.path
    files = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
    parents = [part for file in files for part in file.relative_to(path).parent.parts] if path.is_dir() else []
    partitions = [*dict.fromkeys(part.partition("=")[0] for part in parents if "=" in part)]
    # As texts: pyarrow would infer numbers, of which 007 would be 7, from the names of all folders.
    texts = dataset.partitioning(pa.schema([(name, pa.string()) for name in partitions]), flavor="hive")
    of_folder = {"partitioning": texts, "partition_base_dir": str(path)} if partitions else {}
    data = dataset.dataset([*map(str, files)], format="parquet", **of_folder)
    header = data.schema.names
    return table_of_arrow(data.to_table(columns=chosen_names(header, wanted)), header, wanted, partitions)


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
