"""Values within a privacy unit: the same integers wherever the rows are, of each function and of rows per unit.

The rows have ties in their order, missing orders and values, and rows that are there twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpnb._plan.expressions.nodes import And, Arithmetic, Column, Compare, IsNull, Literal, Lookup, Not, WithinUnit
from dpnb._plan.measurements import JointAggregation, Mean, UnitProducts, WeightedAggregation
from dpnb._plan.plan import GroupLevel, PerUnit, Plan

WINDOWS: dict[str, Callable[[Any], Any]] = {
    "shift": lambda g: g["x"].shift(1).sum(),
    "shift of a category": lambda g: (g["c"].shift(2) == "a").sum(),
    "shift back": lambda g: g["k"].shift(-1).value_counts(),
    "diff": lambda g: g["x"].diff().sum(),
    "difference of dates": lambda g: g["d"].diff().dt.days.sum(),
    "cumsum": lambda g: g["x"].cumsum().sum(),
    "cumcount": lambda g: g["x"].cumcount().sum(),
    "cummax": lambda g: g["x"].cummax().sum(),
    "cummin": lambda g: g["y"].cummin().sum(),
    "rank": lambda g: g["y"].rank().sum(),
    "rank of numbers with fractions": lambda g: g["x"].rank().sum(),
    "ffill": lambda g: g["x"].ffill().sum(),
    "ffill of a category": lambda g: g["c"].ffill().value_counts(),
    "rolling mean": lambda g: g["x"].rolling(2, min_periods=1).mean().sum(),
    "rolling sum": lambda g: g["x"].rolling(2).sum().sum(),
    "transform": lambda g: g["x"].transform("mean").sum(),
    "size beside each row": lambda g: g["x"].transform("size").sum(),
    "nunique beside each row": lambda g: g["x"].transform("nunique").sum(),
    "first beside each row": lambda g: g["x"].transform("first").sum(),
    "last beside each row": lambda g: g["d"].transform("last").dt.dayofyear.sum(),
}
"""Of rows that are grouped by their unit, in an order."""

TABLES: dict[str, Callable[[Any], Any]] = {
    "sum": lambda g: g["x"].sum().sum(),
    "mean": lambda g: g["x"].mean().sum(),
    "min": lambda g: g["x"].min().sum(),
    "max": lambda g: g["d"].max().dt.day.sum(),
    "count": lambda g: g["x"].count().sum(),
    "size": lambda g: g.size().value_counts(),
    "nunique": lambda g: g["c"].nunique().value_counts(),
    "first": lambda g: g["x"].first().sum(),
    "last": lambda g: g["c"].last().value_counts(),
    "nth": lambda g: g["x"].nth(1).sum(),
    "nth from the end": lambda g: g["k"].nth(-1).value_counts(),
    "median of maxima": lambda g: g["y"].max().median(),
    "head": lambda g: g.head(2)["x"].sum(),
    "tail": lambda g: g.tail(1)["t"].isin(["s"]).sum(),
    "statistics": lambda g: g.agg(a=("x", "sum"), n="size", c=("c", "first")).groupby("c")["a"].mean(),
    "units": lambda g: g.agg(n="size").count_units(),
}
"""Of a table with rows per unit."""


def questions(frame: Any, unit: str) -> dict[str, Callable[[], Any]]:
    """All questions, of rows in several orders, of some rows, and by further keys."""
    ordered = frame.sort_values(["y", "d"], ascending=[True, False])
    views = {
        "": ordered.groupby(unit),
        ", of some rows": ordered[(ordered["y"] < 30) | (ordered["c"] == "a")].groupby(unit),
        ", by category": frame.sort_values("c").groupby([unit, "b"]),
    }
    asked: dict[str, Callable[[], Any]] = {}
    for where, groups in views.items():
        for name, ask in {**WINDOWS, **TABLES}.items():
            asked[f"{name}{where}"] = lambda ask=ask, groups=groups: ask(groups)
    changed = ordered.assign(change=ordered.groupby(unit)["x"].diff())
    asked["statistic of differences"] = lambda: changed.groupby(unit)["change"].max().sum()
    asked["rows by difference"] = lambda: changed[changed["change"] > 0]["y"].sum()
    numbers = frame.sort_values("c").groupby(unit).cumcount(), ordered.groupby(unit).cumcount()
    asked["first in two orders"] = lambda: ordered[(numbers[0] == 0) & (numbers[1] == 0)]["y"].sum()
    asked["one row"] = lambda: frame.drop_duplicates(unit)["x"].sum()
    asked["one row each"] = lambda: ordered.drop_duplicates([unit, "k"], keep="last").groupby("k")["y"].mean()
    asked["fixed effects"] = lambda: frame.regress(f"x ~ y + C(c) | {unit}")
    asked["per unit and key, then per unit"] = lambda: (
        frame.groupby([unit, "c"]).agg(s=("y", "sum")).groupby(unit)["s"].max().sum()
    )
    return asked


def products(rows: int) -> list[Plan]:
    """Products of what the rows of a unit add up to, for fewer and more rows than count, in groups and of some rows."""
    x, y, k = Column("x"), Column("y"), (GroupLevel("k", Column("k")),)
    parts: list[Any] = [Mean(x), *(UnitProducts((x, y), most) for most in (1, rows, 100))]
    parts += [UnitProducts((Arithmetic("-", x, Literal(37.5)),), rows, squares=True)]
    joint = JointAggregation(tuple(map(WeightedAggregation, parts)))
    fitted = Arithmetic(
        "*", Lookup("coefficients", (Column("k"),), ((0,), (25,), (50,), (95,)), (0.0, 0.5, 1.0, 2.0), 0.0, 2.0), y
    )
    within = Arithmetic("-", x, WithinUnit("mean", x, None, And(Compare(">", y, Literal(10)), Not(IsNull(x)))))
    score = Arithmetic("*", Arithmetic("-", x, fitted), within)
    one = PerUnit("", (GroupLevel("x", x), GroupLevel("y", y), *k), order=(y,))
    return [
        Plan(joint, Compare(">", y, Literal(10)), k),
        Plan(joint),
        Plan(UnitProducts((score, x), rows), Compare(">", y, Literal(10))),
        Plan(UnitProducts((x,), 2, squares=True), group_by=k, source=one),
    ]
