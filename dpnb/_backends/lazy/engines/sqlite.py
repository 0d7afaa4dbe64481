"""The engine SQLite: its connection, functions in Python, and values whose types a column does not promise."""

from __future__ import annotations

import datetime as dtm
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import ibis.expr.datatypes as dt
import ibis.expr.operations as ops
import sqlglot.expressions as sge
from ibis.backends.sql.compilers.sqlite import SQLiteCompiler

from dpnb._backends.contribution import label_hash
from dpnb._backends.lazy.engines.engine import Paths
from dpnb._backends.lazy.engines.guarded_sql import LONGEST, GuardedSql, joined_steps
from dpnb._backends.lazy.engines.sql import SqlEngine
from dpnb._plan.expressions.letters import changed_case
from dpnb.errors import SchemaError


def _decoded(text: bytes | None) -> str | None:
    try:
        return None if text is None or len(text) > LONGEST else text.decode()
    except UnicodeDecodeError:
        return None


EPOCH = dtm.datetime(1970, 1, 1, tzinfo=dtm.UTC)
DAYS = 719_163  # the ordinal of 1970-01-01


def _micros(text: bytes | None) -> int | None:
    try:
        time = dtm.datetime.fromisoformat((text or b"").decode())
        return (time.replace(tzinfo=time.tzinfo or dtm.UTC) - EPOCH) // dtm.timedelta(microseconds=1)
    except (ValueError, OverflowError):
        return None


def _part(part: str, days: int | None) -> int | None:
    if days is None or not 0 < days + DAYS <= dtm.date.max.toordinal():
        return None
    date = dtm.date.fromordinal(days + DAYS)
    return date.timetuple().tm_yday if part == "dayofyear" else int(getattr(date, part))


FUNCTIONS: dict[str, tuple[int, Callable[..., Any]]] = {
    "dpnb_text": (1, _decoded),
    "dpnb_micros": (1, _micros),
    "dpnb_part": (2, _part),
    "dpnb_hash": (1, lambda text: None if text is None else label_hash(text)),
    "dpnb_case": (2, lambda text, case: None if text is None else changed_case(text, case)),
    "dpnb_length": (1, lambda text: None if text is None else len(text)),
    "dpnb_starts": (2, lambda text, start: None if text is None else text.startswith(start)),
    "dpnb_ends": (2, lambda text, end: None if text is None else text.endswith(end)),
    "dpnb_contains": (2, lambda text, part: None if text is None else part in text),
}
"""Functions by name, each with its number of arguments.  SQLite's own end a text at a NUL, or do not exist."""


DIGIT = 2**62
"""A power of two that is an integer of SQLite."""


class GuardedSQLite(GuardedSql, SQLiteCompiler):  # type: ignore[misc]
    """SQLite raises at an integer sum or magnitude of more than 64 bits; doubles become infinite or null."""

    __slots__ = ()
    post_rewrites = (joined_steps,)

    def write_literal(self, op: Any, *, value: Any, dtype: Any) -> Any:
        """As elsewhere; a NUL would end the query."""
        if isinstance(value, str) and "\0" in value:
            return self.written(f"CAST(X'{value.encode().hex()}' AS TEXT)")
        return super().write_literal(op, value=value, dtype=dtype)

    def real(self, value: float) -> Any:
        """A constant double, of integers and quotients of them: SQLite rounds decimals of 16 digits otherwise."""
        if value != value or value in (float("inf"), -float("inf")):
            return self.written("NULL")
        numerator, denominator = value.as_integer_ratio()
        above = below = 0
        while abs(numerator) >= 2**53 and numerator % 2 == 0:
            numerator, above = numerator // 2, above + 1
        while denominator > DIGIT:
            denominator, below = denominator // 2, below + 1
        steps = [f"* {2 ** min(62, above - done)}.0" for done in range(0, above, 62)]
        steps += [f"/ {2 ** min(62, below - done)}.0" for done in range(0, below, 62)]
        return self.written(" ".join([f"CAST({numerator} AS REAL) / {denominator}.0", *steps]))

    def whole(self, number: Any) -> Any:
        return self.written("CAST({a} AS INTEGER)", a=number)

    def _binary(self, op: Any, left: Any, right: Any, sign: str) -> Any:
        # A value of an integer type, which may stand in a column of doubles, would be computed as an integer.
        cast = "CAST({} AS REAL)" if op.dtype.is_floating() else "{}"
        first, second = (cast.format(self.text(side).this) for side in (left, right))
        if type(op) is type(op.left) is ops.Add and op.left.dtype == op.dtype:
            first = self.text(left).this[1:-1]  # a long sum without parentheses, of which SQLite allows few
        return sge.Var(this=f"({first} {sign} {second})")

    def write_add(self, op: Any, *, left: Any, right: Any) -> Any:
        return self._binary(op, left, right, "+")

    def write_subtract(self, op: Any, *, left: Any, right: Any) -> Any:
        return self._binary(op, left, right, "-")

    def write_multiply(self, op: Any, *, left: Any, right: Any) -> Any:
        return self._binary(op, left, right, "*")

    def write_divide(self, op: Any, *, left: Any, right: Any) -> Any:
        return self._binary(op, left, right, "/")

    def write_exp(self, op: Any, *, arg: Any) -> Any:
        return self.written("EXP({a})", a=arg)

    def write_power(self, op: Any, *, left: Any, right: Any) -> Any:
        return self.written("POWER({a}, {b})", a=left, b=right)

    def write_is_nan(self, op: Any, *, arg: Any) -> Any:
        return self.written("{a} IS NULL AND NULL", a=arg)  # NaN is null

    def write_is_inf(self, op: Any, *, arg: Any) -> Any:
        return self.written("ABS({a}) = 9e999", a=arg)

    def write_hash_of_text(self, op: Any, *, arg: Any) -> Any:
        return self.f.anon.dpnb_hash(arg)

    def write_microseconds(self, op: Any, *, arg: Any) -> Any:
        return arg  # the table is read so

    def write_date_of_days(self, op: Any, *, arg: Any) -> Any:
        return arg

    def write_extract_year(self, op: Any, *, arg: Any) -> Any:
        return self.f.anon.dpnb_part(sge.convert("year"), arg)

    def write_extract_month(self, op: Any, *, arg: Any) -> Any:
        return self.f.anon.dpnb_part(sge.convert("month"), arg)

    def write_extract_day(self, op: Any, *, arg: Any) -> Any:
        return self.f.anon.dpnb_part(sge.convert("day"), arg)

    def write_extract_day_of_year(self, op: Any, *, arg: Any) -> Any:
        return self.f.anon.dpnb_part(sge.convert("dayofyear"), arg)

    def write_with_case(self, op: Any, *, arg: Any, case: Any) -> Any:
        return self.f.anon.dpnb_case(arg, sge.convert(op.case))

    def write_string_length(self, op: Any, *, arg: Any) -> Any:
        return self.f.anon.dpnb_length(arg)

    def write_starts_with(self, op: Any, *, arg: Any, start: Any) -> Any:
        return self.f.anon.dpnb_starts(arg, start)

    def write_ends_with(self, op: Any, *, arg: Any, end: Any) -> Any:
        return self.f.anon.dpnb_ends(arg, end)

    def write_string_contains(self, op: Any, *, haystack: Any, needle: Any) -> Any:
        return self.f.anon.dpnb_contains(haystack, needle)


