"""Reads PostgreSQL by ADBC, in the binary form of COPY.  Reads rows.

Reads PostgreSQL by ADBC, in the binary form of COPY.  Reads rows.

Every expression is one that no value can make fail: a numeric is sent as its text, since one of 400 digits is no double
and a cast to double precision would raise; a date outside the years 1 to 9999, as infinity, is sent as null, since no
date of Python is equal to it.  Texts of a database that is not in UTF-8 are sent as the bytes that they are, and are
decoded one by one: the server itself raises at one that it cannot convert.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpnb._backends.column_types import StorageType, refuse_absent, refuse_mismatch
from dpnb._backends.reading import Wanted
from dpnb._sources.driver import COLUMNS, ROWS, Selected, attempt, batches_of, relation_of, selection
from dpnb._sources.source import DataSource, with_credentials
from dpnb._sources.sql_rows import numbers
from dpnb.errors import SchemaError

if TYPE_CHECKING:
    import pyarrow as pa


BEGIN = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"

CONNECT_TIMEOUT = "connect_timeout"

PATIENCE = 30
"""Seconds to wait for a connection, unless the URL says it."""


@dataclass(frozen=True)
class _Type:
    """How a type is read: the expression, in which the column stands for {}, and the kind of its values."""

    expression: str
    kind: StorageType


AS_IT_IS, AS_TEXT = "{}", "{}::text"
WHOLE, NUMBER, NUMERIC = _Type(AS_IT_IS, "whole numbers"), _Type(AS_IT_IS, "numbers"), _Type(AS_TEXT, "decimal numbers")
NUMERIC_UNIT = _Type("trim_scale({})::text", "texts")
TEXT = _Type(AS_TEXT, "texts")
DATE = _Type("CASE WHEN {} BETWEEN '0001-01-01' AND '9999-12-31' THEN {} END", "dates or times")
TIME = _Type("CASE WHEN {} >= '0001-01-01' AND {} < '10000-01-01' THEN {} END", "dates or times")
INSTANT = _Type("CASE WHEN {} >= '0001-01-01Z' AND {} < '10000-01-01Z' THEN {} END", "dates or times")

TYPES: Mapping[str, _Type] = {
    **dict.fromkeys(("int2", "int4", "int8"), WHOLE),
    **dict.fromkeys(("float4", "float8"), NUMBER),
    "numeric": NUMERIC,
    "bool": _Type(AS_IT_IS, "truth values"),
    **dict.fromkeys(("text", "varchar", "bpchar", "name", "citext", "uuid"), TEXT),
    "date": DATE,
    "timestamp": TIME,
    "timestamptz": INSTANT,
}
"""By the name of a type; an enumeration is read as texts, and a domain as the type that it restricts."""

CODECS = {
    **{"UTF8": "utf-8", "SQL_ASCII": "utf-8", "KOI8R": "koi8-r", "KOI8U": "koi8-u", "WIN866": "cp866"},
    **{f"LATIN{number}": f"latin-{number}" for number in range(1, 11)},
    **{f"WIN{number}": f"cp{number}" for number in range(1250, 1259)},
    **{"EUC_JP": "euc-jp", "EUC_KR": "euc-kr", "EUC_CN": "gb2312"},
}
"""How the texts of a database are decoded, by its encoding."""


class PostgresReader:
    """A connection by ADBC, in one transaction."""

    def __init__(self, location: str) -> None:
        import adbc_driver_postgresql.dbapi as adbc

        url = with_credentials(location)
        if CONNECT_TIMEOUT not in url:
            url += f"{'&' if '?' in url else '?'}{CONNECT_TIMEOUT}={PATIENCE}"
        self._connection: Any = adbc.connect(url)
        self._cursor: Any = self._connection.cursor()
        self._cursor.execute(BEGIN)
        ((encoding,),) = self._rows("SELECT current_setting('server_encoding')")
        if encoding not in CODECS:
            raise SchemaError(f"is a database in the encoding {encoding}, which is not read; dump it into one in UTF8")
        self._codec = CODECS[encoding]
        self._is_utf8 = encoding == "UTF8"
        self._cursor.execute(f"SET LOCAL client_encoding TO '{'UTF8' if self._is_utf8 else 'SQL_ASCII'}'")

    def select(self, source: DataSource, wanted: Wanted) -> Selected:
        """See `DatabaseReader`."""
        import pyarrow as pa

        relation = relation_of(source, _quoted)
        every = attempt(COLUMNS, lambda: self._cursor.adbc_execute_schema(selection("*", relation)).names)
        names = self._readable(source, every) if wanted.columns is None else [*wanted.columns]
        for name in names:
            if every.count(name) != 1:
                refuse_absent(name, every)
        types = attempt(COLUMNS, lambda: self._types(relation, names))
        for name, one in types.items():
            if name in (wanted.schema or {}):
                refuse_mismatch(name, (wanted.schema or {})[name], "numbers" if one is NUMERIC else one.kind)
        if wanted.unit is not None and types[wanted.unit] is NUMERIC:  # in which 7 and 7.0 are equal
            types[wanted.unit] = NUMERIC_UNIT
        selected = ", ".join(
            f"{one.expression.replace('{}', _quoted(name))} AS {_quoted(name)}" for name, one in types.items()
        )
        reader = attempt(ROWS, lambda: self._batches(selection(selected, relation)))
        doubles = {name for name, one in types.items() if one is NUMERIC}
        schema = pa.schema([(one.name, pa.float64() if one.name in doubles else one.type) for one in reader.schema])
        return Selected(every, schema, (self._read(batch, schema) for batch in batches_of(iter(reader))))

    def close(self) -> None:
        """End the transaction."""
        self._cursor.close()
        self._connection.close()

    def _rows(self, statement: str) -> list[tuple[Any, ...]]:
        self._cursor.execute(statement)
        rows: list[tuple[Any, ...]] = self._cursor.fetchall()
        return rows

    def _batches(self, statement: str) -> Any:
        self._cursor.execute(statement)
        return self._cursor.fetch_record_batch()

    def _readable(self, source: DataSource, every: list[str]) -> list[str]:
        """The columns of a table that the account may read; all if it may read none, so that reading says so."""
        if not source.table:
            return every
        name = relation_of(source, _quoted).replace("'", "''")
        allowed = self._rows(
            "SELECT attname::text FROM pg_catalog.pg_attribute WHERE attnum > 0 AND NOT attisdropped "  # noqa: S608
            f"AND attrelid = '{name}'::regclass AND has_column_privilege(attrelid, attnum, 'SELECT')"
        )
        return [name for name in every if (name,) in allowed] or every

    def _types(self, relation: str, names: Sequence[str]) -> dict[str, _Type]:
        """The types of columns, of which the database tells what the driver does not; reads no row."""
        columns = ", ".join(_quoted(name) for name in names)
        ids = ", ".join(f"({number}, pg_typeof(t.{_quoted(name)})::oid)" for number, name in enumerate(names))
        found = self._rows(
            selection(
                "k.number, coalesce(base.typname, own.typname)::text, coalesce(base.typtype, own.typtype)::text",
                f"(SELECT 1) AS one LEFT JOIN ({selection(columns, relation, ' LIMIT 0')}) AS t ON true "
                f"CROSS JOIN LATERAL (VALUES {ids}) AS k (number, id) JOIN pg_catalog.pg_type AS own ON own.oid = k.id "
                "LEFT JOIN pg_catalog.pg_type AS base ON base.oid = own.typbasetype",
            )
        )
        return {names[number]: _type_of(names[number], name, kind) for number, name, kind in sorted(found)}

    def _read(self, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
        import pyarrow as pa

        arrays = []
        for array, field in zip(batch.columns, schema, strict=True):
            if array.type != field.type:
                array = numbers(array.to_pylist())
            elif pa.types.is_string(array.type) and not self._is_utf8:
                array = pa.array(_decoded(array, self._codec), pa.string())
            arrays.append(array)
        return pa.record_batch(arrays, schema)


def _type_of(column: str, name: str, kind: str) -> _Type:
    found = TEXT if kind == "e" else TYPES.get(name)
    if found is None:
        raise SchemaError(
            f"column {column!r}: has the PostgreSQL type {name}, which is not read; leave it out of the schema, or "
            "give a query that casts it"
        )
    return found


def _decoded(array: Any, codec: str) -> Iterator[str | None]:
    """Texts one by one; None for one that is not in the encoding, and whatever cannot be kept in UTF-8."""
    import pyarrow as pa

    for value in array.cast(pa.binary()).to_pylist():
        try:
            yield None if value is None else value.decode(codec)
        except UnicodeDecodeError:
            yield None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
