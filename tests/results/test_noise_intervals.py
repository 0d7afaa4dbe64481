"""Every display of an interval says what it covers, and every verdict what it is about."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

import dpnb
from dpnb._browser.glossary import NOISE_INTERVAL, TERMS
from dpnb.render.previews import describe_expected_error

TABLE = pd.DataFrame(
    {"side": ["n", "s"] * 3000, "plan": ["a", "b", "b"] * 2000, "x": [float(i % 10) for i in range(6000)]}
)
UNNAMED = re.compile(
    r"(?<!noise )(?<!noise_)(?<!population )\bintervals?\b|confidence interval|95%\)|"
    r"(?<!\()95% (?!noise|confidence|population)"
)
"""An interval whose name does not say what it covers."""


@pytest.fixture(scope="module")
def session() -> dpnb.Session:
    schema = {
        "side": dpnb.Categories(["n", "s"]),
        "plan": dpnb.Categories(["a", "b"]),
        "x": dpnb.Bounded(0, 10),
    }
    budget = dpnb.Budget.gdp(20)
    return dpnb.Session(TABLE, name="t", schema=schema, budget=budget, ledger=":memory:", not_private_test_seed=4)


def mean(session: dpnb.Session) -> Any:
    return session.frame.groupby("side")["x"].mean().release(mu=1)


ANSWERS: dict[str, Callable[[dpnb.Session], Any]] = {
    "a number": lambda session: session.frame["x"].mean().release(mu=1),
    "groups": mean,
    "all at once": lambda session: session.frame.groupby("side").size().release(mu=1, simultaneous=True),
    "statistics": lambda session: session.frame["x"].describe().release(mu=1),
    "side by side": lambda session: session.frame.groupby("side")["x"].agg(["mean", "std"]).release(mu=1),
    "two levels": lambda session: session.frame.groupby(["side", "plan"]).size().release(mu=1).unstack(),
    "a difference": lambda session: mean(session)["n"] - mean(session)["s"],
    "refined": lambda session: session.frame.count().release(mu=1).refine(mu=2),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_intervals_of_answers_are_named(name: str, session: dpnb.Session) -> None:
    answer = ANSWERS[name](session)
    for text in (str(answer), answer._repr_html_(), answer.to_markdown(), answer.plot().to_json()):
        assert "95% noise" in text
        assert not UNNAMED.search(re.sub(r'title="[^"]*"', "", text)), text
    assert TERMS[NOISE_INTERVAL].replace("'", "&#x27;") in answer._repr_html_()
    more = ["population_low", "population_high"] if answer.has_population_intervals else []
    assert [*answer.to_pandas().columns] == ["estimate", "low", "high", "noise_scale", *more]  # names in code stay
    assert ("population" in str(answer)) == answer.has_population_intervals


def test_errors_are_named_where_they_are_shown(session: dpnb.Session) -> None:
    frame = session.frame
    query = frame.groupby("plan")["x"].sum()
    query.release(mu=1)
    batch = session.plan([frame.count(), frame["x"].sum()])
    for text in (
        describe_expected_error(frame.count().preview(mu=1)),
        str(query.preview(mu=[1, 2])),
        str(batch.preview(mu=1)),
        str(batch.release(mu=1)),
        session.log["error"].iloc[-1],
    ):
        assert re.search(r"95%( or better)? \(noise\)", text), text


def test_verdicts_are_about_this_table(session: dpnb.Session) -> None:
    answer, groups = session.frame["x"].mean().release(mu=1), mean(session)
    scan = session.above_threshold(100, name="scan", epsilon=1)
    top = session.frame.groupby("plan").size().top(1)
    for verdict in (answer > 3, groups > 3, groups["n"] > groups["s"], scan.ask(session.frame.count())):
        assert "in this table" in str(verdict)
    for explanation in (top.preview(epsilon=1), top.release(epsilon=1), session.frame.count().explain()):
        assert "in this table" in str(explanation)
    assert session.log["query"].str.endswith(" 100 in this table").sum() == 1
    with pytest.raises(dpnb.errors.RequestError, match="too close to say in this table"):
        bool(answer > answer.estimate)
