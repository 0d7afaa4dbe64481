"""Where pandas' spelling could be taken for something that it is not, it is refused or does what pandas does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dpnb
from dpnb._plan.expressions.nodes import AsNumber, Column, Literal
from dpnb._plan.plan import GroupLevel, Plan
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb.errors import PlanError
from dpnb.frame import Frame
from dpnb.frame.view import TableView
from dpnb.schema import Bounded, Categories, Dates, Schema, Text

SCHEMA: Schema = {"x": Bounded(0, 20), "y": Bounded(-1, 3), "g": Categories(["a", "b", "c"])}
Asked = tuple[Plan, Any]


def table(schema: Schema) -> Frame:
    return Frame(TableView("", {"": schema}, {"": PrivacyUnit("u", 5)}, lambda plan, view: (plan, view), str))


@pytest.fixture
def f() -> Frame:
    return table(SCHEMA)


VERBS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda f, some: (f["x"] + some["y"]).sum(),
    "corr": lambda f, some: f["x"].corr(some["y"]),
    "ratio": lambda f, some: f["x"].ratio(some["y"]),
    "where": lambda f, some: f["x"].where(some["y"] > 1, 0).sum(),
    "mask": lambda f, some: f[some["x"] > 1].count(),
    "groupby": lambda f, some: f.groupby(some["g"]).count(),
    "assign": lambda f, some: f.assign(z=some["y"])["z"].sum(),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_column_of_some_rows_is_not_taken_for_one_of_all(f: Frame, verb: str) -> None:
    """pandas aligns the rows; here it is refused, or the condition is kept."""
    try:
        plan, _ = VERBS[verb](f, f[f["g"] == "a"])
    except PlanError:
        return
    assert plan.where is not None
    assert "'a'" in plan.words


@pytest.mark.parametrize("verb", VERBS)
def test_columns_of_the_same_rows_go_together(f: Frame, verb: str) -> None:
    some = f[f["g"] == "a"]
    plan, _ = VERBS[verb](some, f[f["g"] == "a"])
    assert "g == 'a'" in plan.words


def test_a_condition_on_grouped_columns_does_not_lose_the_groups(f: Frame) -> None:
    try:
        plan, _ = f.groupby("g")["x"][f["x"] > 1].mean()
    except PlanError:
        return
    assert plan.by == (GroupLevel("g", Column("g")),)


def test_a_list_of_grouped_columns_keeps_the_groups(f: Frame) -> None:
    plan, view = f.groupby("g")[["x", "y"]].mean()
    assert plan.group_by == (GroupLevel("g", Column("g")),)
    assert [column.name for column in view.columns] == ["x", "y"]


@pytest.mark.parametrize("edges", [[0, 1_000_000, 1_000_001, 1_000_002], 1000])
def test_every_bin_has_a_name_of_its_own(edges: Any) -> None:
    """Two bins of one name would be one group: their rows would be counted together without a word."""
    f = table({"x": Bounded(0, 2_000_000)})
    column = f["x"] if isinstance(edges, list) else f["x"].clip(1_000_000, 1_000_010)
    labels = dpnb.cut(column, edges)._node.labels
    assert len(set(labels)) == len(labels)


def test_whole_numbers_are_not_made_of_fractions_without_rounding(f: Frame) -> None:
    """pandas' astype(int) drops the fraction; whatever is offered must not keep it silently."""
    try:
        node = f["x"].astype(int)._node
    except PlanError:
        return
    assert node not in (Column("x"), AsNumber(Column("x")))


def test_constants_can_be_assigned(f: Frame) -> None:
    assert f.assign(one=1)["one"]._node == Literal(1)


def test_two_keys_that_are_one_text_are_refused() -> None:
    """A number stands for its decimal text; of two such groups one would be empty without a word."""
    with pytest.raises(PlanError, match="twice"):
        table({"t": Text()}).groupby("t", keys=[7, "7"])


def test_dates_that_are_taken_apart_can_be_clipped() -> None:
    view = table({"d": Dates("2019-06-01", "2021-12-31")})
    plan, _ = view["d"].dt.year.clip(2020, 2021).mean()
    assert plan.words == "mean of d.dt.year.clip(2020, 2021) (UTC)"