# --- the engine -------------------------------------------------------------------------------------------------------


class SQLite(SqlEngine):
    """Tables of a file of SQLite."""

    name, label = "sqlite", "SQLite"
    compiler = GuardedSQLite()
    fence = ("MATERIALIZED ", "")

    def connect(self, native: Any) -> Any:
        import sqlite3

        files = {name: file for _, name, file in native.get_backend().con.execute("PRAGMA database_list")}
        if not files.get("main"):
            raise SchemaError("SQLite: the database must be a file, which is opened again; this one is in memory")
        self._file = str(Path(files["main"]).resolve())
        address = f"{Path(self._file).as_uri()}?mode=ro"
        connection = sqlite3.connect(address, uri=True, check_same_thread=False, isolation_level=None, timeout=60)
        weakref.finalize(self, connection.close)
        for name, (arguments, function) in FUNCTIONS.items():
            connection.create_function(name, arguments, function, deterministic=True)
        if connection.execute("PRAGMA encoding").fetchone() != ("UTF-8",):
            raise SchemaError("SQLite: the encoding of the database must be UTF-8, in which its texts are read")
        if sqlite3.sqlite_version_info < (3, 35) or not _has_functions(connection):
            raise SchemaError("SQLite: must be of version 3.35 or newer, and have mathematical functions")
        return connection

    def description(self, table: ops.DatabaseTable) -> str | None:
        """Of the types nothing: each value has its own."""
        query = "SELECT 1 FROM main.sqlite_master WHERE name = ? AND type = 'table' AND rootpage > 0"
        is_main = table.namespace.database in (None, "main") and table.namespace.catalog is None
        return "stored" if is_main and self._connection.execute(query, (table.name,)).fetchone() else None

    def files(self, native: Any) -> Paths:
        file, log = Path(self._file), Path(f"{self._file}-wal")

        def paths() -> list[str]:
            """The log has what was written last; also a reader makes an empty one."""
            return [str(path) for path in (file, log) if path == file or (path.exists() and path.stat().st_size)]

        return paths

    def begin(self) -> None:
        self._connection.execute("BEGIN")

    def cancel(self) -> None:
        self._connection.interrupt()

    def fetched(self, sql: str) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql).fetchall()  # type: ignore[no-any-return]

    def source(self, table: str, schema: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        columns, types = [], {}
        for name, dtype in schema.items():
            quoted = sge.to_identifier(name, quoted=True).sql("sqlite")
            of, types[name] = _read(quoted, dtype)
            columns.append(f"{of} AS {quoted}")
        return f"SELECT {', '.join(columns)} FROM ({table}) AS given", types  # noqa: S608  (names are quoted)


def _has_functions(connection: Any) -> bool:
    try:
        return bool(connection.execute("SELECT FLOOR(EXP(LN(POWER(2.0, 0.5))))").fetchone())
    except Exception:  # noqa: BLE001  (it has no such function)
        return False


def _read(column: str, dtype: Any) -> tuple[str, Any]:
    """A column of a table in which each value has the declared type, or is null."""

    def where(kinds: str, value: str) -> str:
        return f"CASE WHEN TYPEOF({column}) IN ({kinds}) THEN {value} END"

    if dtype.is_boolean():
        return f"CASE WHEN TYPEOF({column}) = 'integer' AND {column} IN (0, 1) THEN {column} END", "boolean"
    if dtype.is_integer():
        return where("'integer'", column), "int64"
    if dtype.is_floating() or dtype.is_decimal():
        return where("'integer', 'real'", f"CAST({column} AS REAL)"), "float64"
    if dtype.is_string():
        return where("'text'", f"dpnb_text(CAST({column} AS BLOB))"), "string"
    if dtype.is_date() or dtype.is_timestamp():
        return where("'text'", f"dpnb_micros(CAST({column} AS BLOB))"), dtype
    return "NULL", dt.unknown
