"""The syntax tree of a relation of DuckDB, with those of the views and macros to which it refers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

FILE_READERS = ("parquet_scan", "read_parquet", "read_csv", "read_csv_auto", "read_json", "read_ndjson")


def nodes(native: Any) -> Iterator[dict[str, Any]]:
    """Every node of a relation's tree, and of the views and macros to which it refers."""
    queries = _view_and_macro_queries(native)
    seen: set[str] = set()
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
        for key in ("table_name", "function_name"):
            name = str(node.get(key) or "").lower()
            if name in queries and name not in seen:
                seen.add(name)
                pending.append(_parsed(native, queries[name]))


def stability(native: Any) -> dict[str, str]:
    """The stability that DuckDB states for functions, by name; the least stable of several with one name.

    Functions of a time with a time zone are consistent within a query only, since they use the connection's setting of
    the time zone.  The setting is the curator's, so they count as consistent.
    """
    rows = _rows(
        native,
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


def _view_and_macro_queries(native: Any) -> dict[str, str]:
    """Queries of views and macros by name."""
    views = _rows(native, "select lower(view_name), sql from duckdb_views() where not internal")
    macros = _rows(
        native,
        "select lower(function_name), macro_definition, function_type from duckdb_functions() "
        "where macro_definition is not null and not internal",
    )
    queries = {name: body if kind == "table_macro" else f"select {body}" for name, body, kind in macros}
    return queries | dict(views)


def _parsed(native: Any, query: str) -> Any:
    """The tree of a query, or of the query in a CREATE VIEW; an empty list if it cannot be parsed."""
    start = 0
    while start >= 0:
        text = query[start:].rstrip("; \n").replace("'", "''")
        ((tree,),) = _rows(native, f"select json_serialize_sql('{text}'::varchar)")
        parsed = json.loads(tree)
        if not parsed["error"]:
            return parsed["statements"]
        after = query.upper().find(" AS ", start)  # CREATE VIEW name AS ...
        start = after + 4 if after >= 0 else -1
    return []


def _rows(native: Any, query: str) -> list[tuple[Any, ...]]:
    return native._con.sql(query).fetchall()  # type: ignore[no-any-return]


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
