"""Every value within a unit lies within the bounds of its type, for any rows and any limit that a client writes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.unit_plans import FUNCTIONS
from dpnb._backends import MemoryBackend
from dpnb._backends.memory import within as windows
from dpnb._backends.memory.within import windowed
from dpnb._compile import linear_query
from dpnb._plan.expressions.dtypes import Categorical, Numeric, Timestamp
from dpnb._plan.expressions.nodes import Arithmetic, Column, Expression, Literal, WithinFunction, WithinUnit
from dpnb._plan.expressions.rules import column_type, dtype_of, public_keys_of
from dpnb._plan.expressions.within import WITHIN_RULES
from dpnb._plan.measurements import Count
from dpnb._plan.plan import GroupLevel, PerUnit, Plan
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb.errors import PlanError
from dpnb.schema import Bounded, Categories, Dates, Schema

SCHEMA: Schema = {
    "x": Bounded(-3, 5),
    "tiny": Bounded(0.1, 0.1 + 2**-10),
    "large": Bounded(-(2.0**40), 2.0**41),
    "below": Bounded(-7, -2),
    "whole": Bounded(-2, 3, integer=True),
    "g": Categories(["a"]),
    "d": Dates("2020-01-01", "2020-01-03"),
}
ODD = [None, float("nan"), float("inf"), -0.0, 0.0, -1e300, 5e-324, 4.999999, 1e300, 0.1, 2.5]
numbers = st.one_of(st.sampled_from(ODD), st.floats(-10, 10))
rows = st.lists(
    st.tuples(
        st.integers(0, 2), *[numbers] * 5, st.sampled_from(["a", "b", None]), st.sampled_from([None, *range(-1, 5)])
    ),
    max_size=9,
)


def table_of(content: list[tuple[Any, ...]]) -> pd.DataFrame:
    table = pd.DataFrame(content, columns=["u", *SCHEMA]).astype(dict.fromkeys(["u", *list(SCHEMA)[:5]], float))
    table["u"] = table["u"].astype(int)
    table["g"] = table["g"].astype(object)
    return table.assign(d=pd.Timestamp("2020-01-01") + pd.to_timedelta(table["d"].astype(float), unit="D"))


def node_of(function: WithinFunction, inner: Expression, max_rows: int) -> WithinUnit:
    order = (Column("x"),) if WITHIN_RULES[function].needs_order else ()
    rolls = function.startswith("rolling")
    return WithinUnit(function, inner, max_rows, order=order, offset=2 if rolls else 1 if function == "shift" else 0,
                      least=int(rolls))  # fmt: skip


INNER: list[Expression] = [*map(Column, SCHEMA), Arithmetic("-", Column("x"), Column("x"))]
NODES = [
    node_of(function, inner, most)
    for function in FUNCTIONS
    for inner in INNER
    for most in (1, 3, 50)
    if isinstance(dtype_of(inner, SCHEMA), WITHIN_RULES[function].takes)
]
TYPES = [(dtype_of(node, SCHEMA), column_type(node, SCHEMA)) for node in NODES]


def beyond(content: list[tuple[Any, ...]], max_rows: int) -> list[str]:
    """The nodes with a value that is not within the bounds of their types."""
    tables = MemoryBackend.read({"": table_of(content)}, {"": SCHEMA}, {"": PrivacyUnit("u", max_rows)})
    names = {f"v{place}": node for place, node in enumerate(NODES)}
    found = windowed(tables.rows(""), SCHEMA, tuple(names.items()))  # type: ignore[arg-type]
    faults = []
    for (name, node), (kind, column) in zip(names.items(), TYPES, strict=True):
        if isinstance(kind, Categorical):
            is_within = np.isin(found.codes[name], range(-1, len(kind.values))).all()
        else:
            assert isinstance(kind, Numeric | Timestamp)
            values = found.numbers[name][~np.isnan(found.numbers[name])]
            is_within = ((kind.low <= values) & (values <= kind.high)).all()
            is_within &= not getattr(column, "integer", False) or (values == np.round(values)).all()
        if not is_within:
            faults.append(str(node))
    return faults


@given(rows, st.sampled_from([1, 3, 50]))
def test_every_value_is_within_its_bounds(content: list[tuple[Any, ...]], max_rows: int) -> None:
    assert beyond(content, max_rows) == []


def test_a_value_that_is_not_clamped_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: a client's limit of one row, of a unit that has three."""
    content = [(1, 5.0, 0.1, 1.0, -2.0, 3.0, "a", 1)] * 3
    assert beyond(content, 3) == []

    class Unclamped:
        """numpy, in which nothing is clamped."""

        clip = staticmethod(lambda values, *bounds: values)

        def __getattr__(self, name: str) -> Any:
            return getattr(np, name)

    monkeypatch.setattr(windows, "np", Unclamped())
    assert len(beyond(content, 3)) > 5


