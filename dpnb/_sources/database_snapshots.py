"""Reads tables of databases, and keeps what was read for one version of a table beside the ledger.  Reads rows.

A table, or a query, is read in one read-only transaction, as batches of Arrow.  The statement asks for the declared
columns and the unit alone, in a form that no row can make fail, and that makes no row change how another is read: a
driver that chooses the type of a column by its values, or raises at a value, is never asked for such values.  What
cannot be read as declared is refused by the type of its column, before rows are read.

==========  ==============  =========================================================================================
database    driver          one transaction, in which all tables of one declaration are read
==========  ==============  =========================================================================================
PostgreSQL  ADBC            repeatable read, read only: the same moment for all tables
MariaDB     pymysql         consistent snapshot, read only: the same moment for all tables of InnoDB
SQLite      sqlite3         read only: the same moment for all tables
others      as installed    as the driver begins one; the account must not be able to write
==========  ==============  =========================================================================================

No time limit is set: a large table may need long, and the administrator of the database can set one for the account.

A database changes between two starts, and a version is one table.  So a service reads it once, into a snapshot: Parquet
files that only the curator's account can read, ``<ledger>-snapshots/<version>/<table>.parquet``.  All tables of a
version are written in a hidden folder, which gets its name when they are complete and on disk; a crash before leaves
nothing that counts, and the next who takes a snapshot removes it.  Of two processes, one waits for the other.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from tempfile import mkdtemp
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from dpnb._backends.reading import Wanted
from dpnb._sources.columns import table_of_arrow
from dpnb._sources.driver import CONNECTING, DatabaseReader, attempt
from dpnb._sources.postgresql import PostgresReader
from dpnb._sources.source import DataSource
from dpnb._sources.sql_rows import SqlReader
from dpnb.errors import SchemaError

if TYPE_CHECKING:
    from dpnb._backends.source_table import SourceTable


SUFFIX = "-snapshots"
"""Of the folder, beside the ledger."""

PARTIAL = ".partial-"
PRIVATE_FOLDER, PRIVATE_FILE, OTHERS = 0o700, 0o600, 0o077
MAX_NAME = 200
ORIGIN = b"dpnb"
"""The key in a file's metadata of where and when it was read."""


@contextmanager
def connected(location: str) -> Iterator[DatabaseReader]:
    """Open a database for reading; `location` is its URL."""
    is_postgresql = location.lower().startswith("postgres")
    make: Callable[[str], DatabaseReader] = PostgresReader if is_postgresql else SqlReader
    connection = attempt(CONNECTING, lambda: make(location))
    try:
        yield connection
    finally:
        with suppress(Exception):  # what was read is complete, or its own error is raised
            connection.close()


def read_database(source: DataSource, wanted: Wanted) -> SourceTable:
    """Read a table into memory."""
    import pyarrow as pa

    with connected(source.location) as connection:
        selected = connection.select(source, wanted)
        arrow = pa.Table.from_batches(list(selected.batches), selected.schema)
    return table_of_arrow(arrow, selected.header, wanted, selected.untyped)


@dataclass(frozen=True)
class TableSnapshot:
    """The place of the snapshot of one version."""

    ledger: str  # its path
    version: str

    @property
    def folder(self) -> Path:
        """The folder of its files, which exists when they are complete."""
        return Path(f"{os.path.realpath(self.ledger)}{SUFFIX}") / _file_name(self.version, "version")

    @property
    def is_taken(self) -> bool:
        """Whether it is there."""
        return self.folder.is_dir()

    def files(self, sources: Mapping[str, DataSource], wanted: Mapping[str, Wanted]) -> dict[str, DataSource]:
        """Its files, by the names of their tables; refused if one has not what is wanted, or is of another table."""
        found = self._files(sources)
        for name, file in found.items():
            names, origin = _described(file)
            missing = [column for column in wanted[name].columns or () if column not in names]
            if not names:
                fault = f"lacks {str(file)!r}, or it is damaged"
            elif any(origin[key] != value for key, value in _selected(sources[name]).items()):
                fault = "is of another database, table or query than data names now"
            elif missing:
                fault = f"was taken without the column {missing[0]!r}"
            else:
                continue
            raise SchemaError(
                f"version: must be changed, since the snapshot of {self.version!r} {fault}; give another version, for "
                "which the database is read again"
            )
        return {name: DataSource(str(file)) for name, file in found.items()}

    def take(self, sources: Mapping[str, DataSource], wanted: Mapping[str, Wanted], argument: str) -> bool:
        """Read the databases, unless another process has done so meanwhile; return whether this one has.

        `argument` names the key of the settings, for errors.
        """
        _refuse_other_account(Path(self.ledger))
        with _alone(self.folder.parent) as top:
            if self.is_taken:
                return False
            made = Path(mkdtemp(prefix=PARTIAL, dir=top))  # with mode 0700
            try:
                for location in dict.fromkeys(source.location for source in sources.values()):
                    own = {name: source for name, source in sources.items() if source.location == location}
                    _write_all(made, own, wanted, argument)
                synchronize(made)
                made.rename(self.folder)
                synchronize(top)
            finally:
                shutil.rmtree(made, ignore_errors=True)
        return True

    def taken_at(self, names: Iterable[str]) -> str:
        """When it was taken, in UTC; of these tables, whose `files` are there."""
        return str(max(_described(file)[1]["taken"] for file in self._files(names).values()))

    def _files(self, names: Iterable[str]) -> dict[str, Path]:
        return {name: self.folder / f"{_file_name(name)}.parquet" for name in names}


