"""The promise in plain words, and what to do first: true of this session, and code that runs."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest

import dpnb
from dpnb import errors
from dpnb.render.numbers import format_percent_down
from dpnb.render.refusals import EXPLANATIONS, explanation_for
from dpnb.session import snapshot

TABLE = pd.DataFrame({"who": [1, 1, 2], "x": [1.0, 2.0, 3.0], "g": ["a", "b", "a"]})
SCHEMA = {"x": dpnb.Bounded(0, 5), "g": dpnb.Categories(["a", "b"])}
BUDGET = dpnb.Budget(epsilon=2, delta=1e-6)


def made(folder: Path, **arguments: object) -> dpnb.Session:
    return dpnb.Session(
        **{"table": TABLE, "name": "s", "budget": BUDGET, "schema": SCHEMA, "ledger": folder / "s.dpnb", **arguments}
    )


@pytest.mark.parametrize("filter_", ["gdp", "zcdp", "rdp", "approx-dp", "rogers", "basic"])
def test_explanation_has_this_sessions_numbers_and_both_readings(tmp_path: Path, filter_: str) -> None:
    session = made(tmp_path, filter=filter_)
    session.frame.count().release(mu=0.04)
    text = " ".join(repr(session.explain()).split())
    assert f"a factor of at most {math.ceil(100 * math.exp(2)) / 100:g}" in text
    assert "plus at most 1e-06 (delta), however" in text
    assert "It is enforced as " in text
    assert f"{format_percent_down(session.headroom)} is left" in text
    assert session.odometer.statement() in text
    assert "fixed beforehand" in text
    assert snapshot.snapshot(session).spent_loss in text
    times = session._core.account.compared().states[filter_].max_repetitions(session._core.account.last_loss)
    assert f"{times:,} more quer{'y' if times == 1 else 'ies'} like the last one, each " in text
    assert "% of the budget (mu 0.04)" in text


def test_promise_without_an_epsilon_is_explained_by_two_normal_draws(tmp_path: Path) -> None:
    text = " ".join(repr(made(tmp_path, budget=dpnb.Budget.gdp("0.25")).explain()).split())
    assert "from one with mean 0.25" in text
    assert "epsilon" not in text.partition("the filter")[0]


def test_enormous_epsilon_is_explained_without_its_power(tmp_path: Path) -> None:
    text = " ".join(repr(made(tmp_path, budget=dpnb.Budget(epsilon=800, delta=0.1)).explain()).split())
    assert "a factor of at most e to the epsilon of 800" in text


def test_explanation_is_loud_about_a_rehearsal_and_escapes_names() -> None:
    session = dpnb.Session.rehearse(name="s", budget=BUDGET, schema={"<b>": dpnb.Bounded(0, 1)})
    assert "REHEARSAL" in repr(session.explain())
    assert "REHEARSAL" in session.explain()._repr_html_()
    assert "<b>s:" in session.explain()._repr_html_()


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"privacy_unit": "who", "max_rows_per_unit": 2},
        {"schema": {"g": dpnb.Categories(["a"])}},
        {"schema": {"x": dpnb.Bounded(0, 1)}},
        {"table": {"one": TABLE}, "schema": {"one": SCHEMA}, "privacy_unit": "who", "max_rows_per_unit": {"one": 2}},
    ],
)
def test_next_steps_run_as_they_stand_and_cost_nothing(tmp_path: Path, arguments: dict) -> None:
    session = made(tmp_path, **arguments)
    names = {"session": session}
    steps = snapshot.snapshot(session).next_steps
    for step in steps:
        exec(step.code, names)
    assert len(steps) >= 3
    assert session.headroom == 1


def test_fresh_session_is_short_and_says_what_to_do(tmp_path: Path) -> None:
    session = made(tmp_path)
    assert len(str(session).splitlines()) <= 10
    assert "df = session.frame" in str(session)
    assert "<code>df = session.frame</code>" in session._repr_html_()
    session.frame.count().release(mu=0.1)
    assert "What to do next" not in str(session) + session._repr_html_()


def test_every_error_has_a_sentence_of_its_own_kind() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.DpnbError)]
    kinds.remove(errors.MissingArgument)  # an argument that is not valid, with a message that says all
    sentences = {kind: explanation_for(kind("x")) for kind in kinds}
    assert len({explanation.id for explanation in sentences.values()}) == len(kinds)
    assert set(sentences.values()) <= set(EXPLANATIONS)


def test_error_of_a_class_that_is_not_ours_is_explained_by_the_nearest() -> None:
    class Special(errors.BudgetExceeded):
        pass

    assert explanation_for(Special()).id == "budget-exceeded"


def test_explanations_are_single_sentences_with_unique_names() -> None:
    assert len({one.id for one in EXPLANATIONS}) == len(EXPLANATIONS)
    for one in EXPLANATIONS:
        assert one.text.endswith(".")
        assert one.text.count(". ") == 0, one


def test_promise_is_never_told_tighter_than_it_is(tmp_path: Path) -> None:
    session = made(tmp_path, budget=dpnb.Budget(epsilon=1.0000004, delta=1.0000004e-6))
    assert "epsilon of 1.00001" in " ".join(repr(session.explain()).split())
    assert session.guarantee.startswith("(1.00001, 1.00001e-06)-DP")
    (tmp_path / "gdp").mkdir()
    gdp = made(tmp_path / "gdp", budget=dpnb.Budget.gdp("0.3333999999"))
    assert "mean 0 from one with mean 0.3334, both" in " ".join(repr(gdp.explain()).split())


def test_what_a_discovery_spends_of_delta_is_told(tmp_path: Path) -> None:
    session = made(tmp_path, budget=dpnb.Budget(epsilon=2, delta=1e-6, discovery_delta=5e-7))
    session.frame.discover("g", discovery_delta=2e-7).release(mu=0.1)
    assert snapshot.snapshot(session).spent_loss.endswith(", and delta 2e-7 of 5e-7")
    assert session.log["delta"][1] == 2e-7
    with pytest.raises(errors.BudgetExceeded, match="its mu fits, its delta does not; 3e-7 of discovery_delta is left"):
        session.frame.discover("g", discovery_delta=4e-7).release(mu=0.1)
