"""DuckDB."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from dpnb._backends.lazy.engines import duckdb_plan
from dpnb._backends.lazy.engines.engine import (
    HEX_DIGITS,
    LIMB,
    ROWS_AT_ONCE,
    Frame,
    InProcessEngine,
    Paths,
    T,
    folded,
    opened,
    squared,
)
from dpnb._backends.lazy.engines.plans import LIMITED, NUMBERED, ONE_OF_SEVERAL, RANDOM, TIME
from dpnb._backends.worker_thread import refuse_stopped
from dpnb._plan.expressions.letters import END, LETTERS, Case, changed_case
from dpnb.errors import SchemaError

_JSON_TYPES = {str: "VARCHAR", float: "DOUBLE", int: "BIGINT"}
_ANY_ROW = {"first", "last", "any_value", "arbitrary"}
_BY_ORDER = {
    *("WINDOW_ROW_NUMBER", "WINDOW_NTILE", "WINDOW_FIRST_VALUE", "WINDOW_LAST_VALUE", "WINDOW_NTH_VALUE"),
    *("WINDOW_LEAD", "WINDOW_LAG"),
}
_NOW = {"current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"}
_SETTINGS = {"current_setting", "current_schema", "current_schemas", "current_database", "in_search_path"}
"""Functions that DuckDB calls inconsistent, but whose results change only with the connection's settings."""


