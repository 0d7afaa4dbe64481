"""Expected errors of groups: from released counts of rows and units, else from public numbers, as a range."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb.notebook.picker_state import make_state
from dpnb.results.preview import Preview

PERSONS, YEARS = 2_000, 5
SCHEMA = {"x": dpnb.Bounded(0, 10), "g": dpnb.Categories(["a", "b"])}


def table(years: int = YEARS) -> pd.DataFrame:
    """Persons of two equally large groups, each with as many rows."""
    persons = np.repeat(np.arange(PERSONS), years)
    return pd.DataFrame({"person": persons, "x": 5.0, "g": np.where(persons % 2, "a", "b")})


def opened(years: int = YEARS, **changes: Any) -> dpnb.Session:
    given: dict[str, Any] = {
        "name": "persons",
        "privacy_unit": "person",
        "max_rows_per_unit": YEARS,
        "budget": dpnb.Budget.gdp(1),
        "schema": SCHEMA,
        "ledger": ":memory:",
        "not_private_test_seed": 1,
    }
    return dpnb.Session(table(years), **{**given, **changes})


def preview_of(session: dpnb.Session, mu: float = 0.1) -> Preview:
    found = session.frame.groupby("g")["x"].mean().preview(mu=mu)
    assert isinstance(found, Preview)
    return found


KNOWN: dict[str, tuple[dict[str, Any], Callable[[dpnb.Frame], dpnb.Query] | None, str]] = {
    "a released count of rows": ({"public_size": PERSONS}, lambda f: f.count(), "2 groups are equally large"),
    "a released count of the column": ({}, lambda f: f["x"].count(), "2 groups are equally large"),
    "a released count by group": ({"public_size": PERSONS}, lambda f: f.groupby("g").size(), ""),
    "public rows": ({"public_rows": PERSONS * YEARS}, None, "2 groups are equally large"),
}


@pytest.mark.parametrize("name", KNOWN)
def test_what_is_announced_is_delivered_where_rows_are_known(name: str) -> None:
    """With the persons taken for rows, the announced error was five times the delivered one."""
    changes, count, assumed = KNOWN[name]
    session = opened(**changes)
    if count is not None:
        count(session.frame).release(mu=0.2)
    found = preview_of(session)
    assert found.half_widths is not None
    assert found.least_half_widths is None
    assert (found.assumed_description or "") == assumed
    delivered = session.frame.groupby("g")["x"].mean().release(mu=0.1).arrays.half_width
    assert found.half_widths == pytest.approx(delivered, rel=0.45)  # a mean's error differs by up to 1.41 by its value


@pytest.mark.parametrize("years", [1, 3, YEARS])
@pytest.mark.parametrize("released", [True, False])
def test_where_units_are_known_the_range_contains_what_is_delivered(released: bool, years: int) -> None:
    session = opened(years, **({} if released else {"public_size": PERSONS}))
    if released:
        session.frame.count_units().release(mu=0.5)
    found = preview_of(session)
    assert found.half_widths is not None
    assert found.least_half_widths is not None
    assert "2 groups are equally large and " in str(found.assumed_description)
    assert str(found.assumed_description).endswith("units have 1 to 5 rows each")
    text = " ".join(repr(found).split())
    assert " to ± " in text
    assert "rows in the smallest group (" + ("the released count" if released else "public_size=2000") in text
    delivered = session.frame.groupby("g")["x"].mean().release(mu=0.1).arrays.half_width
    assert (found.least_half_widths / 1.45 < delivered).all()
    assert (delivered < found.half_widths * 1.45).all()


def test_units_with_one_row_each_are_no_range() -> None:
    session = opened(1, max_rows_per_unit=1)
    session.frame.count_units().release(mu=0.5)
    found = preview_of(session)
    assert (found.least_half_widths, found.assumed_description) == (None, "2 groups are equally large")


def test_range_is_shown_by_the_picker_and_by_a_batch() -> None:
    session = opened(public_size=PERSONS)
    query = session.frame.groupby("g")["x"].mean()
    state = make_state(query)
    assert state.count_step is None
    assert all(" to ± " in option.error for option in state.options[:10])
    assert all(" to ± " in preset.error for preset in state.presets)
    batch = " ".join(repr(session.plan([query, session.frame.count()]).preview(mu=0.2)).split())
    assert "assuming that 2 groups are equally large and 2,000 units have 1 to 5 rows each" in batch
    assert " to ± " in batch


def test_filtered_rows_are_forecast_from_their_own_count_alone() -> None:
    session = opened(public_size=PERSONS)
    frame = session.frame
    frame.count().release(mu=0.1)
    few = frame[frame["x"] > 3].groupby("g")["x"].mean()
    assert make_state(few).options == [], "how many rows of the table it selects is unknown"
    frame[frame["x"] > 3].count().release(mu=0.1)
    assert make_state(few).options


def test_no_target_uses_what_is_assumed() -> None:
    session = opened()
    session.frame.count().release(mu=0.1)
    with pytest.raises(dpnb.errors.ErrorEstimateUnavailable, match="2 groups are equally large"):
        session.frame.groupby("g")["x"].mean().preview(within=1)


def test_nothing_is_offered_before_the_count_and_everything_after_it() -> None:
    """The picker sold "0.0 to 6.3" for a twentieth of the budget."""
    session = opened()
    query = session.frame.groupby("g")["x"].mean()
    state = make_state(query)
    assert (state.options, state.presets, state.refusal) == ([], [], None)
    assert state.count_step is not None
    assert query.count_needed is not None
    query.count_needed.release(mu=float(state.count_step.target["mu"]))
    after = make_state(query)
    assert len(after.options) > 20
    assert all("±" in option.error for option in after.options)


def test_a_count_that_is_not_precise_enough_is_no_dead_end() -> None:
    session = opened(budget=dpnb.Budget.gdp(0.01))
    query = session.frame.groupby("g")["x"].mean()
    assert query.count_needed is not None
    query.count_needed.release(mu=0.0001)
    state = make_state(query)
    assert state.count_step is not None
    assert state.options


def test_forecasts_are_those_of_an_empty_table() -> None:
    """Attack: two sessions with equal ledgers on different tables see the same states."""
    states = []
    for years in (1, YEARS):
        session = opened(years, public_size=PERSONS)
        states.append(msgspec.json.encode(make_state(session.frame.groupby("g")["x"].mean())))
    assert states[0] == states[1]
