"""Bodies of requests that cost a service as much as possible: parsed JSON, as a client may write it."""

from __future__ import annotations

from typing import Any

from soak.wide import COLUMNS

Body = dict[str, Any]

CHEAP, FAR = "1/1000000", "1000"
"""An amount that is admitted thousands of times, and one that is never admitted."""


def column(name: str) -> Body:
    return {"op": "column", "name": name}


def levels(*names: str) -> list[Body]:
    return [{"name": name, "expression": column(name)} for name in names]


MONTH = {"name": "month", "expression": {"op": "date_part", "part": "month", "inner": column("d")}}


def release(aggregation: Body, view: Body | None = None, mu: str = CHEAP, **plan: Any) -> Body:
    """The release of a plan."""
    stated = {"aggregation": aggregation, "contribution_bounds": {}, **plan}
    target = {"kind": "mu", "amount": mu}
    return {"request": "release", "plan": stated, "view": view or {"view": "plain"}, "target": target}


def count(mu: str = CHEAP, **plan: Any) -> Body:
    return release({"of": "count"}, None, mu, **plan)


def term(number: int) -> Body:
    """One of any number of different columns; those beyond the table's own are computed."""
    own, added = column(f"c{number % COLUMNS}"), number // COLUMNS
    if not added:
        return own
    return {"op": "arithmetic", "operator": "+", "left": own, "right": {"op": "literal", "value": added}}


def moments(columns: int, mu: str = CHEAP) -> Body:
    """Sums of the squares and products of many columns."""
    measured = {"of": "moments", "columns": [term(number) for number in range(columns)]}
    return release(measured, {"view": "from_moments", "statistic": "mean", "columns": [0], "labels": ["c0"]}, mu)


def correlations(columns: int, mu: str = CHEAP) -> Body:
    """What an honest ``corr()`` sends."""
    names = [f"c{number}" for number in range(columns)]
    measured = {"of": "moments", "columns": [column(name) for name in names]}
    view = {"view": "from_moments", "statistic": "corr matrix", "columns": [*range(columns)], "labels": names}
    return release(measured, view, mu)


def joint(parts: int) -> Body:
    """Many quantile trees in one charge."""
    trees = [{"of": "quantile_tree", "column": term(number), "graded": True} for number in range(parts)]
    columns = [
        {"name": f"q{number}", "part": number, "view": {"view": "quantiles", "at": [0.5], "single": True}}
        for number in range(parts)
    ]
    measured = {"of": "joint", "parts": [{"aggregation": tree, "weight": 1.0} for tree in trees]}
    return release(measured, {"view": "columns", "columns": columns})


def quantiles_by(*names: str) -> Body:
    """A quantile tree of each of many groups."""
    tree = {"of": "quantile_tree", "column": column("c0"), "graded": True}
    return release(tree, {"view": "quantiles", "at": [0.25, 0.5, 0.75]}, group_by=levels(*names))


def nested(depth: int) -> Body:
    """An expression as deep as possible."""
    inner = column("x")
    for _ in range(depth):
        inner = {"op": "arithmetic", "operator": "+", "left": inner, "right": column("x")}
    return release({"of": "sum", "column": {"op": "clip", "inner": inner, "low": 0.0, "high": 1.0}})


def looked_up(keys: int) -> Body:
    """A lookup with as many keys as a body has room for."""
    table = {
        "op": "lookup",
        "name": "bomb",
        "inner": [column("many")],
        "keys": [[key] for key in range(keys)],
        "values": [float(key % 7) for key in range(keys)],
        "low": 0.0,
        "high": 6.0,
    }
    return release({"of": "sum", "column": table})


def part(key: int, by: str = "many", source: Any = "") -> Body:
    """The rows of one part of a partition."""
    return {"type": "part", "source": source, "by": levels(by)[0], "key": key}


def partition(name: str, by: str = "many", source: Any = "") -> Body:
    """The launch of a partition, which is free."""
    parts = {"mechanism": "partition", "source": source, "by": levels(by)[0]}
    return {"request": "launch", "name": name, "mechanism": parts}


def batch(queries: int, mu: str = CHEAP) -> Body:
    """Many queries in one request."""
    releases = [count(mu, group_by=levels("many"), where=above(number)) for number in range(queries)]
    return {"request": "batch", "releases": releases}


def above(number: int) -> Body:
    """A condition on rows; each number is another one."""
    right = {"op": "literal", "value": number}
    return {"op": "compare", "operator": ">=", "left": column("visits"), "right": right}


MEMORY = (
    lambda: quantiles_by("k", "g", "n"),
    lambda: moments(60),
    lambda: moments(100),
    lambda: moments(139),
    lambda: moments(200),
    lambda: moments(400),
    lambda: correlations(60),
    lambda: correlations(100),
    lambda: count(group_by=levels("many", "k", "g", "n")),
    lambda: count(group_by=[*levels("many", "k", "g", "n"), MONTH]),
    lambda: quantiles_by("many"),
    lambda: joint(100),
    lambda: joint(400),
)
"""Plans with very many numbers, at an amount that is admitted; the cheapest first."""

WORK = (
    lambda: nested(70),
    lambda: moments(139, FAR),
    lambda: count(FAR, group_by=levels("many", "k", "g", "n")),
    lambda: moments(400, FAR),
    lambda: moments(1500, FAR),
    lambda: looked_up(30_000),
    lambda: batch(180, FAR),
    lambda: batch(256, FAR),
    lambda: count(FAR, group_by=[*levels("many", "k", "g", "n"), MONTH]),
)
"""Plans that cost much before anything is charged, or that never are; the cheapest first."""
