"""What was known after each look: from the ledger, by the rules of an answer, without the table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb._backends import MemoryBackend
from dpnb.accounting.losses import GDP
from dpnb.errors import RequestError
from dpnb.results.answer import Answer

Make = Callable[..., dpnb.Session]

BUDGET = dpnb.Budget(epsilon=20, delta=1e-6, discovery_delta=1e-7)


@pytest.fixture
def make(tmp_path: Path) -> Make:
    table = pd.DataFrame(
        {"x": [float(i % 11) for i in range(3000)], "g": [("a", "b", "c")[i % 3] for i in range(3000)]}
    )

    def made(**changes: Any) -> dpnb.Session:
        arguments: dict[str, Any] = {
            "name": "history",
            "budget": BUDGET,
            "schema": {"x": dpnb.Bounded(0, 10), "g": dpnb.Categories(["a", "b", "c"]), "t": dpnb.Text()},
            "ledger": tmp_path / "history.dpnb",
            "not_private_test_seed": 5,
        }
        return dpnb.Session(table.assign(t=table["g"]), **{**arguments, **changes})

    return made


def same_numbers(one: Answer, other: Answer) -> bool:
    """Bit for bit, not a number beside not a number included."""
    return all(
        getattr(one.arrays, name).tobytes() == getattr(other.arrays, name).tobytes()
        for name in ("value", "low", "high", "noise_scale")
    )


ASKED: dict[str, Callable[[Any], Any]] = {
    "count": lambda f: f.count(),
    "mean by group": lambda f: f.groupby("g")["x"].mean(),
    "quantiles": lambda f: f["x"].quantile([0.1, 0.5, 0.9]),
    "description": lambda f: f["x"].describe(),
    "regression": lambda f: f.regress("x", on="g"),
}


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
@pytest.mark.parametrize("how", [{}, {"confidence": 0.8}, {"simultaneous": True}], ids=str)
def test_each_entry_is_the_answer_that_was_given_then(make: Make, ask: Callable[[Any], Any], how: Any) -> None:
    query = ask(make().frame)
    given = [query.release(mu=mu, **how) for mu in (0.1, 0.2, 0.5)]
    history = given[-1].history
    assert list(history) == given
    assert all(map(same_numbers, history, given))
    assert [(entry.cost, entry.total_loss, entry.time, entry.n_observations) for entry in history] == [
        (answer.cost, answer.total_loss, answer.time, answer.n_observations) for answer in given
    ]
    assert [entry.cost_fraction for entry in history] == [answer.cost_fraction for answer in given]
    assert len(given[1].history) == 2


def test_intervals_narrow_and_costs_add_up_to_what_is_known(make: Make) -> None:
    answer = make().frame.count().release(mu=0.1).refine(mu=0.2).refine(mu=0.5)
    widths = [float(entry.arrays.half_width[0, 0]) for entry in answer.history]
    assert sorted(widths, reverse=True) == widths
    assert sum(entry.cost.mu_squared for entry in answer.history) == answer.total_loss.mu_squared == GDP(0.5).mu_squared


def test_the_last_entry_of_a_free_answer_has_its_numbers_and_the_looks_cost(make: Make) -> None:
    count = make().frame.count()
    count.release(mu=0.3)
    paid = count.release(mu=0.5)
    free = count.release(mu=0.2, confidence=0.9)
    last = free.history[-1]
    assert same_numbers(last, free)
    assert (last.cost, last.time, free.cost) == (paid.cost, paid.time, GDP(0))
    best = count.best
    assert best is not None
    assert same_numbers(best.history[-1], best)


def test_groups_that_were_not_looked_at_stay_as_they_were(make: Make) -> None:
    means = make().frame.groupby("g")["x"].mean().release(mu=0.2)
    refined = means.refine(mu=0.5, groups=["b"]).refine(mu=0.6)
    history = refined.history
    assert history.observed_groups == [(True, True, True), (False, True, False), (True, True, True)]
    assert same_numbers(history[-1], refined)
    first, second, third = history
    for key in ("a", "c"):
        assert second[key].interval == first[key].interval
    assert second["b"].interval != first["b"].interval
    assert third["a"].interval != second["a"].interval
    table = history.to_pandas()
    assert table["is_observed"].unstack().to_numpy().tolist() == [list(each) for each in history.observed_groups]
    assert "with the groups that it includes" in repr(history)
    assert len(repr(history).splitlines()) == 11  # notice, words, head, 3 + 1 + 3 groups, what is left out


def test_the_table_tells_what_was_asked_of_each_look(make: Make) -> None:
    answer = make().frame.count().release(mu=0.3).refine(mu=0.5)
    table = answer.history.to_pandas()
    assert list(table.index) == [1, 2]
    assert table.index.name == "observation"
    assert table["cost_mu"].tolist() == pytest.approx([0.3, 0.4])
    assert table["total_loss_mu"].tolist() == pytest.approx([0.3, 0.5])
    assert table.loc[2, ["low", "high"]].tolist() == list(answer.interval)
    assert table["is_observed"].all()


def test_a_share_has_a_history_of_shares(make: Make) -> None:
    shares = make().frame.groupby("g").count().release(mu=0.2).refine(mu=0.4).proportions()
    assert [entry.view for entry in shares.history] == [shares.view, shares.view]
    assert same_numbers(shares.history[-1], shares)
    assert all(map(all, shares.history.observed_groups))


def test_a_final_answer_has_one_look(make: Make) -> None:
    final = make().frame.count().release(mu=0.5, final=True)
    assert list(final.history) == [final]


def test_a_history_reads_no_row_and_costs_nothing(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    before = make().frame.groupby("g")["x"].mean().release(mu=0.2).refine(mu=0.5, groups=["a"])

    def refuse(*_: object) -> NoReturn:
        raise AssertionError("rows were read")

    monkeypatch.setattr(MemoryBackend, "rows", refuse)
    later = make()  # as in another kernel, on the same ledger
    spent, rows = later.spent, len(later.ledger.charges())
    best = later.frame.groupby("g")["x"].mean().best
    assert best is not None
    assert all(map(same_numbers, best.history, before.history))
    assert (later.spent, len(later.ledger.charges())) == (spent, rows)


def test_a_history_does_not_depend_on_the_table(make: Make, tmp_path: Path) -> None:
    """The same ledger beside a table without a row: the history is that of what was released."""
    before = make().frame.count().release(mu=0.2).refine(mu=0.5)
    empty = pd.DataFrame({"x": [0.0], "g": ["a"], "t": ["a"]}).head(0)
    other = dpnb.Session(
        empty,
        name="history",
        budget=BUDGET,
        schema={"x": dpnb.Bounded(0, 10), "g": dpnb.Categories(["a", "b", "c"]), "t": dpnb.Text()},
        ledger=tmp_path / "history.dpnb",
        not_private_test_seed=5,
    )
    best = other.frame.count().best
    assert best is not None
    assert list(map(float, best.history)) == list(map(float, before.history))


def test_what_was_computed_from_answers_has_no_history(make: Make) -> None:
    counts = make().frame.groupby("g").count().release(mu=0.2)
    for computed in (counts["a"] - counts["b"], counts * 2, counts["a"]):
        with pytest.raises(RequestError, match="history: belongs to a released answer"):
            _ = computed.history


def test_a_discovery_has_no_history(make: Make) -> None:
    found = make().frame.discover("t").release(mu=1)
    with pytest.raises(RequestError, match="each discovery is a separate query"):
        _ = found.history


def test_an_answer_shows_how_it_narrowed(make: Make) -> None:
    count = make().frame.count()
    first = count.release(mu=0.1)
    second = first.refine(mu=0.5)
    assert "<svg" not in first._repr_html_()
    shown = second._repr_html_()
    said = shown.partition('aria-label="')[2].partition('"')[0]
    assert said.startswith("95% noise interval after each of 2 observations: at 0.10% (mu 0.1) ")
    assert shown.count("<circle") == 2
    assert 'role="img"' in shown
    assert "var(--jp-brand-color1,#1976d2)" in shown
    places = shown.partition('<polygon points="')[2].partition('"')[0].split()
    heights = [float(place.partition(",")[2]) for place in places]
    assert heights[3] - heights[0] > heights[2] - heights[1] > 0
    assert np.isfinite(heights).all()
