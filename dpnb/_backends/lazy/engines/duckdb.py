"""The engine DuckDB, the syntax trees of its relations, and what the user of its connection may not change.

Settings and macros can change what a query means.  The connection belongs to the user, who can change both at any
time.  narwhals writes names of functions and operators without their catalogue, so a macro with such a name would be
used instead of DuckDB's own function.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from dpnb._backends.lazy.engines.engine import (
    HEX_DIGITS,
    LIMB,
    LIMITED,
    NUMBERED,
    ONE_OF_SEVERAL,
    QUERY_IN_TEXT,
    RANDOM,
    ROWS_AT_ONCE,
    TIME,
    InProcessEngine,
    LazyFrame,
    Paths,
    T,
    folded,
    opened,
    squared,
)
from dpnb._backends.worker_thread import refuse_stopped
from dpnb._plan.expressions.letters import END, LETTERS, Case, changed_case
from dpnb.errors import SchemaError

FILE_READERS = ("parquet_scan", "read_")
"""How the names of functions that read files begin."""
_OF_TEXT = (
    *("query", "query_table", "histogram", "histogram_values", "json_execute_serialized_sql"),
    *("mysql_query", "postgres_query", "sqlite_query"),
)
"""Tables from a text that is a query, or the name of a table or view; the tree does not show what these read."""


def nodes(native: Any) -> Iterator[dict[str, Any]]:
    """Every node of a relation's tree, and of the views and macros to which it refers."""
    # To list functions takes DuckDB longer than a query of a small table, so this is done where the tree has one.
    queries = {
        "table_name": cache(lambda: _view_queries(native)),
        "function_name": cache(lambda: _macro_queries(native)),
    }
    pending: list[Any] = [_parsed(native, native.sql_query())]
    while pending:
        node = pending.pop()
        if isinstance(node, list):
            pending += node
            continue
        if not isinstance(node, dict):
            continue
        yield node
        pending += node.values()
        for key, by_name in queries.items():
            if name := str(node.get(key) or "").lower():
                pending += [_parsed(native, query) for query in by_name().pop(name, ())]


def stability(native: Any) -> dict[str, str]:
    """The stability that DuckDB states for functions, by name; the least stable of several with one name.

    Functions of a time with a time zone are consistent within a query only, since they use the connection's setting of
    the time zone.  The setting is the curator's, so they count as consistent.
    """
    rows = _rows(
        native._con,
        "select lower(function_name), case when stability = 'CONSISTENT_WITHIN_QUERY' and len(parameters) > 0 and "
        "regexp_matches(concat_ws(' ', parameter_types::varchar, return_type), 'TIME ZONE|TIMESTAMPTZ') "
        "then 'CONSISTENT' else stability end from duckdb_functions() where stability is not null",
    )
    return dict(sorted(rows, key=lambda row: (row[1] == "VOLATILE", row[1] != "CONSISTENT")))


def file_patterns(native: Any) -> list[str]:
    """Names and patterns of the files that a relation reads, as its query contains them."""
    patterns: list[str] = []
    for node in nodes(native):
        if node.get("type") == "BASE_TABLE":
            name = str(node["table_name"])
            patterns += [name] if "." in name or "/" in name else []
        elif str(node.get("function_name")).startswith(FILE_READERS) and node.get("arguments"):
            patterns += _texts(node["arguments"][0])
    return patterns


def _view_queries(native: Any) -> dict[str, list[str]]:
    """Queries of views by name, also of views in several schemas."""
    return _by_name(_rows(native._con, "select lower(view_name), sql from duckdb_views() where not internal"))


def _macro_queries(native: Any) -> dict[str, list[str]]:
    """Queries of macros by name, also of overloads."""
    macros = _rows(
        native._con,
        "select lower(function_name), macro_definition, function_type from duckdb_functions() "
        "where macro_definition is not null and not internal",
    )
    return _by_name((name, body if kind == "table_macro" else f"select {body}") for name, body, kind in macros)


