"""The engine PostgreSQL: its connection, and its SQL of divisions, powers and others, which no row makes fail."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

import ibis.expr.datatypes as dt
import ibis.expr.operations as ops
import sqlglot.expressions as sge
from ibis.backends.sql.compilers.postgres import PostgresCompiler

from dpnb._backends.lazy.engines.guarded_sql import LONGEST, MOST, WHOLE, GuardedSql, joined_steps
from dpnb._backends.lazy.engines.sql import SqlEngine
from dpnb._backends.worker_thread import run_guarded
from dpnb._plan.expressions.letters import LETTERS
from dpnb._plan.expressions.nodes import Node
from dpnb.errors import SchemaError, UnsupportedError
from dpnb.schema import Schema


class GuardedPostgreSQL(GuardedSql, PostgresCompiler):  # type: ignore[misc]
    """PostgreSQL raises where a double, or an integer, leaves its range, also where it vanishes."""

    __slots__ = ()
    post_rewrites = (joined_steps,)

    def write_literal(self, op: Any, *, value: Any, dtype: Any) -> Any:
        """As elsewhere; nothing equals a text with a NUL."""
        if isinstance(value, str) and "\0" in value:
            return self.written("CAST(NULL AS TEXT)")
        return super().write_literal(op, value=value, dtype=dtype)

    # Operands are within a range in which no sum, product or quotient of two leaves that of doubles.

    def _operand(self, dtype: Any, number: Any) -> Any:
        """A number with a magnitude of at most `MOST`; one so near to zero that a product could vanish is zero."""
        within = self._limited(dtype, number)
        return (
            within
            if dtype.is_integer()
            else self.written(f"CASE WHEN ABS({{a}}) < {1 / MOST!r} THEN 0 ELSE {{b}} END", a=number, b=within)
        )

    def _limited(self, dtype: Any, number: Any, most: float = MOST) -> Any:
        """A number with a magnitude of at most `most`, which NaN gets too: it is above all others."""
        if dtype.is_integer():
            number = sge.cast(number, "DOUBLE")
            if most >= WHOLE * 2.0:
                return number
        return self.written(
            "FLOAT8SMALLER(FLOAT8LARGER({a}, {b}), {c})", a=number, b=self.real(-most), c=self.real(most)
        )

    def _constant(self, op: Any) -> Any:
        """A constant as `_operand` would make it; None for anything else."""
        if not isinstance(op, ops.Literal) or op.value is None:
            return None
        value = max(min(float(op.value), MOST), -MOST)
        return self.real(0.0 if abs(value) < 1 / MOST else value)

    def whole(self, number: Any) -> Any:
        return self.written("CAST({a} AS BIGINT)", a=self._limited(dt.float64, number, float(WHOLE)))

    def _binary(self, op: Any, left: Any, right: Any, sql: str, *, is_sum: bool = False) -> Any:
        if not op.dtype.is_floating():
            return self.written(sql, a=sge.cast(left, "BIGINT"), b=right)
        limit = self._limited if is_sum else self._operand
        a, b = (
            constant if (constant := self._constant(of)) is not None else limit(of.dtype, side)
            for of, side in ((op.left, left), (op.right, right))
        )
        return self.written(sql, a=a, b=b)

    def write_add(self, op: Any, *, left: Any, right: Any) -> Any:
        return self._binary(op, left, right, "{a} + {b}", is_sum=True)

    def write_subtract(self, op: Any, *, left: Any, right: Any) -> Any:
        return self._binary(op, left, right, "{a} - {b}", is_sum=True)

    def write_multiply(self, op: Any, *, left: Any, right: Any) -> Any:
        return self._binary(op, left, right, "{a} * {b}")

    def write_divide(self, op: Any, *, left: Any, right: Any) -> Any:
        return self._binary(op, left, right, "{a} / NULLIF({b}, 0)")

    def write_exp(self, op: Any, *, arg: Any) -> Any:
        return self.written("EXP({a})", a=self._limited(op.arg.dtype, arg, 346.0))  # e**346 < MOST

    def write_power(self, op: Any, *, left: Any, right: Any) -> Any:
        """A number that is positive, or 0, to a constant power."""
        exponent = float(op.right.value)
        most = 2.0 ** min(500 / max(abs(exponent), 1.0), 500.0)
        return self.written(
            "CASE WHEN {a} > 0 THEN POWER(FLOAT8SMALLER(FLOAT8LARGER({a}, {c}), {d}), {b}) WHEN {a} = 0 THEN {z} END",
            a=sge.cast(left, "DOUBLE"),
            b=self.real(exponent),
            c=self.real(1 / most),
            d=self.real(most),
            z=self.real(0.0) if exponent > 0 else self.written("NULL"),
        )

    def write_is_nan(self, op: Any, *, arg: Any) -> Any:
        return self.written("{a} = CAST('NaN' AS DOUBLE PRECISION)", a=arg)

    def write_is_inf(self, op: Any, *, arg: Any) -> Any:
        return self.written("ABS({a}) = CAST('Infinity' AS DOUBLE PRECISION)", a=arg)

    def write_hash_of_text(self, op: Any, *, arg: Any) -> Any:
        digest = self.written("DECODE(MD5({a}), 'hex')", a=arg)
        whole = [f"CAST(GET_BYTE({{a}}, {place}) AS BIGINT) * {2 ** (52 - 8 * place)}" for place in range(7)]
        return self.written(" + ".join([*whole, "CAST(GET_BYTE({a}, 7) / 16 AS BIGINT)"]), a=digest)

    def write_microseconds(self, op: Any, *, arg: Any) -> Any:
        kind = op.arg.dtype
        if kind.is_date():
            to_micros = "CAST({a} - CAST('1970-01-01' AS DATE) AS BIGINT) * 86400000000"
        else:
            to_micros = "CAST(EXTRACT(EPOCH FROM {a}) * 1000000 AS BIGINT)"
        name = "DATE" if kind.is_date() else "TIMESTAMP" if kind.timezone is None else "TIMESTAMPTZ"
        inside = f"{{a}} < CAST('294000-01-01' AS {name}) AND {{a}} > CAST('-infinity' AS {name})"
        return self.written(f"CASE WHEN {inside} THEN {to_micros} END", a=arg)

    def write_date_of_days(self, op: Any, *, arg: Any) -> Any:
        days = self._limited(op.arg.dtype, arg, 3_000_000.0)
        return self.written("CAST('1970-01-01' AS DATE) + CAST({a} AS INT)", a=days)

    def _part(self, part: str, arg: Any) -> Any:
        return self.written(f"CAST(EXTRACT({part} FROM {{a}}) AS BIGINT)", a=arg)

    def write_extract_year(self, op: Any, *, arg: Any) -> Any:
        return self._part("YEAR", arg)

    def write_extract_month(self, op: Any, *, arg: Any) -> Any:
        return self._part("MONTH", arg)

    def write_extract_day(self, op: Any, *, arg: Any) -> Any:
        return self._part("DAY", arg)

    def write_extract_day_of_year(self, op: Any, *, arg: Any) -> Any:
        return self._part("DOY", arg)

    def write_with_case(self, op: Any, *, arg: Any, case: Any) -> Any:
        letters = LETTERS[op.case]
        return self.f.anon.translate(arg, sge.convert("".join(letters)), sge.convert("".join(letters.values())))

    def write_string_length(self, op: Any, *, arg: Any) -> Any:
        return self.f.anon.char_length(arg)

    def write_starts_with(self, op: Any, *, arg: Any, start: Any) -> Any:
        return self.f.anon.starts_with(arg, start)

    def write_ends_with(self, op: Any, *, arg: Any, end: Any) -> Any:
        return self.written("RIGHT({a}, {n}) = {b}", a=arg, b=end, n=sge.convert(len(op.end.value)))

    def write_string_contains(self, op: Any, *, haystack: Any, needle: Any) -> Any:
        return self.written("STRPOS({a}, {b}) > 0", a=haystack, b=needle)


IS_COMPUTED = """
WITH RECURSIVE tables(id) AS (
    SELECT CAST(to_regclass(%s) AS oid) UNION SELECT inhrelid FROM pg_inherits JOIN tables ON inhparent = id
)
SELECT bool_or(
    relkind NOT IN ('r', 'p', 'm') OR relpersistence = 't' OR row_security_active(oid)
    OR EXISTS (SELECT FROM pg_attribute WHERE attrelid = oid AND attgenerated = 'v')
) FROM tables JOIN pg_class ON oid = id
"""
"""Whether rows of a table, or of one of its partitions, are computed when they are read, or chosen by a policy."""

TYPES = """
SELECT attname, CAST(atttypid AS int8), atttypmod FROM pg_attribute
WHERE attrelid = to_regclass(%s) AND attname = ANY(%s) ORDER BY attname
"""


class PostgreSQL(SqlEngine):
    """Tables of PostgreSQL."""

    name, label = "postgresql", "PostgreSQL"
    compiler = GuardedPostgreSQL()
    fence = ("", " OFFSET 0")

    def attach(self, native: Any) -> None:
        """Also end the transaction in which the table was described."""
        super().attach(native)
        self._connection.rollback()

    def connect(self, native: Any) -> Any:
        users = native.get_backend().con
        is_idle = users.info.transaction_status == 0
        ((schemas,),) = users.execute("SELECT current_schemas(false)").fetchall()
        if is_idle:
            users.rollback()
        names = ", ".join(sge.to_identifier(name, quoted=True).sql("postgres") for name in ("pg_catalog", *schemas))
        self._address = {**users.info.get_parameters(), "password": users.info.password}
        timeouts = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")  # can depend on rows
        self._settings = {
            "search_path": names,
            "jit": "off",
            "timezone": "'UTC'",
            "standard_conforming_strings": "on",
            **dict.fromkeys(timeouts, "0"),
        }
        return self._opened_connection()

    def _opened_connection(self) -> Any:
        import psycopg

        connection = psycopg.connect(**self._address, client_encoding="UTF8")
        weakref.finalize(self, connection.close)
        for name, value in self._settings.items():
            connection.execute(f"SET {name} = {value}")
        ((encoding,),) = connection.execute("SHOW server_encoding").fetchall()
        connection.commit()
        if encoding != "UTF8":
            raise SchemaError("PostgreSQL: the encoding of the database must be UTF8, so that all its texts are valid")
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        return connection

    def refuse(self, node: Node, schema: Schema) -> None:
        """Also a text with a NUL, which PostgreSQL cannot even be asked about."""
        super().refuse(node, schema)
        constants = [getattr(node, "value", None), getattr(node, "text", None), *(getattr(node, "values", None) or ())]
        if any(isinstance(constant, str) and "\0" in constant for constant in constants):
            raise UnsupportedError("a text with a null byte: no text of PostgreSQL has one; leave it out")

    def description(self, table: ops.DatabaseTable) -> str | None:
        parts = [part for part in (table.namespace.database, table.name) if part]
        name = ".".join(sge.to_identifier(part, quoted=True).sql("postgres") for part in parts)
        if self._connection.execute(IS_COMPUTED, (name,)).fetchone() != (False,):
            return None
        return str(self._connection.execute(TYPES, (name, list(table.schema))).fetchall())

    def begin(self) -> None:
        import psycopg

        try:
            self._connection.execute("SELECT 1")
        except psycopg.OperationalError:
            self._connection = self._reconnected()
        self._connection.rollback()  # the next statement begins the transaction

    def _reconnected(self) -> Any:
        """Its message may have the address of the server."""
        return run_guarded(self._opened_connection, "PostgreSQL does not answer; ask again when it does")

    def cancel(self) -> None:
        self._connection.cancel()

    def fetched(self, sql: str) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql).fetchall()  # type: ignore[no-any-return]

    def source(self, table: str, schema: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        columns, types = [], {}
        for name, dtype in schema.items():
            quoted = sge.to_identifier(name, quoted=True).sql("postgres")
            of, types[name] = _read(quoted, dtype)
            columns.append(f"{of} AS {quoted}")
        return f"SELECT {', '.join(columns)} FROM ({table}) AS given OFFSET 0", types  # noqa: S608  (names are quoted)


def _read(column: str, dtype: Any) -> tuple[str, Any]:
    """A column of a table such that each value has a type of few, and that type."""
    if dtype.is_integer():
        return f"CAST({column} AS BIGINT)", "int64"
    if dtype.is_floating():
        return f"CAST({column} AS DOUBLE PRECISION)", "float64"
    if dtype.is_decimal():
        # The conversion of a number that a double cannot hold is an error, also of a small one.
        decimal = f"CAST({column} AS NUMERIC)"  # Ibis calls `money` decimal too
        within = f"LEAST(GREATEST({decimal}, -1e300), 1e300)"
        number = f"CASE WHEN ABS({decimal}) < 1e-150 THEN 0 ELSE CAST({within} AS DOUBLE PRECISION) END"
        special = f"CAST({column} AS TEXT) IN ('NaN', 'Infinity', '-Infinity')"
        return f"CASE WHEN {special} THEN NULL ELSE {number} END", "float64"
    if dtype.is_string() or dtype.is_uuid():
        text = f"CAST({column} AS TEXT)"
        return f'CASE WHEN OCTET_LENGTH({text}) <= {LONGEST} THEN {text} COLLATE "C" END', "string"
    if dtype.is_timestamp() or dtype.is_date() or dtype.is_boolean():
        return column, dtype
    return "NULL", dt.Unknown() if not dtype.is_unknown() else dtype
