"""The gauges: what is left and what is spent are one number, and the odometer has a scale of its own."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

import dpnb
from dpnb.accounting.exact import display_up
from dpnb.accounting.odometers import MixtureOdometer
from dpnb.session.snapshot import snapshot

FILTERS = ["gdp", "zcdp", "rdp", "approx-dp", "rogers", "basic"]


def opened(**arguments: Any) -> dpnb.Session:
    declared: dict[str, Any] = {
        "table": pd.DataFrame({"x": [1.0, 2.0]}),
        "name": "small",
        "budget": dpnb.Budget(epsilon=2, delta=1e-6),
        "schema": {"x": dpnb.Bounded(0, 5)},
        "ledger": ":memory:",
    }
    return dpnb.Session(**{**declared, **arguments})


def spend_everything(session: dpnb.Session) -> None:
    for number in range(4):
        session.frame[session.frame["x"] > number].count().release(share=0.5)
    session.frame.count().release(share=1)


@pytest.mark.parametrize("filter_", FILTERS)
def test_odometer_ends_at_the_end_of_its_scale_and_never_beyond(filter_: str) -> None:
    session = opened(filter=filter_)
    ends = [snapshot(session).gauges[1].end]
    assert snapshot(session).gauges[1].value == 0
    spend_everything(session)
    gauge = snapshot(session).gauges[1]
    assert [gauge.end] == ends, "the scale does not move"
    assert gauge.kind == "loss", "never a share of the budget"
    if filter_ in ("rogers", "basic"):
        assert gauge.value <= 1
    else:
        assert gauge.value == pytest.approx(1, abs=1e-6)
        assert gauge.end == f"{gauge.text.removeprefix('loss so far at most ')} when the budget is spent"


def test_odometer_may_end_above_epsilon_and_its_note_says_that_this_is_no_contradiction() -> None:
    session = opened()
    spend_everything(session)
    odometer, gauge = session.odometer, snapshot(session).gauges[1]
    assert isinstance(odometer, MixtureOdometer)
    assert odometer.bound > 2
    assert gauge.end == f"{display_up(odometer.bound)} when the budget is spent"
    assert gauge.note == (
        "A bound at every moment with confidence 99.9999%: a different statement from the guarantee, so it may exceed "
        "epsilon."
    )
    assert "epsilon" not in str(snapshot(opened(budget=dpnb.Budget.gdp(1))).gauges[1].note)


def test_what_is_left_and_what_is_spent_are_one_number() -> None:
    session = opened(budget=dpnb.Budget.gdp(1))
    assert (snapshot(session).gauges[0].text, snapshot(session).spent) == ("100.0% left", "0% spent")
    for number in range(6):
        session.frame[session.frame["x"] > number].count().release(mu=0.1 + number / 30)
        told = snapshot(session)
        left, spent = (float(words.partition("%")[0]) for words in (told.gauges[0].text, told.spent))
        assert left + spent == pytest.approx(100)
        assert told.spent_loss.startswith("mu ")
    assert [line.text for line in told.headlines if line.id == "spent"] == [told.spent]


def test_spending_below_one_percent_is_shown_with_hundredths() -> None:
    session = opened(budget=dpnb.Budget.gdp(1))
    session.frame.count().release(mu=0.05)
    assert snapshot(session).spent == "0.25% spent"


def test_once_odometers_have_stopped_the_reading_is_that_of_the_accumulator() -> None:
    session = opened(filter="rdp")
    session.delegate(dpnb.Budget(0.5, 1e-7), name="colleague")
    told = snapshot(session)
    assert (told.gauges[1].id, told.gauges[1].kind) == ("accumulator", "loss")
    assert "stopped at the first sub-session" in str(told.odometers_paused)
    assert session.odometer.kind == "accumulator"


def test_costs_of_mechanisms_come_as_a_percentage_first() -> None:
    session = opened(
        table=pd.DataFrame({"site": ["a", "b"]}),
        schema={"site": dpnb.Categories(["a", "b"])},
        budget=dpnb.Budget.gdp(1),
    )
    parts = session.partition("site", name="sites", max_parts_per_unit=1)
    parts["a"].frame.count().release(mu="0.2")
    parts["b"].frame.count().release(mu="0.1")
    session.delegate(mu="0.1", name="colleague")
    session.above_threshold(10, name="scan", mu="0.3", max_queries=5)
    told = {one.name: one for one in snapshot(session).mechanisms}
    assert told["sites"].text == "2 of 2 parts queried; charged 4.0% of the budget (mu 0.2) so far"
    assert [part.text for part in told["sites"].parts] == ["4.0% (mu 0.2)", "1.0% (mu 0.1)"]
    assert told["colleague"].text == "100.0% left of 1.0% of the budget (mu 0.1)"
    assert told["scan"].text.endswith("; 9.0% of the budget (mu 0.3)")


def test_under_individual_accounting_what_is_spent_is_the_worst_case() -> None:
    session = opened(accounting="individual", budget=dpnb.Budget.gdp(1))
    session.frame.count().release(mu="0.5")
    told = snapshot(session)
    assert (told.gauges[0].label, told.gauges[0].text) == ("Worst case", "75.0% left for every unit")
    assert told.spent == "25.0% spent in the worst case"