def _by_name(named: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    queries: dict[str, list[str]] = defaultdict(list)
    for name, query in named:
        queries[name].append(query)
    return queries


def _parsed(native: Any, query: str) -> Any:
    """The tree of a query, or of the query in a CREATE VIEW; an empty list if it cannot be parsed."""
    start = 0
    while start >= 0:
        text = query[start:].rstrip("; \n").replace("'", "''")
        ((tree,),) = _rows(native._con, f"select json_serialize_sql('{text}'::varchar)")
        parsed = json.loads(tree)
        if not parsed["error"]:
            return parsed["statements"]
        after = query.upper().find(" AS ", start)  # CREATE VIEW name AS ...
        start = after + 4 if after >= 0 else -1
    return []


def _rows(connection: Any, query: str) -> list[tuple[Any, ...]]:
    return connection.sql(query).fetchall()  # type: ignore[no-any-return]


def _texts(node: Any) -> list[str]:
    """The texts in a part of a tree."""
    if isinstance(node, list):
        return [text for part in node for text in _texts(part)]
    if not isinstance(node, dict):
        return []
    literal = node.get("literal") or node.get("value")
    text = literal.get("text", literal.get("value")) if isinstance(literal, dict) else None
    if isinstance(text, str):
        return [text]
    return [text for part in node.values() for text in _texts(part)]


# --- settings and macros of a DuckDB connection that would change what a query means ----------------------------------


_CHECKED_SETTINGS = (
    *("default_collation", "default_null_order", "default_order", "order_by_non_integer_literal"),
    *("integer_division", "ieee_floating_point_ops", "scalar_subquery_error_on_multiple_rows"),
    *("dialect_compatibility_mode", "disable_timestamptz_casts", "preserve_identifier_case"),
    *("active_grammar_extensions", "allow_parser_override_extension", "current_dialect"),
    *("enable_profiling", "enable_logging"),
)
"""Settings that change what SQL means.  The last two record how many rows each step of a query has."""


def refuse_changed_meaning(connection: Any) -> None:
    """Refuse a connection on which a query may mean something else than on a new one.

    The message names the setting or macro, and quotes nothing else of the connection.
    """
    settings, functions = _on_new_connection()
    for name, value in _settings(connection).items():
        if value != settings[name]:
            raise SchemaError(
                f"DuckDB connection: {name} must be {settings[name]!r}, since another value changes what a query means "
                f"or shows; got {value!r}; RESET {name}, or use another connection"
            )
    # These queries use neither functions nor operators, which macros could replace.
    macros = _rows(connection, "select function_name from system.main.duckdb_functions() where not internal")
    replaced = min({name.lower() for (name,) in macros} & functions, default=None)
    if replaced is not None:
        raise SchemaError(
            f"DuckDB connection: must have no macro with the name of a function of DuckDB; got {replaced!r}; drop the "
            "macro or rename it, or use another connection"
        )


@cache
def _on_new_connection() -> tuple[dict[str, Any], frozenset[str]]:
    """The settings of a new connection, and the names of its functions."""
    import duckdb

    with duckdb.connect(":memory:") as connection:
        names = _rows(connection, "select function_name from system.main.duckdb_functions()")
        return _settings(connection), frozenset(name.lower() for (name,) in names)


def _settings(connection: Any) -> dict[str, Any]:
    """The settings in `_CHECKED_SETTINGS` that this version of DuckDB has."""
    settings = dict(_rows(connection, "select name, value from system.main.duckdb_settings()"))
    return {name: settings[name] for name in _CHECKED_SETTINGS if name in settings}


# --- the engine -------------------------------------------------------------------------------------------------------


_ANY_ROW = {"first", "last", "any_value", "arbitrary"}
_BY_ORDER = {
    *("WINDOW_ROW_NUMBER", "WINDOW_NTILE", "WINDOW_FIRST_VALUE", "WINDOW_LAST_VALUE", "WINDOW_NTH_VALUE"),
    *("WINDOW_LEAD", "WINDOW_LAG"),
}
_NOW = {"current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"}
_SETTING_FUNCTIONS = {"current_setting", "current_schema", "current_schemas", "current_database", "in_search_path"}
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
        stated = cache(lambda: stability(native))
        return next((cause for node in nodes(native) if (cause := _unstable_node(node, stated))), None)

    def files(self, native: Any) -> Paths:
        patterns = file_patterns(native)
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


def _unstable_node(node: dict[str, Any], stability: Callable[[], dict[str, str]]) -> str | None:
    """The reason why a node's rows may differ between reads, or None."""
    if node.get("sample") is not None:
        return RANDOM
    modifiers = {modifier["type"]: modifier for modifier in node.get("modifiers") or ()}
    if "ORDER_MODIFIER" not in modifiers:
        if {"LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER"} & set(modifiers):
            return LIMITED
        if modifiers.get("DISTINCT_MODIFIER", {}).get("distinct_on_targets"):
            return ONE_OF_SEVERAL
    if node.get("type") == "TABLE_FUNCTION" and node["function"]["function_name"].lower() in _OF_TEXT:
        return QUERY_IN_TEXT
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
        if name not in _SETTING_FUNCTIONS:
            return {"VOLATILE": RANDOM, "CONSISTENT_WITHIN_QUERY": TIME}.get(stability().get(name, ""))
    return None
