"""A table of persons, computed from their rows, is answered, charged and shown like a table that has one row for each.

Both sessions draw the same noise, so their answers are equal if the exact sums and the sensitivity are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb.errors import BudgetExceeded, PlanError

MOST = 3
ARMS = dpnb.Categories(["free", "paid"])
ROWS_SCHEMA = {"x": dpnb.Bounded(0, 8), "arm": ARMS}
PERSONS_SCHEMA = {"x_max": dpnb.Bounded(0, 8), "n": dpnb.Bounded(0, MOST, integer=True), "arm": ARMS}


def rows(persons: int = 60) -> pd.DataFrame:
    chance = np.random.default_rng(4)
    who = np.repeat(np.arange(persons), chance.integers(1, MOST + 1, persons))
    return pd.DataFrame(
        {"who": who, "x": chance.integers(0, 9, len(who)).astype(float), "arm": np.array(["free", "paid"])[who % 2]}
    )


def persons(table: pd.DataFrame) -> pd.DataFrame:
    groups = table.groupby("who")
    return pd.DataFrame({"x_max": groups.x.max(), "n": groups.size(), "arm": groups.arm.max()}).reset_index()


def opened(table: pd.DataFrame, schema: dict[str, Any], most: int, **changes: Any) -> dpnb.Session:
    arguments: dict[str, Any] = {
        "name": "persons",
        "schema": schema,
        "privacy_unit": "who",
        "max_rows_per_unit": most,
        "budget": dpnb.Budget.gdp(2),
        "ledger": ":memory:",
        "not_private_test_seed": 7,
    }
    return dpnb.Session(table, **{**arguments, **changes})


def computed(frame: Any) -> Any:
    """The table of persons from their rows; whose arm is that of their largest value."""
    return frame.sort_values("x").groupby("who").agg(x_max=("x", "max"), n="size", arm=("arm", "last"))


def both(**changes: Any) -> tuple[tuple[dpnb.Session, Any], tuple[dpnb.Session, Any]]:
    """A session with rows and its table of persons, and a session with a table of persons."""
    one = opened(rows(), ROWS_SCHEMA, MOST, **changes)
    other = opened(persons(rows()), PERSONS_SCHEMA, 1, **changes)
    return (one, computed(one.frame)), (other, other.frame)


def estimates(answer: Any) -> list[float]:
    return [float(value) for value in np.ravel(answer.estimate)]


def queries_of(frame: Any) -> list[Any]:
    return [
        frame["x_max"].sum(),
        frame.groupby("arm").size(),
        frame[frame["n"] > 1]["x_max"].mean(),
        frame.groupby("n")["x_max"].sum(),
        frame["x_max"].median(),
        frame.count_units(),
        frame.regress("x_max ~ n"),
    ]


def test_answers_costs_and_previews_are_the_same() -> None:
    (one, computed_persons), (other, given) = both()
    for query, same in zip(queries_of(computed_persons), queries_of(given), strict=True):
        previews = query.preview(mu=0.2), same.preview(mu=0.2)
        assert previews[0].cost == previews[1].cost
        answers = query.release(mu=0.2), same.release(mu=0.2)
        np.testing.assert_array_equal(*map(estimates, answers))  # a slope may be unknown
        assert answers[0].cost == answers[1].cost
    assert one.spent == other.spent


def test_a_batch_is_charged_and_answered_the_same() -> None:
    found = []
    for session, frame in both():
        answer = session.plan([frame.groupby("arm").size(), frame.groupby("n").size(), frame.count()]).release(mu=0.5)
        found.append(([estimates(one) for one in answer], session.spent))
    assert found[0] == found[1]


def test_a_batch_is_of_rows_or_of_persons() -> None:
    session = opened(rows(), ROWS_SCHEMA, MOST)
    with pytest.raises(PlanError, match="same rows"):
        session.plan([session.frame["x"].sum(), session.frame.groupby("who")["x"].max().sum()])
    assert session.ledger.count == 0


@pytest.mark.parametrize("mode", ["skip", "drop", "clip"])
def test_each_person_pays_for_what_their_own_rows_change(mode: str) -> None:
    """Until some can pay no longer: the same ones."""
    found = []
    for session, frame in both(accounting="individual", on_exhausted=mode, budget=dpnb.Budget.gdp(1)):
        answers = []
        for turn in range(4):
            answers.append(estimates(frame["x_max"].sum().release(mu=0.4 + turn / 100)))
            answers.append(estimates(frame.groupby("arm")["n"].sum().release(mu=0.3 + turn / 100)))
        answers.append(estimates(session.count_active_units("at the end").release(mu=0.1)))
        found.append(answers)
    assert found[0] == found[1]


def test_parts_are_charged_once_for_persons_who_are_in_one() -> None:
    found = []
    for session, frame in both():
        parts = session.partition(frame["arm"])
        answers = [estimates(parts[arm].frame["x_max"].sum().release(mu=0.5)) for arm in ("free", "paid")]
        found.append((answers, session.spent))
        assert session.spent.mu == pytest.approx(0.5, rel=1e-6)
    assert found[0] == found[1]


def test_a_budget_that_is_too_small_is_not_charged() -> None:
    (session, frame), _ = both()
    with pytest.raises(BudgetExceeded):
        frame["x_max"].sum().release(mu=3)
    assert session.ledger.count == 0


def test_a_rehearsal_previews_what_the_session_charges() -> None:
    session = opened(rows(), ROWS_SCHEMA, MOST)
    rehearsal = dpnb.Session.rehearse(
        name="persons",
        schema=ROWS_SCHEMA,
        privacy_unit="who",
        max_rows_per_unit=MOST,
        budget=dpnb.Budget.gdp(2),
    )
    for query, real in zip(*(queries_of(computed(one.frame)) for one in (rehearsal, session)), strict=True):
        assert query.preview(mu=0.2).cost == real.preview(mu=0.2).cost
        assert len(estimates(query.release(mu=0.2))) == len(estimates(real.release(mu=0.2)))


def test_an_answer_is_reused_and_refined_as_any_other() -> None:
    session = opened(rows(), ROWS_SCHEMA, MOST)
    first = computed(session.frame)["x_max"].sum().release(mu=0.3)
    spent = session.spent
    again = computed(session.frame)["x_max"].sum().release(mu=0.3)
    assert estimates(again) == estimates(first)
    assert session.spent == spent
    better = first.refine(mu=0.6)
    assert better.noise_scale < first.noise_scale
    assert session.spent.mu == pytest.approx(0.6, rel=1e-6)


def test_an_explanation_says_what_a_table_is_made_of() -> None:
    session = opened(rows(), ROWS_SCHEMA, MOST)
    query = computed(session.frame)["n"].sum()
    assert "one row for each unit" in query.description
    assert str(query.explain())


def test_bounds_of_contributions_are_of_the_result() -> None:
    session = opened(rows(), ROWS_SCHEMA, MOST)
    frame = session.frame
    with pytest.raises(PlanError, match="on the result"):
        frame.bound_contributions(max_rows_per_unit=1).groupby("who")["x"].max().sum()
    per_key = frame.groupby(["who", "arm"]).agg(top=("x", "max"))
    limited = per_key.bound_contributions(max_rows_per_unit=1)["top"].sum()
    assert limited.release(mu=1).noise_scale < per_key["top"].sum().release(mu=1).noise_scale
