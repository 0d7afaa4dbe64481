"""Which reader reads which source: one table, from which errors and settings name the formats too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpnb._backends.reading import Wanted
from dpnb._sources.source import DataSource

if TYPE_CHECKING:
    from dpnb._backends.source_table import SourceTable

Reader = Callable[[DataSource, Wanted], "SourceTable"]
"""Reads a source; it may raise anything, of which the type alone is shown, or a `SchemaError` that quotes no row."""

COMPRESSED = (".gz", ".bz2", ".xz", ".zip")


@dataclass(frozen=True)
class SourceFormat:
    """One kind of sources."""

    name: str
    read: Reader
    suffixes: tuple[str, ...] = ()  # of files
    schemes: tuple[str, ...] = ()  # of URLs
    folders: bool = False  # whether a folder of such files is a table
    extra: str = "files"  # of dpnb, which installs what it needs


# --- readers, which import their libraries when first used ------------------------------------------------------------


def _csv(source: DataSource, wanted: Wanted) -> SourceTable:
    from dpnb._sources.text_file import read_text_table

    return read_text_table(source.path, wanted)


def _feather(source: DataSource, wanted: Wanted) -> SourceTable:
    import pandas as pd
    import pyarrow  # noqa: F401  (that it is installed)

    # With the types of the file: with numpy's, a null changes the type of its column.
    return _table(pd.read_feather(source.path, dtype_backend="pyarrow"), wanted)


def _parquet(source: DataSource, wanted: Wanted) -> SourceTable:
    import pandas as pd

    return _table(pd.read_parquet(source.path, engine="pyarrow", dtype_backend="pyarrow"), wanted)


def _database(source: DataSource, wanted: Wanted) -> SourceTable:
    from dpnb._sources.databases.reading import read_database

    return read_database(source, wanted)


def _table(frame: Any, wanted: Wanted) -> SourceTable:
    from dpnb._backends.source_table import SourceTable

    table = SourceTable(frame)
    table.reading = wanted.reading
    return table


# --- the formats ------------------------------------------------------------------------------------------------------

FORMATS = (
    SourceFormat("CSV", _csv, (".csv",)),
    SourceFormat("Parquet", _parquet, (".parquet",), folders=True),
    SourceFormat("Feather", _feather, (".feather", ".arrow")),
    SourceFormat(
        "databases",
        _database,
        schemes=("postgresql", "postgres", "mariadb", "mysql", "sqlite", "mssql", "oracle"),
        extra="databases",
    ),
)

_SUFFIXES = [suffix for one in FORMATS for suffix in one.suffixes]

IN_WORDS = (
    f"a {', '.join(_SUFFIXES[:-1])} or {_SUFFIXES[-1]} file (.csv also compressed, as .csv.gz), or a folder of "
    ".parquet files, or the URL of a database, as postgresql://host/database#table"
)
"""What a source must be."""


def format_of(source: DataSource) -> SourceFormat | None:
    """The format of a source, by its scheme or its suffix; None if it is none of these."""
    if source.scheme:
        name = source.scheme.partition("+")[0]  # after which a driver may be named
        return next((one for one in FORMATS if name in one.schemes), None)
    path = source.path
    if path.is_dir():
        folders = (one for one in FORMATS if one.folders and any(path.rglob(f"*{one.suffixes[0]}")))
        return next(folders, None)
    suffixes = ["", "", *(suffix.lower() for suffix in path.suffixes)]
    last = suffixes[-1]
    if last in COMPRESSED:
        last = suffixes[-2] if suffixes[-2] == ".csv" else ""
    return next((one for one in FORMATS if last in one.suffixes), None)
