"""What is outside a column's bounds, and where a range of days ends."""

from __future__ import annotations

import datetime
import itertools
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from compile.neighbours import squared
from dpnb._backends.memory.execute import execute
from dpnb._backends.memory.prepare.prepared_table import PreparedTable, prepare
from dpnb._compile import linear_query
from dpnb._core.ledger_metadata import LedgerMetadata
from dpnb._core.tables import PrivateTables
from dpnb._plan.expressions.nodes import Column, Expression, ExtractDatePart, IsNull
from dpnb._plan.expressions.periods import year_of
from dpnb._plan.measurements import Count, CountUnits, JointAggregation, Mean, QuantileTree, Sum, WeightedAggregation
from dpnb._plan.plan import GroupLevel, Plan
from dpnb._plan.privacy_unit import ContributionBounds, PrivacyUnit
from dpnb.errors import LedgerError
from dpnb.schema import Bounded, Categories, Dates, Schema
from pairwise import product

LAST_DAY = Dates("2017-01-01", "2017-12-31")
MIDNIGHT = Dates("2017-01-01", "2017-12-31T00:00:00")


# --- the last day ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "last",
    ["2017-12-31", "20171231", "2017-W52-7", datetime.date(2017, 12, 31), np.datetime64("2017-12-31")],
    ids=repr,
)
def test_a_day_alone_at_the_end_is_the_whole_day(last: Any) -> None:
    assert Dates("2017-01-01", last) == LAST_DAY
    assert LAST_DAY.high == pd.Timestamp("2017-12-31T23:59:59.999999").timestamp()
    assert Dates(LAST_DAY.first, LAST_DAY.last) == LAST_DAY


@pytest.mark.parametrize(
    "last",
    [
        "2017-12-31T00:00",
        "2017-12-31T01:00+01:00",
        datetime.datetime(2017, 12, 31),
        pd.Timestamp("2017-12-31"),
        np.datetime64("2017-12-31", "s"),
    ],
    ids=repr,
)
def test_midnight_at_the_end_is_midnight(last: Any) -> None:
    assert Dates("2017-01-01", last) == MIDNIGHT
    assert MIDNIGHT.high == pd.Timestamp("2017-12-31").timestamp()
    assert Dates(MIDNIGHT.first, MIDNIGHT.last) == MIDNIGHT


def test_one_day_is_a_range() -> None:
    day = Dates("2017-12-31", "2017-12-31")
    assert day.high - day.low == pytest.approx(86_400, abs=1e-5)


@pytest.mark.parametrize("last", ["1960-12-31", "2017-12-31", "2300-12-31", "9999-12-31"])
def test_the_last_moment_is_within_the_last_day_as_a_double_too(last: str) -> None:
    high = Dates("1950-01-01", last).high
    midnight = (datetime.date.fromisoformat(last) - datetime.date(1970, 1, 1)).days * 86_400 + 86_400
    assert midnight - 1 < high < midnight
    assert year_of(high) == int(last[:4])


def hours(column: Dates) -> list[int]:
    """Rows by hour, of one row in each hour of the last day."""
    table = pd.DataFrame({"d": pd.date_range("2017-12-31T00:30", periods=24, freq="h")})
    plan = Plan(Count(), group_by=(GroupLevel("hour", ExtractDatePart("hour", Column("d"))),))
    schema: Schema = {"d": column}
    found: list[int] = execute(
        linear_query(plan, schema, PrivacyUnit()), prepare(table, schema, PrivacyUnit()), schema
    ).tolist()
    return found


def test_the_last_day_does_not_pile_up_in_its_first_hour() -> None:
    assert hours(LAST_DAY) == [1] * 24
    assert hours(MIDNIGHT) == [24] + [0] * 23  # the control: as it was


# --- outside="drop" --------------------------------------------------------------------------------------------------

VALUES = [-0.5, -1e-9, 0, 3.4, 10, 10.4, 1e300, np.nan, np.inf, "3", "11", None, True]


@pytest.mark.parametrize("dtype", ["object", "category", "float"])
@pytest.mark.parametrize("whole", [False, True])
def test_numbers_outside_count_as_nothing(whole: bool, dtype: str) -> None:
    values = pd.Series(
        VALUES if dtype == "object" else [x for x in VALUES if isinstance(x, float | int)], dtype="object"
    )
    table = pd.DataFrame({"x": values.astype(dtype) if dtype != "object" else values})
    dropped, clamped = (
        prepare(table, {"x": Bounded(0, 10, integer=whole, outside=outside)}, PrivacyUnit()).numbers["x"]
        for outside in ("drop", "clamp")
    )
    given = np.array([float(value) if value is not None else np.nan for value in values])
    inside = (given >= 0) & (given <= 10)
    assert np.array_equal(np.isnan(dropped), ~inside)
    assert dropped[inside].tolist() == clamped[inside].tolist() == [round(x) if whole else x for x in given[inside]]
    assert np.array_equal(np.isnan(clamped), ~np.isfinite(given))


def test_moments_outside_count_as_nothing() -> None:
    moments = ["2016-12-31T23:59:59.999999", "2017-01-01", "2017-12-31T23:59:59.999999", "2018-01-01", None, "today"]
    column = Dates("2017-01-01", "2017-12-31", outside="drop")
    for values in (pd.Series(moments, dtype=object), pd.to_datetime(pd.Series([*moments[:5], None]), format="ISO8601")):
        found = prepare(pd.DataFrame({"d": values}), {"d": column}, PrivacyUnit()).numbers["d"]
        assert np.isnan(found).tolist() == [True, False, False, True, True, True]