LIMITS: dict[str, tuple[WithinUnit, float, float]] = {
    "sum": (node_of("sum", Column("x"), 4), -12, 20),
    "sum of numbers below zero": (node_of("sum", Column("below"), 4), -28, 0),
    "cumsum": (node_of("cumsum", Column("x"), 1), -3, 5),
    "count": (node_of("count", Column("x"), 4), 0, 4),
    "size": (node_of("size", Literal(True), 4), 0, 4),
    "nunique": (node_of("nunique", Column("g"), 4), 0, 4),
    "cumcount": (node_of("number", Literal(True), 4), 0, 3),
    "rank": (node_of("rank", Column("x"), 4), 1, 4),
    "mean": (node_of("mean", Column("whole"), 4), -2, 3),
    "max": (node_of("max", Column("whole"), 4), -2, 3),
    "rolling sum": (node_of("rolling_sum", Column("x"), 4), -6, 10),
    "rolling sum of more rows than count": (node_of("rolling_sum", Column("x"), 1), -3, 5),
    "rolling mean": (node_of("rolling_mean", Column("x"), 4), -3, 5),
    "shift": (node_of("shift", Column("below"), 4), -7, -2),
}


@pytest.mark.parametrize("name", LIMITS)
def test_bounds_follow_from_those_of_the_column_and_the_number_of_rows(name: str) -> None:
    node, low, high = LIMITS[name]
    kind = dtype_of(node, SCHEMA)
    assert isinstance(kind, Numeric)
    assert (kind.low, kind.high) == (low, high)
    assert kind.whole == (name in ("count", "size", "nunique", "cumcount", "max"))


@pytest.mark.parametrize("function", ["size", "sum", "cumsum", "rank", "number"])
def test_what_grows_with_the_rows_needs_their_number(function: WithinFunction) -> None:
    node = WithinUnit(function, Column("x"), None, order=(Column("x"),))
    with pytest.raises(PlanError, match="max_rows_per_unit="):
        dtype_of(node, SCHEMA)


@pytest.mark.parametrize(
    ("function", "keys"),
    [("size", range(4)), ("count", range(4)), ("nunique", range(4)), ("number", range(3))],
)
def test_whole_numbers_of_rows_are_groups(function: WithinFunction, keys: range) -> None:
    """With the right cells: three rows of one unit and one of another."""
    inner = Column("whole") if function in ("count", "nunique") else Literal(True)
    node = node_of(function, inner, 3)
    assert list(public_keys_of(node, SCHEMA) or ()) == list(keys)
    content = [(1, 1.0, 0.1, 1.0, -2.0, value, "a", 1) for value in (1.0, 3.0, 3.0)]
    content.append((2, 1.0, 0.1, 1.0, -2.0, None, "a", 1))
    unit = PrivacyUnit("u", 3)
    tables = MemoryBackend.read({"": table_of(content)}, {"": SCHEMA}, {"": unit})
    wanted = {"size": [0, 1, 0, 3], "count": [1, 0, 0, 3], "nunique": [1, 0, 3, 0], "number": [2, 1, 1]}[function]
    by_rows = Plan(Count(), group_by=(GroupLevel("n", node),))
    assert tables.sums(linear_query(by_rows, SCHEMA, unit)).tolist() == wanted
    if function != "number":  # and of persons
        level = GroupLevel("n", Column("n"))
        persons = Plan(Count(), group_by=(level,), source=PerUnit("", (GroupLevel("n", node),)))
        query = linear_query(persons, {"n": Bounded(0, 3, integer=True)}, PrivacyUnit("u", 1))
        assert tables.sums(query).tolist() == [number and 1 for number in wanted]
