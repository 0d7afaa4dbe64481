"""DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from dpnb._backends.lazy.engines import duckdb_plan
from dpnb._backends.lazy.engines.duckdb_settings import refuse_changed_meaning
from dpnb._backends.lazy.engines.engine import (
    HEX_DIGITS,
    LIMB,
    ROWS_AT_ONCE,
    InProcessEngine,
    LazyFrame,
    Paths,
    T,
    folded,
    opened,
    squared,
)
from dpnb._backends.lazy.engines.plans import LIMITED, NUMBERED, ONE_OF_SEVERAL, RANDOM, TIME
from dpnb._backends.worker_thread import refuse_stopped
from dpnb._plan.expressions.letters import END, LETTERS, Case, changed_case

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
    has_settings = True

    def refuse_settings(self, natives: Iterable[Any]) -> None:
        for connection in {id(native._con): native._con for native in natives}.values():
            refuse_changed_meaning(connection)

    def exact(self, frame: LazyFrame) -> LazyFrame:
        texts = [name for name, kind in frame.collect_schema().items() if kind == nw.String]
        return _with_columns(frame, {name: f"{_quoted(name)} {_EXACT}" for name in texts})

    def well_formed(self, frame: LazyFrame, columns: Sequence[str]) -> LazyFrame:
        # DuckDB does not check the texts of an Arrow table, and `lower`, `translate` and results fail on invalid ones.
        checked = {name: f"TRY({_call('decode', _call('encode', _quoted(name)))}) {_EXACT}" for name in columns}
        return _with_columns(frame, checked)

    def hashed(self, frame: LazyFrame, columns: Mapping[str, str]) -> LazyFrame:
        def number(column: str) -> str:
            digits = _call("substr", _call("md5", _quoted(column)), "1", str(HEX_DIGITS))
            return f"CAST({_call('concat', _text('0x'), digits)} AS BIGINT)"

        return _with_columns(frame, {to: number(column) for column, to in columns.items()})

    def microseconds(self, frame: LazyFrame, columns: Mapping[str, str]) -> LazyFrame:
        # A date, or a time in coarser units, may be outside the range of microseconds: converting it is an error.
        types = frame.collect_schema()
        micros: dict[str, str] = {}
        for name, to in columns.items():
            is_time = types[name] != nw.Date and not _is_coarse(types[name])
            micros[to] = _call("epoch_us", _quoted(name) if is_time else f"TRY_CAST({_quoted(name)} AS TIMESTAMP)")
        return _with_columns(frame, micros)

    def dated(self, frame: LazyFrame, column: str, to: str) -> LazyFrame:
        from duckdb import ColumnExpression as Column
        from duckdb import ConstantExpression as Constant
        from duckdb import StarExpression as Star

        date = Constant("1970-01-01").cast("DATE") + Column(column)
        return opened(frame.to_native().select(Star(), date.alias(to)))

    def with_case(self, frame: LazyFrame, column: str, to: str, case: Case) -> LazyFrame:
        letters, of = LETTERS[case], _quoted(column)
        # `translate` builds a table of the letters for each row, so it is used only where the own function may differ.
        is_usual = _call("regexp_full_match", of, _text(f"[{_USUAL[case]}]*"))
        translated = _call("translate", of, _text("".join(letters)), _text("".join(letters.values())))
        changed = f"CASE WHEN {is_usual} THEN {_call(case, of)} ELSE {translated} END"
        return _with_columns(frame, {to: f"({changed}) {_EXACT}"})

    def row_hash(self, frame: LazyFrame, columns: Sequence[str], to: str) -> LazyFrame:
        from duckdb import ColumnExpression as Column
        from duckdb import StarExpression as Star

        limbs = [limb for column in map(Column, columns) for limb in (column // LIMB, column % LIMB)]
        native = frame.to_native().select(Star(), folded(limbs).alias(to))
        return opened(native.select(Star(exclude=[to]), squared(Column(to)).alias(to)))

    def public_table(self, frame: LazyFrame, columns: Mapping[str, Sequence[Any]]) -> LazyFrame:
        return self.kept(self.exact(_arrow_table(frame, columns)))

    def arrays(self, frame: LazyFrame) -> dict[str, NDArray[Any]]:
        refuse_stopped()
        table = frame.to_native().to_arrow_table()
        return {name: table.column(name).to_numpy() for name in table.column_names}

    def private_table(self, frame: LazyFrame, columns: Mapping[str, NDArray[np.int64]]) -> LazyFrame:
        return self.kept(_arrow_table(frame, columns))

    def kept(self, frame: LazyFrame) -> LazyFrame:
        refuse_stopped()
        return opened(frame.to_native().materialize())

    def run(self, work: Callable[[], T], natives: Iterable[Any], within: float | None = None) -> T:
        # A relation's connection is a private attribute; without it the work cannot be cancelled.
        connections = [con for native in natives if (con := getattr(native, "_con", None)) is not None]

        def cancel() -> None:
            for connection in connections:
                connection.interrupt()

        return self._background.run(work, cancel, within)

    def unstable(self, native: Any) -> str | None:
        stability = duckdb_plan.stability(native)
        return next((cause for node in duckdb_plan.nodes(native) if (cause := _unstable_node(node, stability))), None)

    def files(self, native: Any) -> Paths:
        patterns = duckdb_plan.file_patterns(native)
        return lambda: patterns


_EXACT = "COLLATE C"
"""Makes only texts of the same bytes equal, whatever the collation of the column or of the connection."""


def _call(function: str, *arguments: str) -> str:
    """A call of DuckDB's own function, in SQL, whatever macros have its name."""
    return f"system.main.{function}({', '.join(arguments)})"


def _quoted(name: str) -> str:
    return f'"{name}"'


def _text(constant: str) -> str:
    return "'" + constant.replace("'", "''") + "'"


def _with_columns(frame: LazyFrame, columns: Mapping[str, str]) -> LazyFrame:
    """The frame with columns, new or replaced, of expressions in SQL."""
    from duckdb import ColumnExpression as Column
    from duckdb import SQLExpression as Sql

    native = frame.to_native()
    others = (Column(name) for name in native.columns if name not in columns)
    return opened(native.select(*others, *(Sql(of).alias(name) for name, of in columns.items())))


def _arrow_table(frame: LazyFrame, columns: Mapping[str, Any]) -> LazyFrame:
    """A table of the connection of a frame."""
    import pyarrow as pa

    return opened(frame.to_native()._con.from_arrow(pa.table(dict(columns))))


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
