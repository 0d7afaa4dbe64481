"""The formats of sources, and which reader reads each; the tables of a session, and the digests of their files."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dpnb._backends.reading import ALL, Wanted
from dpnb._sources.columnar import read_duckdb, read_excel, read_feather, read_parquet, read_sqlite
from dpnb._sources.database_snapshots import read_database
from dpnb._sources.source import DataSource
from dpnb._sources.statistics_file import SAS, SPSS, STATA, reader
from dpnb._sources.text_file import read_text_table
from dpnb.errors import SchemaError

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


def read_tables(
    sources: Mapping[str, DataSource],
    argument: str,
    wanted: Mapping[str, Wanted] | None = None,
    digests: dict[str, str] | None = None,
) -> dict[str, SourceTable]:
    """Read data frames, by the names of their tables.

    Of a table that is not in `wanted`, all columns are read.  `argument` names the argument of the command line, or the
    key of the settings, for errors.  `digests` receives the SHA-256 of each table's file, of the bytes that were
    read; a file that changes meanwhile is then refused.
    """
    return {
        name: _read(source, argument, (wanted or {}).get(name, ALL), name, digests) for name, source in sources.items()
    }


def _read(source: DataSource, argument: str, wanted: Wanted, name: str, digests: dict[str, str] | None) -> SourceTable:
    words = repr(source.words)
    if not source.scheme and not source.path.exists():
        raise SchemaError(f"{argument}: must be an existing file; got {words}; give the path of the table's file")
    found = format_of(source)
    if found is None:
        raise SchemaError(f"{argument}: must be {IN_WORDS}; got {words}; convert the table to one")
    try:
        return found.read(source, wanted) if digests is None else _unchanged(found, source, wanted, name, digests)
    except SchemaError as error:
        message = f"{argument}: {words}: {error}"
    except ImportError:
        message = (
            f"{argument}: reading {words} needs a library for {found.name}, and it is not installed; pip install "
            f'"dpnb[{found.extra}]"'
        )
    except Exception as error:  # noqa: BLE001  (libraries raise many types; their messages may quote rows)
        fault = type(error).__name__
        message = f"{argument}: {words} must be a readable table; reading it raised {fault}; check the file"
    raise SchemaError(message)


def _unchanged(
    found: SourceFormat, source: DataSource, wanted: Wanted, name: str, digests: dict[str, str]
) -> SourceTable:
    before = _identities(source.path)
    digests[name] = digest_of(source.path, source.table)
    table = found.read(source, wanted)
    if _identities(source.path) != before:
        raise SchemaError("must not change while it is read; try again")
    return table


def _members(file: Path) -> dict[str, Path]:
    """The files of a table by their names in its folder; a single one has no name."""
    return (
        {str(one.relative_to(file)): one for one in sorted(file.rglob("*")) if one.is_file()}
        if file.is_dir()
        else {"": file}
    )


def _identities(file: Path) -> dict[str, tuple[int, ...]]:
    """What changes when a file is written or replaced."""
    found: dict[str, tuple[int, ...]] = {}
    for name, one in _members(file).items():
        status = one.stat()
        found[name] = (status.st_dev, status.st_ino, status.st_ctime_ns, status.st_mtime_ns, status.st_size)
    return found


def digest_of(file: Path, table: str = "") -> str:
    """SHA-256 of the bytes of a table's files, of their names in a folder, and of the name of a table in a file."""
    whole = hashlib.sha256(f"#{table}\0".encode() if table else b"")
    for name, one in _members(file).items():
        with one.open("rb") as opened:
            whole.update(f"{name}\0{hashlib.file_digest(opened, 'sha256').hexdigest()}\0".encode())
    return whole.hexdigest()
