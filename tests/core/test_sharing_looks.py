"""Equal questions share their looks, whatever is read off them and however they were written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb._backends.memory import expressions, memory_backend
from dpnb.accounting.losses import GDP
from dpnb.errors import RequestError

Ask = Callable[[Any], Any]


def open_session(path: Path | str = ":memory:", **changes: Any) -> dpnb.Session:
    chance = np.random.default_rng(2)
    table = pd.DataFrame(
        {
            "person": np.repeat(np.arange(200), 2),
            "visits": chance.poisson(3, 400),
            "age": chance.integers(20, 80, 400),
            "plan": chance.choice(["free", "paid"], 400),
            "town": chance.choice(["north", "south"], 400),
        }
    )
    arguments: dict[str, Any] = {
        "name": "clinic",
        "budget": dpnb.Budget.gdp(10),
        "privacy_unit": "person",
        "max_rows_per_unit": 2,
        "schema": {
            "visits": dpnb.Bounded(0, 10),
            "age": dpnb.Bounded(0, 100),
            "plan": dpnb.Categories(["free", "paid"]),
            "town": dpnb.Categories(["north", "south"]),
        },
        "ledger": path,
    }
    return dpnb.Session(table, **{**arguments, **changes})


SAME: dict[str, tuple[Ask, Ask]] = {
    "variance and deviation": (lambda f: f["visits"].var(), lambda f: f["visits"].std()),
    "all quantiles": (lambda f: f["visits"].median(), lambda f: f["visits"].quantile([0.1, 0.9])),
    "smallest and largest": (lambda f: f["visits"].min(), lambda f: f["visits"].max()),
    "correlation and covariance, either way round": (
        lambda f: f["visits"].corr(f["age"]),
        lambda f: f["age"].cov(f["visits"]),
    ),
    "regression and correlation": (lambda f: f.regress("visits", on="age"), lambda f: f["visits"].corr(f["age"])),
    "counts and shares": (lambda f: f["plan"].value_counts(), lambda f: f["plan"].value_counts(normalize=True)),
    "value_counts and groupby": (lambda f: f["plan"].value_counts(), lambda f: f.groupby("plan").count()),
    "a filter written twice": (
        lambda f: f[(f["age"] > 30) & (f["visits"] > 1)].count(),
        lambda f: f[f["visits"] > 1][f["age"] > 30.0].count(),
    ),
    "the order of a list": (
        lambda f: f[f["plan"].isin(["free", "paid"])].count(),
        lambda f: f[f["plan"].isin(["paid", "free"])].count(),
    ),
    "a column by another name": (
        lambda f: f.assign(years=f["age"] // 10).groupby("years").count(),
        lambda f: f.groupby(f["age"] // 10).count(),
    ),
    "columns of agg in another order": (
        lambda f: f.agg(n="count", mean=("age", "mean")),
        lambda f: f.agg(average=("age", "mean"), rows="count"),
    ),
    "a sum turned round": (lambda f: (f["age"] + f["visits"]).sum(), lambda f: (f["visits"] + f["age"]).sum()),
}


@pytest.mark.parametrize(("first", "second"), SAME.values(), ids=SAME)
def test_what_is_measured_once_is_paid_once(first: Ask, second: Ask, tmp_path: Path) -> None:
    first(open_session(tmp_path / "clinic.dpnb").frame).release(mu=0.5)
    session = open_session(tmp_path / "clinic.dpnb")  # as in another kernel
    second(session.frame).release(mu=0.5)
    assert session.spent == GDP(0.5)
    finer = second(session.frame).release(mu=1)
    assert (finer.cost.mu_squared, finer.n_observations) == (GDP(1).mu_squared - GDP(0.5).mu_squared, 2)


OTHER: dict[str, tuple[Ask, Ask]] = {
    "another filter": (lambda f: f[f["age"] > 30].count(), lambda f: f[f["age"] >= 30].count()),
    "the opposite": (lambda f: f[f["age"] > 30].count(), lambda f: f[~(f["age"] > 30)].count()),
    "a difference turned round": (
        lambda f: (f["age"] - f["visits"]).sum(),
        lambda f: (f["visits"] - f["age"]).sum(),
    ),
    "another order of groups": (
        lambda f: f.groupby(["plan", "town"]).count(),
        lambda f: f.groupby(["town", "plan"]).count(),
    ),
    "and for or": (
        lambda f: f[(f["age"] > 30) & (f["visits"] > 1)].count(),
        lambda f: f[(f["age"] > 30) | (f["visits"] > 1)].count(),
    ),
    "true for one": (
        lambda f: f[(f["age"] > 30) == True].count(),  # noqa: E712
        lambda f: f[(f["age"] > 30).astype(int) == 1].count(),
    ),
    "a tighter limit": (lambda f: f.count(), lambda f: f.bound_contributions(max_rows_per_unit=1).count()),
}


@pytest.mark.parametrize(("first", "second"), OTHER.values(), ids=OTHER)
def test_what_is_measured_otherwise_is_paid_again(first: Ask, second: Ask) -> None:
    session = open_session()
    first(session.frame).release(mu=0.5)
    assert second(session.frame).release(mu=0.5).cost == GDP(0.5)


def test_refining_some_groups_pays_for_those_alone_and_leaves_the_others_as_they_are() -> None:
    session = open_session(max_rows_per_unit=None, max_groups_per_unit=2, max_rows_per_group=1)
    counts = session.frame.groupby("plan").count()
    first = counts.release(mu=0.5)
    finer = first.refine(mu=0.8, groups=["free"])
    # Both groups: a person adds sqrt(2); one group: 1.  So looking at all at mu 0.5 is a look at one at mu sqrt(0.125).
    assert finer.cost.mu_squared == GDP(0.8).mu_squared - GDP(0.5).mu_squared / 2
    assert finer["paid"].estimate == first["paid"].estimate
    assert finer["paid"].interval == first["paid"].interval
    assert finer["free"].noise_scale < first["free"].noise_scale  # type: ignore[operator]
    assert counts.release(mu=0.8, groups=["free"]) == finer
    everything = counts.release(mu=0.5, confidence=0.9)
    assert everything.cost == GDP(0)


def test_a_final_answer_has_the_whole_level_and_is_the_last() -> None:
    session = open_session()
    open_ended, final = session.frame.count().release(mu=0.5), session.frame["age"].count().release(mu=0.5, final=True)

    def width(answer: Any) -> float:
        return float(answer.interval[1] - answer.interval[0])

    assert width(final) == pytest.approx(2 * 1.959964 * final.noise_scale)
    assert width(open_ended) > 1.04 * width(final)
    with pytest.raises(RequestError, match="final=True"):
        final.refine(mu=0.6)
    with pytest.raises(RequestError, match="first observation"):
        open_ended.refine(mu=0.6, final=True)
    assert session.spent.mu_squared == 2 * GDP(0.5).mu_squared


@pytest.mark.parametrize(
    "ask",
    [
        lambda f: f["age"].describe(),
        lambda f: f.groupby("plan").agg(
            n="count", age=("age", "mean"), old=("age", "std"), visits=("visits", "median")
        ),
        lambda f: f.regress("visits", on=["age", "plan"]),
        lambda f: f[(f["age"] / 10) ** 2 > 3].groupby(dpnb.cut(f["age"], 4))["visits"].mean(),
    ],
    ids=["describe", "agg", "regress", "computed"],
)
def test_a_release_goes_over_the_rows_once(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """One pass a release, and in it each expression is computed once."""
    session = open_session()
    passes: list[object] = []
    computed: list[object] = []
    execute, compute = memory_backend.execute, expressions.NumpyEvaluator._computed

    def passing(query: Any, *arguments: Any) -> Any:
        passes.append(query.plan)
        return execute(query, *arguments)

    def computing(self: Any, node: Any) -> Any:
        computed.append(node)
        return compute(self, node)

    monkeypatch.setattr(memory_backend, "execute", passing)
    monkeypatch.setattr(expressions.NumpyEvaluator, "_computed", computing)
    ask(session.frame).release(mu=1)
    assert len(passes) == 1
    assert len(computed) == len(set(computed))
