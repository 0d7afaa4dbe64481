"""The syntax tree of a relation of DuckDB, with those of the views and macros that it names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

FILE_READERS = ("parquet_scan", "read_parquet", "read_csv", "read_csv_auto", "read_json", "read_ndjson")


def nodes(native: Any) -> Iterator[dict[str, Any]]:
    """Every node of a relation's tree, and of what it names."""
    named = _named(native)
    seen: set[str] = set()
    waiting: list[Any] = [_parsed(native, native.sql_query())]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += node
            continue
        if not isinstance(node, dict):
            continue
        yield node
        waiting += node.values()
        for key in ("table_name", "function_name"):
            name = str(node.get(key) or "").lower()
            if name in named and name not in seen:
                seen.add(name)
                waiting.append(_parsed(native, named[name]))


def stability(native: Any) -> dict[str, str]:
    """The stability that DuckDB states for functions, by name; the least stable if several have one name."""
    found = _asked(native, "select lower(function_name), stability from duckdb_functions() where stability is not null")
    return dict(sorted(found, key=lambda row: (row[1] == "VOLATILE", row[1] != "CONSISTENT")))


def file_patterns(native: Any) -> list[str]:
    """Files that a relation reads, as its query names them."""
    found: list[str] = []
    for node in nodes(native):
        if node.get("type") == "BASE_TABLE":
            name = str(node["table_name"])
            found += [name] if "." in name or "/" in name else []
        elif str(node.get("function_name")).startswith(FILE_READERS) and node.get("arguments"):
            found += _texts(node["arguments"][0])
    return found


def _named(native: Any) -> dict[str, str]:
    """Queries of views and macros by name."""
    views = _asked(native, "select lower(view_name), sql from duckdb_views() where not internal")
    macros = _asked(
        native,
        "select lower(function_name), macro_definition, function_type from duckdb_functions() "
        "where macro_definition is not null and not internal",
    )
    found = {name: body if kind == "table_macro" else f"select {body}" for name, body, kind in macros}
    return found | dict(views)


def _parsed(native: Any, query: str) -> Any:
    """The tree of a query, or of the query in a CREATE VIEW; nothing if it cannot be parsed."""
    start = 0
    while start >= 0:
        text = query[start:].rstrip("; \n").replace("'", "''")
        ((tree,),) = _asked(native, f"select json_serialize_sql('{text}'::varchar)")
        parsed = json.loads(tree)
        if not parsed["error"]:
            return parsed["statements"]
        after = query.upper().find(" AS ", start)  # CREATE VIEW name AS ...
        start = after + 4 if after >= 0 else -1
    return []


def _asked(native: Any, query: str) -> list[tuple[Any, ...]]:
    return native._con.sql(query).fetchall()  # type: ignore[no-any-return]


def _texts(node: Any) -> list[str]:
    """The texts in a part of a tree."""
    if isinstance(node, list):
        return [text for one in node for text in _texts(one)]
    if not isinstance(node, dict):
        return []
    literal = node.get("literal") or node.get("value")
    text = literal.get("text", literal.get("value")) if isinstance(literal, dict) else None
    if isinstance(text, str):
        return [text]
    return [text for one in node.values() for text in _texts(one)]