def _described(file: Path) -> tuple[list[str], dict[str, str]]:
    """The columns of a file, and where and when it was read; no columns if it is not there or damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        schema = pq.read_schema(file)
        return schema.names, json.loads(schema.metadata[ORIGIN])
    except (OSError, pa.ArrowException, TypeError, KeyError, ValueError):
        return [], {}


def _selected(source: DataSource) -> dict[str, str]:
    """What is read of a database, which may move to another machine or folder."""
    database = PurePosixPath(urlsplit(source.location).path).name
    return {"database": database, "table": source.table, "query": source.query}


def _write_all(folder: Path, sources: Mapping[str, DataSource], wanted: Mapping[str, Wanted], argument: str) -> None:
    """Write the tables of one database, as they are at one moment."""
    at = next(iter(sources.values()))
    try:
        with connected(at.location) as connection:
            for name, at in sources.items():
                _write(folder / f"{_file_name(name)}.parquet", connection, at, wanted[name])
        return
    except SchemaError as error:
        message = f"{argument}: {at.words!r}: {error}"
    except OSError as error:  # of the file: those of a driver are named already
        message = _unwritable(folder.parent, error)
    raise SchemaError(message)


def _write(file: Path, connection: DatabaseReader, source: DataSource, wanted: Wanted) -> None:
    """Write a table batch by batch, so that memory does not grow with the rows."""
    import pyarrow.parquet as pq

    selected = connection.select(source, wanted)
    taken = datetime.now(UTC).isoformat(timespec="seconds")
    origin = {"source": source.words, "taken": taken, **_selected(source)}
    schema = selected.schema.with_metadata({ORIGIN: json.dumps(origin).encode()})
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE), "wb") as opened:
        with pq.ParquetWriter(opened, schema, compression="zstd") as writer:
            for batch in selected.batches:
                writer.write_batch(batch)
        opened.flush()
        os.fsync(opened.fileno())


@contextmanager
def _alone(top: Path) -> Iterator[Path]:
    """Hold the folder of snapshots, without what a crash has left there; made if there is none."""
    try:
        top.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
    except OSError as error:
        raise SchemaError(_unwritable(top, error)) from None
    _refuse_other_account(top)
    if stat.S_IMODE(top.stat().st_mode) & OTHERS:
        raise SchemaError(
            f"snapshots: must be for the curator's account alone; others can use {top}; run chmod 700 on it"
        )
    held = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        for left in top.glob(f"{PARTIAL}*"):
            shutil.rmtree(left, ignore_errors=True)
        yield top
    finally:
        os.close(held)


def _unwritable(folder: Path, error: OSError) -> str:
    fault = os.strerror(error.errno) if error.errno else type(error).__name__
    return f"snapshots: {str(folder)!r} must be a folder in which this account can write ({fault}); make room in it"


def _refuse_other_account(path: Path) -> None:
    if path.exists() and path.stat().st_uid != os.geteuid():
        raise SchemaError(
            f"snapshots: must be taken by the account to which {str(path)!r} belongs, which could not read them "
            "otherwise; run the command as that account"
        )


def synchronize(folder: Path) -> None:
    """Wait until the names of the files in a folder are on disk."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _file_name(name: str, otherwise: str = "table") -> str:
    """A name that any file may have, the same for the same name only."""
    escaped = quote(name, safe=" ")
    if escaped.startswith("."):
        escaped = f"%2E{escaped[1:]}"
    if len(escaped) > MAX_NAME:
        raise SchemaError(f"{otherwise}: must have a shorter name to be that of a snapshot; got {name!r}; shorten it")
    return escaped or otherwise
