"""Which reader reads which source: one table, from which errors and settings name the formats too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpnb._backends.reading import Wanted
from dpnb._sources.cellwise import read_excel, read_sqlite
from dpnb._sources.columnar import read_duckdb, read_feather, read_parquet
from dpnb._sources.databases.reading import read_database
from dpnb._sources.source import DataSource
from dpnb._sources.statistics_file import SAS, SPSS, STATA, reader
from dpnb._sources.text_file import read_text_table

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


FORMATS = (
    SourceFormat("CSV", read_text_table, (".csv",)),
    SourceFormat("Parquet", read_parquet, (".parquet",), folders=True),
    SourceFormat("Feather", read_feather, (".feather", ".arrow")),
    SourceFormat("Excel", read_excel, (".xlsx", ".xlsm")),
    SourceFormat("Stata", reader("read_dta", STATA), (".dta",)),
    SourceFormat("SPSS", reader("read_sav", SPSS), (".sav", ".zsav")),
    SourceFormat("SAS", reader("read_sas7bdat", SAS), (".sas7bdat",)),
    SourceFormat("SAS transport", reader("read_xport", SAS), (".xpt",)),
    SourceFormat("DuckDB", read_duckdb, (".duckdb", ".ddb")),
    SourceFormat("SQLite", read_sqlite, (".sqlite", ".sqlite3", ".db")),
    SourceFormat(
        "databases",
        read_database,
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
