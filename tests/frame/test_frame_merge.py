"""Merging: a public table becomes expressions of its key, a private one a join on the privacy unit."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from dpnb._plan.expressions.nodes import And, Column, Compare, IsNull, Literal, Lookup, Not
from dpnb._plan.measurements import Mean
from dpnb._plan.plan import Join, Plan
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb.errors import PlanError
from dpnb.frame import Frame
from dpnb.frame.view import TableView
from dpnb.schema import Bounded, Categories, Schema

Asked = tuple[Plan, Any]
SCHEMA: Schema = {"x": Bounded(0, 20), "y": Bounded(-1, 3), "g": Categories(["a", "b", "c"])}
TWO: dict[str, Schema] = {"visits": SCHEMA, "bills": {"x": Bounded(0, 5), "h": Categories([1, 2])}}
x, g = Column("x"), Column("g")


def table(schemas: dict[str, Schema], name: str = "") -> Frame:
    return Frame(
        TableView(name, schemas, dict.fromkeys(schemas, PrivacyUnit("u", 5)), lambda plan, view: (plan, view), str)
    )


@pytest.fixture
def f() -> Frame:
    return table({"": SCHEMA})


def test_a_public_table_becomes_a_lookup(f: Frame) -> None:
    public = pd.DataFrame({"g": ["a", "b"], "size": [10.0, 30.0], "zone": ["north", None], "x": [1, 2]})
    view = f.merge(public, on="g")
    keys = (("a",), ("b",))
    assert view["size"]._node == Lookup("size", (g,), keys, (10.0, 30.0), 10.0, 30.0)
    assert view["zone"]._node == Lookup("zone", (g,), keys, ("north", None))
    assert view["x_x"]._node == x
    assert view["x_y"]._node == Lookup("x", (g,), keys, (1, 2), 1.0, 2.0)
    where = view.count()[0].where
    assert isinstance(where, Not)
    assert isinstance(where.inner, IsNull)
    assert where.inner.inner.keys == keys  # type: ignore[union-attr]
    assert f.merge(public, on="g", how="left").count()[0].where is None


def test_two_private_tables_are_joined_on_their_unit() -> None:
    visits, bills = table(TWO, "visits"), table(TWO, "bills")
    view = visits[visits["x"] > 1].merge(bills[bills["h"] == 1], on="u")
    assert view.columns == ["x_x", "y", "g", "x_y", "h"]
    plan, _ = view["x_y"].mean()
    assert plan.source == Join("visits", "bills")
    assert plan.aggregation == Mean(Column("x_y"))
    assert plan.where == And(Compare(">", Column("x_x"), Literal(1)), Compare("==", Column("h"), Literal(1)))


def test_suffixes_that_make_two_columns_one_are_refused(f: Frame) -> None:
    with pytest.raises(PlanError, match="suffixes"):
        f.assign(x_x=f["y"]).merge(pd.DataFrame({"g": ["a"], "x": [1]}), on="g")
