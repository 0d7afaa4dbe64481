"""Odometers by name, and the truncated view of a session."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pandas as pd
import pytest

import dpnb
from dpnb.accounting import GDP, ApproxDP, TruncatedView
from dpnb.errors import ConversionError, InvalidValueError


def opened(**options: Any) -> dpnb.Session:
    declared: dict[str, Any] = {
        "table": pd.DataFrame({"x": [1.0, 2.0, 3.0], "g": ["a", "a", "b"], "t": ["q", "q", "q"]}),
        "name": "small",
        "budget": dpnb.Budget(2, 1e-6),
        "schema": {"x": dpnb.Bounded(0, 5), "g": dpnb.Categories(["a", "b"])},
        "ledger": ":memory:",
    }
    return dpnb.Session(**{**declared, **options})


def test_view_ends_at_the_first_launch_that_exceeds_and_has_nothing_later() -> None:
    session = opened()
    for number, mu in enumerate(("0.1", "0.1", "0.3", "0.01")):
        session.frame[session.frame["x"] > number].count().release(mu=mu)
    session.frame["x"].sum().release(mu="0.02")
    view = session.truncated_view("0.15")
    assert (view.messages, view.truncated, view.guarantee) == ((1, 2), True, GDP("0.15"))
    assert session.log().loc[list(view.messages)].shape[0] == 2
    assert session.truncated_view("0.4").messages == (1, 2, 3, 4, 5)
    assert isinstance(view, TruncatedView)


def test_parts_are_counted_by_the_largest_and_what_a_mechanism_answers_later_is_free() -> None:
    session = opened()
    parts = session.partition("g", name="parts")
    parts["a"].frame.count().release(mu="0.1")
    parts["b"].frame.count().release(mu="0.1")
    scan = session.above_threshold(100, name="scan", mu="0.1", max_queries=5)
    scan.ask(session.frame.count())
    colleague = session.delegate(mu="0.2", name="colleague")
    colleague.frame.count().release(mu="0.2")
    view = session.truncated_view("0.15")
    assert view.odometer == session.odometers["gdp-accumulator"].__class__()._changed(mu_squared=Fraction("0.02"))
    assert len(view.messages) == 5  # two launches, two parts and a comparison
    assert parts["a"].truncated_view("0.1").messages == (2,)
    assert colleague.truncated_view("0.2").guarantee == GDP("0.2")


@pytest.mark.parametrize(
    ("filter_", "odometer"),
    [
        ("gdp", "GDPAccumulator"),
        ("zcdp", "ZCDPAccumulator"),
        ("rdp", "RDPAccumulator"),
        ("approx-dp", "ApproxDPAccumulator"),
        ("basic", "MixtureOdometer"),
    ],
)
def test_default_is_in_the_filters_kind_of_loss(filter_: str, odometer: str) -> None:
    session = opened(filter=filter_)
    session.frame.count().release(mu="0.05")
    view = session.truncated_view(50)
    assert (type(view.odometer).__name__, view.messages) == (odometer, (1,))


def test_any_odometer_can_be_chosen_and_reads_the_same_as_in_the_mapping() -> None:
    session = opened()
    session.frame.count().release(mu="0.1")
    session.above_threshold(100, name="scan", epsilon="0.05")
    for name in session.odometers.keys() - {"spent"}:
        view = session.truncated_view(100, odometer=name)
        assert view.odometer == session.odometers[name], name
    assert session.truncated_view(3, odometer="mixture").guarantee == ApproxDP(3, 1e-6)
    assert session.odometers["spent"].bound > session.odometers["gdp-accumulator"].bound * 0.99


@pytest.mark.parametrize("filter_", ["gdp", "zcdp"])
def test_explain_says_which_accumulator_it_shows_and_where_the_others_are(filter_: str) -> None:
    session = opened(filter=filter_)
    session.frame.count().release(mu="0.05")
    words = " ".join(str(session.explain()).split())
    assert session.odometers["spent"].statement() in words
    assert 'the filter\'s kind of loss; session.odometers has it as "spent", and the others' in words


def test_refusals_say_what_to_choose() -> None:
    session = opened(
        schema={"x": dpnb.Bounded(0, 5), "t": dpnb.Text()}, budget=dpnb.Budget(2, 1e-6, discovery_delta=1e-7)
    )
    session.frame.discover("t").release(mu="0.1")
    with pytest.raises(ConversionError, match=r"request 1, .* choose another one, for example 'mixture'"):
        session.truncated_view(1)
    assert session.truncated_view(3, odometer="mixture").messages == (1,)
    with pytest.raises(InvalidValueError, match=r"must be one of 'mixture', .*; got 'spent'"):
        session.truncated_view(1, odometer="spent")
    with pytest.raises(InvalidValueError, match="threshold"):
        session.truncated_view(-1)
