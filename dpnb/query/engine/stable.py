"""Whether a table gives the same rows whenever it is read, as far as the engine's plan of it shows.

A question may read a table more than once, and under individual accounting what units have paid is computed again from
the table.  So a plan that is random, or depends on the order in which rows happen to come, is refused when the session
is made.  What a plan does not show cannot be refused: functions written in Python, ties in an order, the first value
of a group in polars and Spark, columns that number rows, and rows that somebody changes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from dpnb.errors import SchemaError
from dpnb.query.engine import duckdb_plan

RANDOM = "something random"
LIMITED = "a limit without an order"
ONE_OF_SEVERAL = "one row kept of several, without saying which"
NUMBERED = "numbers of rows that come in no order"
TIME = "the present time"

_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
Line = tuple[int, str]
"""How far a line of a plan is indented, and what it says."""


def refuse_unstable(name: str, native: Any, engine: str) -> None:
    """Refuse a table whose plan shows that its rows need not be the same each time.

    Raises
    ------
    SchemaError
        It does not quote the plan.
    """
    try:
        found = _FINDERS[engine](native)
    except Exception:  # noqa: BLE001  (a plan that cannot be inspected shows nothing)
        return
    if found is not None:
        which = f"table {name!r}" if name else "table"
        raise SchemaError(
            f"{which}: must give the same rows whenever it is read; its plan has {found}; write its result into a "
            "file or table once and pass that, or order every row"
        )


# --- plans as text: one operation per line, its inputs below it and indented further --------------------------------


def _polars(native: Any) -> str | None:
    lines = [_line(line) for line in _QUOTED.sub('""', native.explain(optimized=False)).splitlines()]
    for place, (_, text) in enumerate(lines):
        if re.search(r"\.(sample|shuffle)\(", text):
            return RANDOM
        if text.startswith("SLICE:") or re.search(r"\)\.slice\(offset=", text):
            return LIMITED
        below = _below(lines, place)
        if text.startswith("SLICE[") and not any(one.startswith("SORT BY") for one in below):
            return LIMITED
        if text.startswith("UNIQUE[maintain_order: false, keep_strategy: Any] BY Some"):
            return ONE_OF_SEVERAL
        if text.startswith("ROW INDEX") and any(re.search(r"maintain_order: false|JOIN:", one) for one in below):
            return NUMBERED
    return None


def _spark(native: Any) -> str | None:
    if hasattr(native, "_jdf"):
        plan = native._jdf.queryExecution().analyzed()
        text, random = plan.toString(), not plan.deterministic()
    else:  # Spark Connect
        text = native._explain_string(extended=True).partition("== Analyzed Logical Plan ==")[2].partition("\n== ")[0]
        random = bool(re.search(r"\b(rand|randn|uuid|shuffle|monotonically_increasing_id)\(", text))
    if random:
        return RANDOM
    lines = [_line(line) for line in text.splitlines()]
    for place, (_, line) in enumerate(lines):
        ordered = any(re.match(r"Sort .*, true$", one) for one in _below(lines, place))
        if line.startswith("Sample "):
            return RANDOM
        if re.match(r"(GlobalLimit|Limit|Offset|Tail) ", line) and not ordered:
            return LIMITED
        if line.startswith("Deduplicate ") and _fewer(line, lines[place + 1 :]):
            return ONE_OF_SEVERAL
        if re.search(r"\b(current_timestamp|current_date|now|localtimestamp)\(", line):
            return TIME
    return None


def _fewer(line: str, below: list[Line]) -> bool:
    """Whether rows are compared by fewer columns than they have: of equal rows the first to come is kept."""
    names = re.findall(r"\w+#\d+", line)
    there = re.findall(r"\w+#\d+", below[0][1]) if below else []
    return not set(there) <= set(names)


def _line(line: str) -> Line:
    text = line.lstrip(" :+-")
    return len(line) - len(text), text.rstrip()


def _below(lines: list[Line], place: int) -> list[str]:
    """The lines of an operation's inputs."""
    indent, found = lines[place][0], []
    for deep, text in lines[place + 1 :]:
        if deep <= indent:
            break
        found.append(text)
    return found


# --- plans as syntax trees ------------------------------------------------------------------------------------------

_ANY_ROW = {"first", "last", "any_value", "arbitrary"}
_BY_PLACE = {
    *("WINDOW_ROW_NUMBER", "WINDOW_NTILE", "WINDOW_FIRST_VALUE", "WINDOW_LAST_VALUE", "WINDOW_NTH_VALUE"),
    *("WINDOW_LEAD", "WINDOW_LAG"),
}
_NOW = {"current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"}
_SETTINGS = {"current_setting", "current_schema", "current_schemas", "current_database", "in_search_path"}
"""Functions whose results change, but not by themselves."""


def _duckdb(native: Any) -> str | None:
    stability = duckdb_plan.stability(native)
    return next((found for node in duckdb_plan.nodes(native) if (found := _of_node(node, stability))), None)


def _of_node(node: dict[str, Any], stability: dict[str, str]) -> str | None:
    if node.get("sample") is not None:
        return RANDOM
    modifiers = {one["type"]: one for one in node.get("modifiers") or ()}
    if "ORDER_MODIFIER" not in modifiers:
        if {"LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER"} & set(modifiers):
            return LIMITED
        if modifiers.get("DISTINCT_MODIFIER", {}).get("distinct_on_targets"):
            return ONE_OF_SEVERAL
    kind = node.get("class")
    if kind == "WINDOW" and node["type"] in _BY_PLACE and not node.get("orders"):
        return NUMBERED
    if kind == "COLUMN_REF" and len(node["column_names"]) == 1 and node["column_names"][0].lower() in _NOW:
        return TIME
    if kind == "FUNCTION":
        name = node["function_name"].lower()
        if name in _ANY_ROW and not (node.get("order_bys") or {}).get("orders"):
            return ONE_OF_SEVERAL
        if name not in _SETTINGS:
            return {"VOLATILE": RANDOM, "CONSISTENT_WITHIN_QUERY": TIME}.get(stability.get(name, ""))
    return None


_FINDERS: dict[str, Callable[[Any], str | None]] = {"polars": _polars, "duckdb": _duckdb, "pyspark": _spark}
