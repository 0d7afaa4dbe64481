"""The public number of rows: what it is good for, how it is checked, and that what is only assumed says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb.accounting.losses import GDP
from dpnb.errors import ErrorEstimateUnavailable, InvalidValueError, SchemaError
from dpnb.notebook.picker_state import make_state

MEN, YEARS = 545, 8
SCHEMA = {"wage": dpnb.Bounded(0, 60), "union": dpnb.Categories([0, 1])}


def wages() -> pd.DataFrame:
    """Wages of 545 men over eight years."""
    chance = np.random.default_rng(1)
    rows = MEN * YEARS
    return pd.DataFrame(
        {
            "man": np.repeat(np.arange(MEN), YEARS),
            "wage": chance.gamma(4, 3, rows).clip(0, 60),
            "union": (chance.random(rows) < 0.2).astype(int),
        }
    )


def opened(**changes: Any) -> dpnb.Session:
    given: dict[str, Any] = {
        "name": "wages",
        "privacy_unit": "man",
        "max_rows_per_unit": YEARS,
        "budget": dpnb.Budget(epsilon=2, delta=1e-6),
        "schema": SCHEMA,
        "public_size": MEN,
        "ledger": ":memory:",
        "not_private_test_seed": 4,
    }
    return dpnb.Session(wages(), **{**given, **changes})


def test_persons_are_not_taken_for_rows() -> None:
    """Taken for rows, 545 men made the mean cost 64 times as much."""
    session = opened()
    mean = session.frame["wage"].mean()
    with pytest.raises(
        ErrorEstimateUnavailable,
        match=r"release the count of wage first, by .* or create the session with public_rows=",
    ):
        mean.release(within=1)
    assert session.headroom == 1
    assert "assuming that 545 units have 1 to 8 rows each" in repr(mean.preview(mu=0.1))
    informed = opened(public_rows=MEN * YEARS)
    answer = informed.frame["wage"].mean().release(within=1)
    assert 1 / 1.2 <= answer.arrays.half_width[0, 0] <= 1.2
    assert answer.cost.mu == pytest.approx(mean.preview(mu=answer.cost.mu).cost.mu)
    assert "assumed" not in repr(informed.frame["wage"].mean().preview(mu=0.01, confidence=0.9))


def test_the_remedy_that_a_refusal_names_is_one() -> None:
    session = opened()
    session.frame["wage"].count().release(within=MEN * YEARS / 30 * 2)
    answer = session.frame["wage"].mean().release(within=1)
    assert 1 / 1.25 <= answer.arrays.half_width[0, 0] <= 1.25
    spent = session.spent
    assert session.frame["wage"].mean().release(within=1).arrays.value == answer.arrays.value
    assert session.spent == spent


def test_the_cost_rests_on_public_rows_only_and_not_on_the_table() -> None:
    small = opened(public_rows=100, public_size=None)
    large = opened(public_rows=10_000, public_size=None)
    costs = [session.frame["wage"].mean().preview(within=1).cost.mu for session in (small, large)]
    assert costs[0] == pytest.approx(100 * costs[1], rel=1e-6)


def test_one_row_each_makes_the_number_of_units_that_of_rows() -> None:
    one = opened(max_rows_per_unit=1)
    assert "public_size=545" in repr(one.frame["wage"].mean().preview(within=3))
    rows = dpnb.Session(
        wages(), name="rows", budget=dpnb.Budget.gdp(1), schema=SCHEMA, public_size=7, ledger=":memory:"
    )
    assert "public_size=7" in repr(rows.frame["wage"].mean().preview(within=3))
    eight = opened(public_rows=MEN * YEARS)
    limited = eight.frame.bound_contributions(max_rows_per_unit=1)["wage"].mean()
    assert "public_size=545" in repr(limited.preview(within=3))
    two = eight.frame.bound_contributions(max_rows_per_unit=2)["wage"].mean()
    with pytest.raises(ErrorEstimateUnavailable, match="assumed that 545 units have 1 to 2 rows each"):
        two.preview(within=3)
    assert "about 545 to 1,090 rows" in repr(two.preview(mu=0.1))
    without = opened(public_rows=MEN * YEARS, public_size=None).frame.bound_contributions(max_rows_per_unit=2)
    with pytest.raises(ErrorEstimateUnavailable, match="assumed that the tighter limits exclude no row"):
        without["wage"].mean().preview(within=3)


def test_groups_are_not_taken_to_be_equally_large() -> None:
    session = opened(public_rows=MEN * YEARS, budget=dpnb.Budget.gdp(10))
    by_union = session.frame.groupby("union")["wage"].mean()
    with pytest.raises(ErrorEstimateUnavailable, match="release the count of wage by union first"):
        by_union.release(within=2)
    session.frame.groupby("union").count().release(mu=1)
    answer = by_union.release(within=2)
    assert 2 / 1.2 <= answer.arrays.half_width.max() <= 2 * 1.2


def test_a_target_for_some_groups_needs_the_counts_of_these_alone() -> None:
    session = opened(schema={**SCHEMA, "union": dpnb.Categories([0, 1, 2])}, budget=dpnb.Budget.gdp(10))
    by_union = session.frame.groupby("union")["wage"].mean()
    session.frame.groupby("union").count().release(mu=1)
    with pytest.raises(ErrorEstimateUnavailable, match="the smallest group"):  # there is nobody in group 2
        by_union.release(within=2)
    assert "unknown for some" in repr(by_union.preview(mu=1))
    widths = by_union.release(within={0: 2, 1: 4}).arrays.half_width[:, 0]
    assert 1 / 1.2 <= max(widths[0] / 2, widths[1] / 4) <= 1.2


def test_nobody_can_foretell_an_error_where_units_may_be_left_out() -> None:
    session = opened(accounting="individual", budget=dpnb.Budget.gdp(1), public_rows=MEN * YEARS)
    mean = session.frame["wage"].mean()
    assert mean.preview(within=2).fits
    session.frame.count().release(mu=1)
    with pytest.raises(ErrorEstimateUnavailable, match="some units may be excluded"):
        mean.preview(within=2)
    assert "assuming that every unit takes part" in repr(mean.preview(mu=0.5))


@pytest.mark.parametrize("changes", [{}, {"public_rows": MEN * YEARS}])
def test_an_assumed_error_says_so_beside_the_figure_wherever_it_is_shown(changes: dict[str, int]) -> None:
    query = opened(**changes).frame.groupby("union")["wage"].mean()
    preview = query.preview(mu=0.1)
    told = "at 95% (noise), assuming that 2 groups are equally large"
    assert told in repr(preview)
    assert told in preview._repr_html_()
    assert told in repr(query.preview(mu=[0.1, 0.2]))
    assert told in query.preview(mu=[0.1, 0.2])._repr_html_()
    assert all(told in option.error for option in make_state(query).options)


def test_what_is_released_is_not_assumed() -> None:
    session = opened()
    query = session.frame.groupby("union")["wage"].mean()
    assert "assumed" not in repr(session.frame.groupby("union").count().preview(mu=0.1))
    session.frame.groupby("union").count().release(mu=0.3)
    assert "assumed" not in repr(query.preview(mu=0.1))
    assert "assumed" not in make_state(query).options[3].error


def test_public_rows_reach_sub_sessions_and_not_parts() -> None:
    session = opened(public_rows=MEN * YEARS, budget=dpnb.Budget.gdp(1))
    inner = session.delegate(mu=0.5, name="colleague")
    assert inner.public_rows == {"": MEN * YEARS}
    assert inner.frame["wage"].mean().preview(within=1).fits
    part = session.partition("union")[1]
    with pytest.raises(ErrorEstimateUnavailable, match="release the count"):
        part.frame["wage"].mean().preview(within=1)


def test_several_tables_have_their_rows_by_table(tmp_path: Path) -> None:
    tables = {"wages": wages(), "men": pd.DataFrame({"man": np.arange(MEN), "age": 30.0})}
    given: dict[str, Any] = {
        "name": "two",
        "privacy_unit": "man",
        "max_rows_per_unit": {"wages": YEARS, "men": 1},
        "budget": dpnb.Budget.gdp(1),
        "schema": {"wages": SCHEMA, "men": {"age": dpnb.Bounded(0, 100)}},
        "public_size": MEN,
        "ledger": ":memory:",
    }
    session = dpnb.Session(tables, **given, public_rows={"wages": MEN * YEARS})
    assert "public_rows=4360" in repr(session.table("wages")["wage"].mean().preview(within=1))
    with pytest.raises(ErrorEstimateUnavailable, match="545 units have one row each"):
        session.table("men")["age"].mean().preview(within=1)
    rehearsed = dpnb.Session.rehearse(**given, public_rows={"wages": 4000})
    counted = rehearsed.table("wages").count().release(mu=1)
    assert abs(counted.estimate - 4000) < 6 * counted.noise_scale
    for wrong, words in ((100, "a mapping of table names"), ({"other": 5}, "'other' is not one of the tables")):
        with pytest.raises(SchemaError, match=words):
            dpnb.Session(tables, **given, public_rows=wrong)


@pytest.mark.parametrize("wrong", [0, -1, 10.5, True, "100", float("nan")])
def test_public_rows_are_a_positive_whole_number(wrong: object) -> None:
    with pytest.raises(InvalidValueError, match="public_rows: must be a positive whole number"):
        opened(public_rows=wrong)
    with pytest.raises(InvalidValueError, match="public_rows: must be a positive whole number"):
        dpnb.Session.rehearse(name="w", budget=dpnb.Budget.gdp(1), schema=SCHEMA, public_rows=wrong)


def test_public_rows_contradict_neither_the_tables_nor_the_units() -> None:
    with pytest.raises(SchemaError, match="one whole number"):
        opened(public_rows={"wages": 100})
    with pytest.raises(InvalidValueError, match="at most 1 per unit, of 545 units"):
        opened(max_rows_per_unit=1, public_rows=MEN * YEARS)
    assert opened(max_rows_per_unit=1, public_rows=MEN).public_rows == {"": MEN}


def test_a_rehearsal_has_as_many_rows() -> None:
    arguments: dict[str, Any] = {
        "name": "w",
        "budget": dpnb.Budget.gdp(1),
        "schema": SCHEMA,
        "privacy_unit": "man",
        "max_rows_per_unit": YEARS,
    }
    for size in ({}, {"public_size": MEN}):
        mock = dpnb.Session.rehearse(**arguments, **size, public_rows=MEN * YEARS)
        count = mock.frame.count().release(mu=1)
        assert count.cost == GDP(1)
        assert abs(count.estimate - MEN * YEARS) < 6 * count.noise_scale