class DuckDB(InProcessEngine):
    """Relations of DuckDB: tables, Parquet, CSV or other sources; they may be larger than memory."""

    name, label = "duckdb", "DuckDB"
    rows_at_once = ROWS_AT_ONCE
    summed_as = nw.Int64

    def refuse_settings(self, native: Any) -> None:
        from duckdb import SQLExpression as Sql

        one_row = native.limit(0).aggregate("count(*)")
        ((collation,),) = one_row.select(Sql("current_setting('default_collation')")).fetchall()
        if collation:
            raise SchemaError(
                f"DuckDB connection: must compare texts exactly; its default_collation is {collation!r}, so texts "
                "of different units could be equal; use a connection without it, or SET default_collation = ''"
            )

    def well_formed(self, frame: Frame, columns: Sequence[str]) -> Frame:
        from duckdb import ColumnExpression as Column
        from duckdb import SQLExpression as Sql

        # DuckDB does not check the texts of an Arrow table, and `lower`, `translate` and results fail on invalid ones.
        native, kinds = frame.to_native(), frame.collect_schema()
        # Bytes are from `by_value`.
        encoded = {name: f'"{name}"' if kinds[name] == nw.Binary else f'encode("{name}")' for name in columns}
        checked = (Sql(f"TRY(decode({of}))").alias(name) for name, of in encoded.items())
        return opened(native.select(*(Column(name) for name in native.columns if name not in columns), *checked))

    def hashed(self, frame: Frame, columns: Mapping[str, str]) -> Frame:
        from duckdb import ColumnExpression as Column
        from duckdb import ConstantExpression as Constant
        from duckdb import FunctionExpression as Function
        from duckdb import StarExpression as Star

        def number(column: str) -> Any:
            digits = Function("substr", Function("md5", Column(column)), Constant(1), Constant(HEX_DIGITS))
            return Function("concat", Constant("0x"), digits).cast("BIGINT")

        native = frame.to_native().select(Star(), *(number(column).alias(to) for column, to in columns.items()))
        return opened(native)

    def microseconds(self, frame: Frame, columns: Mapping[str, str]) -> Frame:
        from duckdb import ColumnExpression as Column
        from duckdb import FunctionExpression as Function
        from duckdb import SQLExpression as Sql
        from duckdb import StarExpression as Star

        # A date, or a time in coarser units, may be outside the range of microseconds: converting it is an error.
        types = frame.collect_schema()
        cast = {to: name for name, to in columns.items() if types[name] == nw.Date or _is_coarse(types[name])}
        timestamps = (Sql(f'try_cast("{name}" AS TIMESTAMP)').alias(to) for to, name in cast.items())
        micros = (Function("epoch_us", Column(to if to in cast else name)).alias(to) for name, to in columns.items())
        native = frame.to_native().select(Star(), *timestamps)
        return opened(native.select(*map(Column, types), *micros))

    def dated(self, frame: Frame, column: str, to: str) -> Frame:
        from duckdb import ColumnExpression as Column
        from duckdb import ConstantExpression as Constant
        from duckdb import StarExpression as Star

        date = Constant("1970-01-01").cast("DATE") + Column(column)
        return opened(frame.to_native().select(Star(), date.alias(to)))

    def with_case(self, frame: Frame, column: str, to: str, case: Case) -> Frame:
        from duckdb import CaseExpression as When
        from duckdb import ColumnExpression as Column
        from duckdb import ConstantExpression as Constant
        from duckdb import FunctionExpression as Function
        from duckdb import StarExpression as Star

        letters = LETTERS[case]
        old, new = Constant("".join(letters)), Constant("".join(letters.values()))
        # `translate` builds a table of the letters for each row, so it is used only where the own function may differ.
        is_usual = Function("regexp_full_match", Column(column), Constant(f"[{_USUAL[case]}]*"))
        changed = When(is_usual, Function(case, Column(column))).otherwise(
            Function("translate", Column(column), old, new)
        )
        return opened(frame.to_native().select(Star(), changed.alias(to)))

    def row_hash(self, frame: Frame, columns: Sequence[str], to: str) -> Frame:
        from duckdb import ColumnExpression as Column
        from duckdb import StarExpression as Star

        limbs = [limb for column in map(Column, columns) for limb in (column // LIMB, column % LIMB)]
        native = frame.to_native().select(Star(), folded(limbs).alias(to))
        return opened(native.select(Star(exclude=[to]), squared(Column(to)).alias(to)))

    def public_table(self, frame: Frame, columns: Mapping[str, Sequence[Any]]) -> Frame:
        from duckdb import ConstantExpression as Constant
        from duckdb import FunctionExpression as Function

        def listed(values: Sequence[Any]) -> Any:
            # One text is parsed a hundred times faster than as many constants.
            text, kind = json.dumps(list(values)), f'["{_JSON_TYPES[type(values[0])]}"]'
            return Function("unnest", Function("from_json", Constant(text), Constant(kind)))

        refuse_stopped()
        # A row of the same connection, of which only this relation is at hand.
        one_row = frame.to_native().limit(0).aggregate("count(*)")
        return opened(one_row.select(*(listed(values).alias(name) for name, values in columns.items())).materialize())

    def with_matches(self, frame: Frame, column: str, table: Frame, to: str) -> Frame:
        kind = frame.collect_schema()[column]
        if kind not in (nw.String, nw.Binary):
            return super().with_matches(frame, column, table, to)
        from duckdb import ColumnExpression as Column
        from duckdb import FunctionExpression as Function
        from duckdb import StarExpression as Star

        # As bytes: a collation of the column or the connection may call other texts equal.
        def as_bytes(of: Frame, name: str) -> Frame:
            return opened(of.to_native().select(Star(), Function("encode", Column(name)).alias(f"{to}_bytes")))

        found = as_bytes(table, "key").select(f"{to}_bytes", nw.col("value").alias(to))
        if kind == nw.Binary:  # by `by_value`
            return frame.join(found, left_on=column, right_on=f"{to}_bytes", how="left")
        return as_bytes(frame, column).join(found, on=f"{to}_bytes", how="left").drop(f"{to}_bytes")

    def by_value(self, frame: Frame, column: str) -> Frame:
        from duckdb import ColumnExpression as Column
        from duckdb import FunctionExpression as Function
        from duckdb import StarExpression as Star

        if frame.collect_schema()[column] != nw.String:
            return frame
        return opened(
            frame.to_native().select(Star(exclude=[column]), Function("encode", Column(column)).alias(column))
        )

    def arrays(self, frame: Frame) -> dict[str, NDArray[Any]]:
        refuse_stopped()
        table = frame.to_native().to_arrow_table()
        return {name: table.column(name).to_numpy() for name in table.column_names}

    def private_table(self, frame: Frame, columns: Mapping[str, NDArray[np.int64]]) -> Frame:
        import pyarrow as pa

        refuse_stopped()
        return opened(frame.to_native()._con.from_arrow(pa.table(dict(columns))).materialize())

    def kept(self, frame: Frame) -> Frame:
        refuse_stopped()
        return opened(frame.to_native().materialize())

    def run(self, work: Callable[[], T], natives: Iterable[Any]) -> T:
        # A relation's connection is a private attribute; without it the work cannot be cancelled.
        connections = [con for native in natives if (con := getattr(native, "_con", None)) is not None]

        def cancel() -> None:
            for connection in connections:
                connection.interrupt()

        return self._background.run(work, cancel)

    def unstable(self, native: Any) -> str | None:
        stability = duckdb_plan.stability(native)
        return next((cause for node in duckdb_plan.nodes(native) if (cause := _unstable_node(node, stability))), None)

    def files(self, native: Any) -> Paths:
        patterns = duckdb_plan.file_patterns(native)
        return lambda: patterns


def _usual(case: Case) -> str:
    """The characters that every library changes alike, as a class of a regular expression."""
    points = [place for place in range(END) if getattr(chr(place), case)() == changed_case(chr(place), case)]
    return "".join(f"\\x{{{place:x}}}" for place in points)


_USUAL: dict[Case, str] = {"lower": _usual("lower"), "upper": _usual("upper")}


def _is_coarse(kind: Any) -> bool:
    """Whether a type is of timestamps without a time zone, in seconds or milliseconds."""
    return isinstance(kind, nw.Datetime) and kind.time_zone is None and kind.time_unit in ("s", "ms")


def _unstable_node(node: dict[str, Any], stability: dict[str, str]) -> str | None:
    """The reason why a node's rows may differ between reads, or None."""
    if node.get("sample") is not None:
        return RANDOM
    modifiers = {modifier["type"]: modifier for modifier in node.get("modifiers") or ()}
    if "ORDER_MODIFIER" not in modifiers:
        if {"LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER"} & set(modifiers):
            return LIMITED
        if modifiers.get("DISTINCT_MODIFIER", {}).get("distinct_on_targets"):
            return ONE_OF_SEVERAL
    kind = node.get("class")
    if kind == "WINDOW" and node["type"] in _BY_ORDER and not node.get("orders"):
        return NUMBERED
    if kind == "COLUMN_REF" and len(node["column_names"]) == 1 and node["column_names"][0].lower() in _NOW:
        return TIME
    if kind == "FUNCTION":
        name = node["function_name"].lower()
        if name in _ANY_ROW and not (node.get("order_bys") or {}).get("orders"):
            return ONE_OF_SEVERAL
        if name == "age" and len(node["arguments"]) == 1:  # called consistent
            return TIME
        if name not in _SETTINGS:
            return {"VOLATILE": RANDOM, "CONSISTENT_WITHIN_QUERY": TIME}.get(stability.get(name, ""))
    return None
