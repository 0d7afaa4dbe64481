"""Reads a table, or a query, of a database in one read-only transaction, as batches of Arrow.  Reads rows.

The statement asks for the declared columns and the unit alone, in a form that no row can make fail, and that makes no
row change how another is read: a driver that chooses the type of a column by its values, or raises at a value, is never
asked for such values.  What cannot be read as declared is refused by the type of its column, before rows are read.

==========  ==============  =========================================================================================
database    driver          one transaction, in which all tables of one declaration are read
==========  ==============  =========================================================================================
PostgreSQL  ADBC            repeatable read, read only: the same moment for all tables
MariaDB     pymysql         consistent snapshot, read only: the same moment for all tables of InnoDB
SQLite      sqlite3         read only: the same moment for all tables
others      as installed    as the driver begins one; the account must not be able to write
==========  ==============  =========================================================================================

No time limit is set: a large table may need long, and the administrator of the database can set one for the account.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from dpnb._backends.reading import Wanted
from dpnb._sources.columns import table_of_arrow
from dpnb._sources.databases.driver import CONNECTING, DatabaseReader, attempt
from dpnb._sources.databases.postgresql import PostgresReader
from dpnb._sources.databases.sql_rows import SqlReader
from dpnb._sources.source import DataSource

if TYPE_CHECKING:
    from dpnb._backends.source_table import SourceTable


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
