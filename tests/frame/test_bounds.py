"""The bounds finder: its public grid, and what its answer shows."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpnb
from dpnb._plan.constants import bounds_grid
from dpnb.errors import PlanError, RequestError
from dpnb.ledger import MEMORY
from dpnb.results.bounds import BoundsAnswer
from dpnb.schema import MAX_MAGNITUDE, MIN_MAGNITUDE, has_allowed_magnitude

WIDE = {"wage": dpnb.Bounded(-1e9, 1e9), "k": dpnb.Bounded(-1000, 1000, integer=True), "g": dpnb.Categories(["a", "b"])}


def session(wages: Any, **changes: Any) -> dpnb.Session:
    rows = len(wages)
    table = pd.DataFrame({"wage": wages, "k": np.resize([-7, 0, 42], rows), "g": np.resize(["a", "b"], rows)})
    arguments: dict[str, Any] = {"name": "people", "budget": dpnb.Budget.gdp(100), "schema": WIDE, "ledger": MEMORY}
    return dpnb.Session(table, **{**arguments, "not_private_test_seed": 3, **changes})


def found(wages: Any, column: str = "wage") -> BoundsAnswer:
    return session(wages).frame[column].find_bounds().release(mu=5)


# --- the grid --------------------------------------------------------------------------------------------------------

ends = st.floats(-MAX_MAGNITUDE, MAX_MAGNITUDE, allow_subnormal=False).filter(
    lambda x: x == 0 or MIN_MAGNITUDE <= abs(x) <= MAX_MAGNITUDE
)


@given(low=ends, high=ends, whole=st.booleans())
def test_edges_are_allowed_numbers_and_every_bin_has_a_different_label(low: float, high: float, whole: bool) -> None:
    try:
        declared = dpnb.Bounded(*sorted([round(low), round(high)] if whole else [low, high]), integer=whole)
    except dpnb.errors.SchemaError:
        return
    grid = bounds_grid(declared.low, declared.high, whole=whole)
    assert grid.edges[0] == declared.low
    assert grid.edges[-1] == declared.high
    assert all(map(has_allowed_magnitude, grid.edges))
    assert list(grid.edges) == sorted(set(grid.edges))
    assert len(set(grid.labels)) == len(grid.labels) == len(grid.ranges) == len(grid.edges) - 1
    assert len(grid.edges) < 100
    for before, after in zip(grid.ranges, grid.ranges[1:], strict=False):
        assert before[1] == after[0]
        assert before[0] <= before[1]


def test_the_grid_has_1_2_and_5_times_each_power_of_ten_and_a_bin_of_zero() -> None:
    grid = bounds_grid(-12, 12, whole=True)
    assert grid.labels == (
        "[-12, -10)", "[-10, -5)", "[-5, -2)", "[-2, -1)", "[-1, 0)", "0", "(0, 1]", "(1, 2]", "(2, 5]", "(5, 10]",
        "(10, 12]",
    )  # fmt: skip


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("value", [-1000, -100, -99, -51, -50, -1, 0, 1, 50, 99, 100, 1000])
def test_every_value_is_in_the_range_of_its_bin(value: int, whole: bool) -> None:
    table = session([float(value)] * 50, schema={**WIDE, "wage": dpnb.Bounded(-1000, 1000, integer=whole)})
    answer = table.frame["wage"].find_bounds().release(mu=5)
    assert answer.bounds is not None
    assert answer.bounds.low <= value <= answer.bounds.high
    if value:  # a bin includes its edge of larger magnitude: nothing is rounded up to the next step
        assert max(abs(answer.bounds.low), abs(answer.bounds.high)) < 2 * abs(value) or value == 51


def test_a_column_within_one_bin_is_refused_with_another_way_to_look_at_it() -> None:
    with pytest.raises(PlanError, match=r"find_bounds of wage: its bounds, 1.1e\+06 to 1.9e\+06, lie within one bin"):
        session([1.0], schema={"wage": dpnb.Bounded(1.1e6, 1.9e6)}).frame["wage"].find_bounds()


@pytest.mark.parametrize("column", ["g"])
def test_only_numbers_have_bounds(column: str) -> None:
    with pytest.raises(PlanError, match="needs a number"):
        session([1.0]).frame[column].find_bounds()


def test_groups_have_no_bounds() -> None:
    with pytest.raises(PlanError, match="bounds apply to the whole column"):
        session([1.0]).frame.groupby("g")["wage"].find_bounds()


# --- the answer ------------------------------------------------------------------------------------------------------


def test_bounds_enclose_the_bins_above_the_noise() -> None:
    answer = found(np.linspace(11, 1999, 2000))
    assert answer.bounds == dpnb.Bounded(10, 2000)
    assert answer.rows_outside < 60
    assert answer.share_outside < 0.03


def test_one_outlier_does_not_widen_the_bounds() -> None:
    answer = session([*np.linspace(11, 1999, 2000), 9e8]).frame["wage"].find_bounds().release(mu=0.5)
    assert answer.bounds == dpnb.Bounded(10, 2000)


def test_bounds_of_whole_numbers_are_whole() -> None:
    assert found(np.arange(300), "k").bounds == dpnb.Bounded(-10, 50, integer=True)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_column_of_zeros_has_a_narrow_range(sign: int) -> None:
    bounds = {1: dpnb.Bounded(0, 1e9), -1: dpnb.Bounded(-1e9, 0)}[sign]
    answer = session([0.0] * 100, schema={"wage": bounds}).frame["wage"].find_bounds().release(mu=5)
    assert answer.bounds is not None
    assert answer.bounds.high - answer.bounds.low <= 0.01


@pytest.mark.parametrize(("low", "high"), [(0.9999999, 77), (-77, -0.9999999), (-3, 1.0000000000000002)])
def test_a_bound_beside_an_edge_makes_no_bin_too_narrow_to_be_declared(low: float, high: float) -> None:
    grid = bounds_grid(low, high, whole=False)
    for start, stop in grid.ranges:
        assert start == stop == 0 or dpnb.Bounded(start, stop)
    end = low if abs(low) < 1 else high
    answer = session([end] * 500, schema={"wage": dpnb.Bounded(low, high)}).frame["wage"].find_bounds().release(mu=5)
    assert answer.bounds is not None
    assert answer.bounds.low <= end <= answer.bounds.high
    assert "in a schema" in str(answer)


def test_without_a_bin_above_the_noise_it_says_so() -> None:
    answer = found([])
    assert answer.bounds is None
    assert answer.share_outside == 1
    assert "no bounds were found: no noisy count exceeds" in repr(answer)
    assert "no bounds were found: no noisy count exceeds" in answer._repr_html_()
    assert "dpnb.Bounded" not in repr(answer)


def test_the_lines_to_copy_are_shown_and_work() -> None:
    people = session(np.linspace(11, 1999, 2000))
    answer = people.frame["wage"].find_bounds().release(mu=5)
    shown = repr(answer)
    assert "dpnb.Bounded(10, 2000)" in shown
    assert ".clip(10, 2000)" in shown
    assert "<code>dpnb.Bounded(10, 2000)</code>" in answer._repr_html_()
    declared = eval("dpnb.Bounded(10, 2000)", {"dpnb": dpnb})  # as an analyst would paste it
    assert declared == answer.bounds
    wide, narrow = people.frame["wage"].mean(), people.frame["wage"].clip(10, 2000).mean()
    assert narrow.release(mu=0.5).noise_scale < wide.release(mu=0.5).noise_scale / 1000


def test_it_is_released_refined_and_repeated_like_any_query() -> None:
    people = session(np.linspace(11, 1999, 2000))
    query = people.frame["wage"].find_bounds()
    assert query.preview(within=20).fits
    answer = query.release(mu=0.5)
    assert query.release(mu=0.5) == answer
    better = answer.refine(mu=2)
    assert isinstance(better, BoundsAnswer)
    assert better.rows_outside < answer.rows_outside
    assert better.history[0].bounds == answer.bounds
    assert query.best is not None
    assert query.best.bounds == better.bounds
    assert float(people.spent.mu) == 2
    assert people.log["query"].tolist() == ["bounds of wage"] * 2
    copied = pickle.loads(pickle.dumps(better))
    assert repr(copied) == repr(better)


def test_it_shares_its_measurement_with_value_counts_of_the_same_bins() -> None:
    people = session(np.linspace(11, 1999, 2000))
    grid = bounds_grid(-1e9, 1e9, whole=False)
    people.frame["wage"].find_bounds().release(mu=1)
    people.frame.groupby("k").count()
    binned = people.frame.assign(wage=dpnb.cut(people.frame["wage"], list(grid.edges), labels=list(grid.labels)))
    assert binned["wage"].value_counts().release(mu=1).cost.mu == 0


def test_bins_cannot_be_refined_separately() -> None:
    answer = session(np.linspace(11, 1999, 2000)).frame["wage"].find_bounds().release(mu=0.5)
    with pytest.raises(RequestError, match="bounds: depend on all bins at once"):
        answer.refine(mu=1, groups=["(10, 20]"])


def test_a_unit_with_many_rows_raises_the_threshold() -> None:
    table = pd.DataFrame({"p": np.repeat(np.arange(500), 4), "wage": np.linspace(11, 1999, 2000)})
    arguments: dict[str, Any] = {"name": "p", "budget": dpnb.Budget.gdp(100), "schema": {"wage": WIDE["wage"]}}
    arguments |= {"ledger": MEMORY, "not_private_test_seed": 3}
    rows = dpnb.Session(table, **arguments).frame["wage"].find_bounds().release(mu=1)
    units = dpnb.Session(table, privacy_unit="p", max_rows_per_unit=4, **arguments)
    people = units.frame["wage"].find_bounds().release(mu=1)
    assert people.threshold == pytest.approx(4 * rows.threshold)


def test_engines_find_the_same_bounds() -> None:
    polars = pytest.importorskip("polars")
    values = {"wage": [-900.0, -3.5, 0.0, 0.2, 40.0, 70.0, None, 1e8] * 40}
    arguments: dict[str, Any] = {"name": "e", "budget": dpnb.Budget.gdp(100), "schema": {"wage": WIDE["wage"]}}
    arguments |= {"ledger": MEMORY, "not_private_test_seed": 3}
    tables = [pd.DataFrame(values), polars.DataFrame(values), polars.LazyFrame(values)]
    answers = [dpnb.Session(table, **arguments).frame["wage"].find_bounds().release(mu=5) for table in tables]
    assert len({repr(answer.bounds) for answer in answers}) == 1
    assert all((answer.arrays.value == answers[0].arrays.value).all() for answer in answers)
    assert answers[0].bounds == dpnb.Bounded(-1000, 1e8)


def test_it_plots_as_a_histogram() -> None:
    pytest.importorskip("plotly")
    assert len(found(np.linspace(11, 1999, 2000)).plot().data) >= 1


def test_individual_accounting_answers_it_too() -> None:
    people = session(np.linspace(11, 1999, 2000), accounting="individual")
    assert people.frame["wage"].find_bounds().release(mu=2).bounds == dpnb.Bounded(10, 2000)
