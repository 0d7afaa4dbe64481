"""*Refine* in the picker, and previews of refinements: what they gain, and what a single release would have given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb.notebook import picker_state
from dpnb.notebook.picker_state import GAIN, make_state
from dpnb.query.query import Query
from dpnb.results.preview import Preview

ROWS = 3_000
TABLE = pd.DataFrame({"x": np.arange(ROWS) % 7 * 1.0, "g": np.where(np.arange(ROWS) % 3, "a", "b")})
SCHEMA = {"x": dpnb.Bounded(0, 10), "g": dpnb.Categories(["a", "b"])}


def opened(**changes: Any) -> dpnb.Session:
    given: dict[str, Any] = {"budget": dpnb.Budget.gdp(1), "public_size": ROWS, "not_private_test_seed": 3, **changes}
    return dpnb.Session(TABLE, name="s", schema=SCHEMA, ledger=":memory:", **given)


def queries(session: dpnb.Session) -> dict[str, Query]:
    frame = session.frame
    return {
        "count": frame.count(),
        "mean": frame["x"].mean(),
        "group means": frame.groupby("g")["x"].mean(),
        "median": frame["x"].median(),
        "several": frame.groupby("g").agg(n="count", mean=("x", "mean")),
    }


def preview_at(query: Query, target: dict[str, str]) -> Preview:
    found = query.preview(**{kind: amount for kind, amount in target.items() if kind != "at_most"})
    assert isinstance(found, Preview)
    return found


NAMES = ("count", "mean", "group means", "median", "several")


@pytest.mark.parametrize("name", NAMES)
def test_slider_starts_where_a_quarter_is_gained(name: str) -> None:
    query = queries(opened())[name]
    query.release(mu=0.1)
    state = make_state(query)
    assert state.start == 0
    gains = [preview_at(query, option.target).gain for option in state.options]
    assert all(gain is not None and gain >= GAIN for gain in gains)
    first = gains[0]
    assert first is not None
    assert first < GAIN + 0.1, "nothing cheaper is left out than what gains less"
    assert not any("narrows the widest interval" in fact for fact in state.facts)


@pytest.mark.parametrize("name", NAMES)
def test_every_option_says_what_is_now_what_comes_and_what_one_release_gives(name: str) -> None:
    query = queries(opened())[name]
    first = query.release(mu=0.1)
    option = make_state(query).options[2]
    now, then = option.error.removeprefix("now ").split(" -> ")
    found = preview_at(query, option.target)
    for output, text in enumerate(now.split(", ")):
        assert text.split("± ")[1].strip()
        assert found.current_half_widths is not None
        assert found.half_widths is not None
        assert found.half_widths_in_one_release is not None
        widest = [np.max(each[:, output]) for each in (found.current_half_widths, found.half_widths)]
        assert widest[1] < widest[0]
        assert (found.half_widths_in_one_release < found.half_widths).all()
    assert "±" in then
    assert option.in_one_release is not None
    assert option.in_one_release.endswith(f" at mu {found.total_loss.mu:g}")
    assert "in one release: ±" in " ".join(repr(found).split()) or name == "several"
    assert first.n_observations == 1


@pytest.mark.parametrize("name", ["count", "mean"])
def test_one_release_gives_what_was_said(name: str) -> None:
    refined, once = opened(), opened()
    query = queries(refined)[name]
    query.release(mu=0.1)
    said = preview_at(query, {"mu": "0.4"}).half_widths_in_one_release
    assert said is not None
    assert queries(once)[name].release(mu=0.4).arrays.half_width == pytest.approx(said, rel=0.1)


def test_less_is_offered_only_where_the_rest_buys_no_more_and_it_says_so() -> None:
    query = opened().frame.count()
    query.release(mu=0.48)
    state = make_state(query)
    gains = [preview_at(query, option.target).gain or 0.0 for option in state.options]
    assert 0 < max(gains) < GAIN
    assert min(gains) >= max(gains) / 2
    assert (
        state.facts[0]
        == f"Even all that is left narrows the widest interval by {picker_state.percent_down(max(gains))} only."
    )


def test_without_a_budget_it_starts_at_a_quarter_too() -> None:
    session = opened(budget=None)
    query = session.frame.count()
    query.release(mu=0.1)
    state = make_state(query)
    first = preview_at(query, state.options[state.start].target).gain
    assert first is not None
    assert GAIN <= first < GAIN + 0.1


def test_no_refinement_is_forecast_wider_than_what_is_known() -> None:
    query = opened().frame.groupby("g")["x"].mean()
    query.release(mu=0.1)
    found = preview_at(query, {"mu": "0.102"})
    assert found.half_widths is not None
    assert (found.half_widths <= found.current_half_widths).all()
    assert not found.narrows_interval
    assert "no narrower than the current noise interval" in repr(found)
    assert "->" not in repr(found)


def test_first_release_is_no_refinement() -> None:
    found = preview_at(opened().frame.count(), {"mu": "0.1"})
    assert (found.gain, found.half_widths_in_one_release) == (None, None)
    assert "->" not in repr(found)
    assert "in one release" not in repr(found)
