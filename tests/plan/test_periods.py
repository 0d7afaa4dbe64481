"""Periods of dates: public, ascending, and each date in the one that contains it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpnb._plan.expressions.dtypes import Categorical, Timestamp
from dpnb._plan.expressions.nodes import Column, Compare, Expression, Literal, Period, PeriodUnit
from dpnb._plan.expressions.periods import (
    ALIASES,
    MAX_PERIODS,
    compared,
    date_constant,
    index_of,
    index_range,
    period_of,
    start_of,
)
from dpnb._plan.expressions.rules import dtype_of
from dpnb.errors import PlanError
from dpnb.schema import Bounded, Dates, Schema

SCHEMA: Schema = {"d": Dates("2016-12-30", "2018-01-02"), "x": Bounded(0, 1)}
D = Column("d")
UNITS: list[PeriodUnit] = ["hour", "day", "week", "month", "quarter", "year"]
SECONDS = st.integers(-62135596800, 253402300799)
"""From the first to the last second of four-digit years."""


def labels(freq: Any, schema: Schema = SCHEMA) -> tuple[Any, ...]:
    kind = dtype_of(period_of(D, freq), schema)
    assert isinstance(kind, Categorical)
    return kind.values


@pytest.mark.parametrize("freq", ["h", "D", "M", "Q", "Y"])
def test_periods_are_those_of_pandas_between_the_declared_dates(freq: str) -> None:
    wanted = pd.period_range("2016-12-30", "2018-01-02T23:59:59", freq=freq).astype(str).tolist()
    if freq == "h":
        wanted = [text.replace(" ", "T") for text in wanted]
    assert list(labels(freq)) == wanted


def test_weeks_begin_on_monday() -> None:
    weeks = labels("W")
    assert (weeks[0], weeks[1], weeks[-1]) == ("2016-12-26", "2017-01-02", "2018-01-01")
    assert {pd.Timestamp(week).day_name() for week in weeks} == {"Monday"}


@pytest.mark.parametrize("alias", ["h", "D", "W", "ME", "MS", "QE", "QS", "YE", "YS"])
def test_an_offset_of_pandas_means_the_same_as_its_name(alias: str) -> None:
    assert period_of(D, pd.tseries.frequencies.to_offset(alias)) == period_of(D, alias)
    assert period_of(D, alias).unit == ALIASES[alias]


@pytest.mark.parametrize("freq", ["15min", "2D", "s", "B", "W-WED", "", None, 7, ["D"]])
def test_other_frequencies_are_refused_with_those_that_exist(freq: Any) -> None:
    with pytest.raises(PlanError, match=r"periods of d: must be hours 'h', days 'D'.*got"):
        period_of(D, freq)


def test_only_dates_have_periods() -> None:
    with pytest.raises(PlanError, match="only dates have periods; this is a number"):
        dtype_of(period_of(Column("x"), "D"), SCHEMA)


def test_more_periods_than_can_be_groups_are_refused() -> None:
    schema: Schema = {"d": Dates("1900-01-01", "2020-01-01")}
    with pytest.raises(PlanError, match=f"1,051,920 periods, and at most {MAX_PERIODS:,}.*longer periods"):
        dtype_of(period_of(D, "h"), schema)
    assert len(labels("D", schema)) == 43830


@pytest.mark.parametrize("unit", UNITS)
def test_all_dates_of_a_calendar_have_a_period(unit: PeriodUnit) -> None:
    kind = dtype_of(D, {"d": Dates("0001-01-01", "9999-12-31")})
    assert isinstance(kind, Timestamp)
    first, last = index_range(unit, kind)
    assert start_of(unit, first) <= kind.low
    assert start_of(unit, last) <= kind.high < start_of(unit, last + 1)


@given(SECONDS, st.sampled_from(UNITS))
def test_a_date_lies_between_the_start_of_its_period_and_that_of_the_next(seconds: int, unit: PeriodUnit) -> None:
    index = int(index_of(unit, np.array([float(seconds)]))[0])
    assert start_of(unit, index) <= seconds < start_of(unit, index + 1)


def test_a_missing_date_has_no_period() -> None:
    assert np.isnan(index_of("month", np.array([np.nan, 0.0]))).tolist() == [True, False]


@pytest.mark.parametrize(
    ("text", "unit", "constant"),
    [
        ("2017", "year", "2017"),
        ("2017-01-01", "year", "2017"),
        ("2017-06", "month", "2017-06"),
        ("2017-06-01", "month", "2017-06"),
        ("2017-06-02", "month", "2017-06-02"),
        ("2017-04-01", "quarter", "2017Q2"),
        ("2017Q2", "quarter", "2017Q2"),
        ("2017-06-05", "week", "2017-06-05"),
        ("2017-06-05T14:00:00", "hour", "2017-06-05T14:00"),
        ("soon", "day", "soon"),
    ],
)
def test_a_date_is_compared_as_the_label_of_its_period(text: str, unit: PeriodUnit, constant: str) -> None:
    node = Period(unit, D)
    assert date_constant(node, dtype_of(node, SCHEMA), text) == constant


def test_a_year_or_month_that_is_compared_with_dates_is_its_first_instant() -> None:
    kind = dtype_of(D, SCHEMA)
    found = [date_constant(D, kind, text) for text in ("2017", "2017-06", "2017Q4", "2017-06-05", "x")]
    assert found == [*(f"{day}T00:00:00Z" for day in ("2017-01-01", "2017-06-01", "2017-10-01", "2017-06-05")), "x"]
    assert date_constant(Column("x"), dtype_of(Column("x"), SCHEMA), "2017") == "2017"


@given(
    st.sampled_from(["<", "<=", ">", ">=", "==", "!="]),
    st.sampled_from(UNITS[1:]),
    st.integers(0, 366),
    st.lists(st.integers(0, 366 * 86400), min_size=1, max_size=20),
)
def test_periods_are_compared_by_their_starts(operator: Any, unit: PeriodUnit, days: int, moments: list[int]) -> None:
    first = datetime(2017, 1, 1)
    day, seconds = (
        first + timedelta(days=days),
        np.array([(first - datetime(1970, 1, 1)).total_seconds()] * len(moments)) + moments,
    )
    node = Period(unit, D)
    text = date_constant(node, dtype_of(node, SCHEMA), day.date().isoformat())
    written = compared(node, operator, text)
    starts = np.array([start_of(unit, int(index)) for index in index_of(unit, seconds)])
    limit = (day - datetime(1970, 1, 1)).total_seconds()
    names = {"<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal"}
    if operator in names:
        assert isinstance(written, Compare)
        assert isinstance(written.right, Literal)
        edge = datetime.fromisoformat(str(written.right.value)).timestamp()
        found = getattr(np, names[written.operator])(seconds, edge)
        assert (found == getattr(np, names[operator])(starts, limit)).all()
    else:
        assert written == Compare(operator, node, Literal(text))


def test_no_period_follows_the_last_one() -> None:
    with pytest.raises(PlanError, match="too late"):
        compared(Period("year", D), ">", "9999")


def test_a_period_outside_the_declared_dates_is_refused_with_those_inside() -> None:
    node: Expression = Compare("==", Period("month", D), Literal("2019-01"))
    with pytest.raises(PlanError, match=r"'2019-01' is not a period of d.*'2016-12' to '2018-01'"):
        dtype_of(node, SCHEMA)