DROPPED: Schema = {
    "x": Bounded(-3, 5, outside="drop"),
    "y": Bounded(0, 4, integer=True, outside="drop"),
    "g": Categories(["a", "b"]),
}
MENU: list[tuple[Any, ...]] = [(9, 2, "a"), (5, 4.4, "b"), (-3, 0, "a"), (-4, 4, "b"), (None, -1, "a")]
QUESTIONS = [
    Count(),
    Count(Column("x")),
    Sum(Column("x")),
    Mean(Column("y")),
    QuantileTree(Column("x")),
    JointAggregation(
        (WeightedAggregation(Mean(Column("x"))), WeightedAggregation(CountUnits()), WeightedAggregation(Count(), 0.1))
    ),
]


@cache
def table_with(mine: tuple[Any, ...], unit: PrivacyUnit) -> PreparedTable:
    rows = [("v", 2, 1, "a"), ("v", 7, 9, "b"), *(("me", *row) for row in mine), ("w", -3, 0, "a")]
    return prepare(pd.DataFrame(rows, columns=["u", "x", "y", "g"]).astype(object), DROPPED, unit)


@pytest.mark.parametrize(
    ("by", "where", "unit"),
    product(
        ["", "g", "y"],
        [None, IsNull(Column("x"))],
        [PrivacyUnit("u", 2), PrivacyUnit("u", 3, ContributionBounds(max_groups=1))],
    ),
    ids=lambda value: getattr(value, "words", str(value)),
)
def test_no_unit_changes_an_answer_by_more_than_is_claimed(
    by: str, where: Expression | None, unit: PrivacyUnit
) -> None:
    for aggregation in QUESTIONS:
        query = linear_query(
            Plan(aggregation, where, tuple(GroupLevel(name, Column(name)) for name in by)), DROPPED, unit
        )
        before = execute(query, table_with((), unit), DROPPED)
        moved = [
            squared(execute(query, table_with(mine, unit), DROPPED) - before)
            for size in (1, 2, 3)
            for mine in itertools.combinations_with_replacement(MENU, size)
        ]
        assert max(moved) <= query.l2_sensitivity_squared
        if isinstance(aggregation, Count | Sum) and where is None and not by:
            assert max(moved) == query.l2_sensitivity_squared


def test_a_mean_leaves_out_what_is_outside() -> None:
    table = pd.DataFrame({"x": [2.0, 4.0, 600.0, -600.0, 600.0] * 2000})
    means = {}
    for outside in ("drop", "clamp"):
        schema = {"x": Bounded(0, 10, outside=outside)}
        session = opened(table, schema, ":memory:")
        means[outside] = session.frame["x"].mean().release(mu=5).estimate
    assert means["drop"] == pytest.approx(3, abs=0.05)
    assert means["clamp"] == pytest.approx(5.2, abs=0.05)


def opened(table: Any, schema: Any, ledger: Any, **given: Any) -> dpnb.Session:
    return dpnb.Session(table, name="x", budget=dpnb.Budget.gdp(100), schema=schema, ledger=ledger, **given)


# --- in the ledger ---------------------------------------------------------------------------------------------------


def text_of(**schema: Any) -> str:
    return LedgerMetadata("x", PrivateTables.declared(schema, several=False, privacy_unit=None), None, None).to_dict()[
        "schema"
    ]


def test_days_are_kept_with_their_first_instants_and_read_back_the_same() -> None:
    declared = {"x": Bounded(0, 1), "d": MIDNIGHT}
    assert text_of(**declared) != text_of(**{**declared, "d": LAST_DAY})
    tables = PrivateTables.declared(declared, several=False, privacy_unit=None)
    stored = LedgerMetadata("x", tables, None, None).to_dict()
    assert LedgerMetadata.from_dict(stored, "x.dpnb").tables.schemas[""] == declared


def test_a_ledger_serves_one_meaning_of_what_is_outside(tmp_path: Path) -> None:
    table = pd.DataFrame({"x": [1.0, 20.0], "d": pd.to_datetime(["2017-01-01", "2018-01-01"])})
    declared = {"x": Bounded(0, 10), "d": LAST_DAY}
    opened(table, declared, tmp_path / "x.dpnb").frame.count().release(mu=1)
    for other in (
        {"x": Bounded(0, 10, outside="drop")},
        {"d": Dates("2017-01-01", "2017-12-31", "drop")},
        {"d": MIDNIGHT},
    ):
        with pytest.raises(LedgerError, match="another declaration; column"):
            opened(table, {**declared, **other}, tmp_path / "x.dpnb")
    opened(table, {"x": Bounded(0, 10, outside="clamp"), "d": LAST_DAY}, tmp_path / "x.dpnb")


def test_what_is_dropped_can_be_rehearsed() -> None:
    schema = {"x": Bounded(0, 10, outside="drop"), "d": Dates("2017-01-01", "2017-12-31", outside="drop")}
    session = dpnb.Session.rehearse(
        name="x", budget=dpnb.Budget.gdp(10), schema=schema, public_size=2000, ledger=":memory:"
    )
    assert session.frame["x"].count().release(mu=1).estimate == pytest.approx(2000, abs=30)
