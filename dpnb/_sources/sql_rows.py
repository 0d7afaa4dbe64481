"""Reads other databases by SQLAlchemy, as values of Python, which are converted one by one.  Reads rows.

Reads other databases by SQLAlchemy, as values of Python, which are converted one by one.  Reads rows.

Such values have types of their own: SQLite stores any value in any column, MariaDB a date that is none, and what a
driver makes of one is as it is.  So the type of a column is that of its declaration, and a value counts or not as it
would in a CSV file: numbers for `Bounded`, else texts, and dates in ISO 8601 where the driver does not tell types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from dpnb._backends.column_types import NUMBERS, StorageType, refuse_absent, refuse_mismatch
from dpnb._backends.memory.prepare.columns import objects
from dpnb._backends.memory.prepare.values import floats
from dpnb._backends.reading import Wanted
from dpnb._sources.driver import COLUMNS, ROWS, Selected, attempt, batches_of, relation_of, selection
from dpnb._sources.source import DataSource, with_credentials
from dpnb.errors import SchemaError
from dpnb.schema import Bounded, Dates, encodable, text_of

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlalchemy import CursorResult


ROWS_AT_ONCE = 2**15

BYTES = "latin-1"
"""The encoding in which any bytes are a text."""

MYSQL = ("SET time_zone = '+00:00'", "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")

BEGIN: Mapping[str, Sequence[str]] = {
    "sqlite": ("PRAGMA query_only = ON", "BEGIN"),
    "mysql": MYSQL,
    "mariadb": MYSQL,
}
"""What begins a read-only transaction, in which all tables are as at one moment."""

DRIVERS = {"mysql": "mysql+pymysql", "mariadb": "mariadb+pymysql", "sqlite": "sqlite+pysqlite"}
"""By a scheme that names none."""

UNKNOWN, TIMESTAMP, DATE_CODES = -1, 7, (10, 14)
MYSQL_TYPES: Mapping[int, StorageType] = {
    **dict.fromkeys((1, 2, 3, 8, 9, 13), "whole numbers"),
    **dict.fromkeys((4, 5), "numbers"),
    **dict.fromkeys((0, 246), "decimal numbers"),
    **dict.fromkeys((TIMESTAMP, *DATE_CODES, 12), "dates or times"),
    **dict.fromkeys((15, 247, 248, 249, 250, 251, 252, 253, 254), "texts"),
    11: "durations",
    **dict.fromkeys((16, 255), "bytes"),
}
"""The types of columns by the numbers that MySQL and MariaDB send; the other drivers tell none."""


class SqlReader:
    """A connection by SQLAlchemy, in one transaction."""

    def __init__(self, location: str) -> None:
        import sqlalchemy

        scheme, colon, rest = with_credentials(location).partition("://")
        url = sqlalchemy.make_url(f"{DRIVERS.get(scheme.lower(), scheme)}{colon}{rest}")
        self._backend, self._is_pymysql = url.get_backend_name(), url.get_driver_name() == "pymysql"
        self._tells = self._backend in ("mysql", "mariadb")  # the types of columns
        if self._backend == "sqlite":  # which would otherwise make a missing file
            url = url.set(database=f"file:{quote(url.database or '')}").update_query_dict({"mode": "ro", "uri": "true"})
        self._engine = sqlalchemy.create_engine(url, poolclass=sqlalchemy.NullPool)
        # A statement without parameters, in which a percent sign is one.
        options: dict[str, Any] = {"no_parameters": True, "stream_results": True, "max_row_buffer": ROWS_AT_ONCE}
        self._connection = self._engine.connect().execution_options(**options)
        if self._backend == "sqlite":
            driver: Any = self._connection.connection.driver_connection
            driver.text_factory = _decoded
        for statement in BEGIN.get(self._backend, ()):
            self._connection.exec_driver_sql(statement)

    def select(self, source: DataSource, wanted: Wanted) -> Selected:
        """See `DatabaseReader`."""
        import pyarrow as pa

        quoted = self._quoted
        relation = relation_of(source, quoted)
        described = attempt(
            COLUMNS, lambda: self._described(selection(self._every(source, quoted), relation, " WHERE 1 = 0"))
        )
        every = [name for name, _ in described]
        names = every if wanted.columns is None else [*wanted.columns]
        for name in names:
            if every.count(name) != 1:
                refuse_absent(name, every)
        types = {name: code for name, code in described if name in names}
        text = _text_of_bytes if self._is_pymysql else _text
        converters = [_converter(name, types[name], wanted, text) for name in names]
        columns = ", ".join(map(quoted, names))
        result = attempt(ROWS, lambda: self._rows(selection(columns, relation)))
        schema = pa.schema([(name, convert([]).type) for name, convert in zip(names, converters, strict=True)])
        parts = batches_of(iter(partial(result.fetchmany, ROWS_AT_ONCE), []))
        untyped = frozenset(name for name in names if wanted.schema is None and types[name] not in MYSQL_TYPES)
        return Selected(every, schema, (_batch(rows, converters, schema) for rows in parts), untyped)

    def close(self) -> None:
        """End the transaction."""
        self._connection.close()
        self._engine.dispose()

    def _every(self, source: DataSource, quoted: Callable[[str], str]) -> str:
        """All columns; of MariaDB those that the account may read, since only who may read all may write `*`."""
        schema, _, table = source.table.rpartition(".")
        if not self._tells or not table:
            return "*"
        rows = self._connection.exec_driver_sql(
            f"SELECT column_name FROM information_schema.columns WHERE table_name = {_literal(table)} "  # noqa: S608
            f"AND table_schema = {_literal(schema) if schema else 'database()'} AND privileges LIKE '%select%' "
            "ORDER BY ordinal_position"
        )
        return ", ".join(quoted(name) for (name,) in rows.all()) or "*"  # which says why there is none

    def _quoted(self, name: str) -> str:
        dialect = self._engine.dialect
        text: str = dialect.identifier_preparer.quote_identifier(name)
        # Where a percent sign would be a parameter, two stand for one; statements have no parameters here.
        return text.replace("%%", "%") if dialect.paramstyle in ("format", "pyformat") else text

    def _rows(self, statement: str) -> CursorResult[Any]:
        """The rows of a statement; of pymysql, which raises at a text that is not UTF-8, with the bytes of texts."""
        if not self._is_pymysql:
            return self._connection.exec_driver_sql(statement)
        driver: Any = self._connection.connection.driver_connection
        usual, driver.encoding = driver.encoding, BYTES
        try:
            return self._connection.exec_driver_sql(statement.encode().decode(BYTES))
        finally:
            driver.encoding = usual

    def _described(self, statement: str) -> list[tuple[str, int]]:
        """The names of columns and what is known of their types."""
        with self._connection.exec_driver_sql(statement) as result:
            description: Any = getattr(result.cursor, "description", ())
            return [(str(name), code if self._tells else UNKNOWN) for name, code, *_ in description]


def _converter(
    name: str, code: int, wanted: Wanted, text: Callable[[Any], str | None]
) -> Callable[[Sequence[Any]], pa.Array]:
    """What makes an Arrow array of the values of a column; refuses a type that cannot match the declared one."""
    kind, column = MYSQL_TYPES.get(code), (wanted.schema or {}).get(name)
    if column is not None:
        refuse_mismatch(name, column, kind)
    if name == wanted.unit:
        if kind == "numbers":
            raise SchemaError(
                f"privacy_unit {name!r}: must not be a column of floating-point numbers; give a query that casts it"
            )
        return partial(_texts, of=text)
    if isinstance(column, Bounded) or (column is None and kind in NUMBERS):
        return numbers
    if kind == "dates or times":
        return partial(_dates, code=code)
    if isinstance(column, Dates):
        return partial(_texts, of=_moment)
    return partial(_texts, of=text)


def _literal(text: str) -> str:
    """A text in a statement for MariaDB, whatever characters it has."""
    return f"convert(x'{text.encode().hex()}' using utf8mb4)"


def _batch(rows: Sequence[Any], converters: Sequence[Callable[[Sequence[Any]], pa.Array]], schema: pa.Schema) -> Any:
    import pyarrow as pa

    columns = zip(*rows, strict=True)
    return pa.record_batch([convert(values) for convert, values in zip(converters, columns, strict=True)], schema)


# --- values, one by one -----------------------------------------------------------------------------------------------


def numbers(values: Sequence[Any]) -> pa.Array:
    """Finite numbers as doubles; null for any other value."""
    import pyarrow as pa

    found = floats(objects([None if isinstance(value, bytes | bytearray | memoryview) else value for value in values]))
    return pa.array(found, pa.float64(), from_pandas=True)


def _dates(values: Sequence[Any], code: int) -> pa.Array:
    """Dates of a column that has only these; null for one that the driver gives as text, since it is none."""
    import pyarrow as pa

    kind = pa.date32() if code in DATE_CODES else pa.timestamp("us", "UTC" if code == TIMESTAMP else None)
    return pa.array([value if isinstance(value, date) else None for value in values], kind)


def _texts(values: Sequence[Any], of: Callable[[Any], str | None]) -> pa.Array:
    import pyarrow as pa

    return pa.array(map(of, values), pa.string(), size=len(values))


def _text(value: Any) -> str | None:
    try:
        if type(value) is str:  # most of them
            return value if encodable(value) else None
        if isinstance(value, date):
            return _moment(value)
        if isinstance(value, Decimal):
            value = int(value) if value == value.to_integral_value() else float(value)
        text = text_of(value)
        return text if text is not None and encodable(text) else None
    except Exception:  # noqa: BLE001  (an unusual value, such as a number of thousands of digits: it does not count)
        return None


def _text_of_bytes(value: Any) -> str | None:
    """A text of which the bytes were read; None if it is not UTF-8, as a half of a pair of UTF-16."""
    return _decoded(value.encode(BYTES)) if type(value) is str else _text(value)


def _moment(value: Any) -> str | None:
    """A date or a time as the text that it is in ISO 8601."""
    if isinstance(value, date):
        return value.isoformat()
    return _text(value) if isinstance(value, str) else None


def _decoded(value: bytes) -> str | None:
    """A text of SQLite or MariaDB, which store any bytes as one; None if it is not UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None
