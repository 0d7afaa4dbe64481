"""Batches: one charge for several queries, durable before rows are read, and refined like any other answer."""

from __future__ import annotations

import pickle
import threading
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpnb
from dpnb._backends.memory.memory_backend import MemoryBackend
from dpnb._compile.marginals import MIN_SHARE
from dpnb.accounting import GDP
from dpnb.errors import (
    BudgetExceeded,
    ErrorEstimateUnavailable,
    ExecutionError,
    InvalidValueError,
    MechanismClosed,
    NotReleasedError,
    PlanError,
    RequestError,
)
from forked import ran

TOWNS, PLANS = ["north", "south", "west"], ["free", "paid"]
SCHEMA = {"town": dpnb.Categories(TOWNS), "plan": dpnb.Categories(PLANS), "visits": dpnb.Bounded(0, 10)}


def table(rows: int = 3000) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    return pd.DataFrame(
        {
            "town": rng.choice([*TOWNS, None], rows),
            "plan": rng.choice([*PLANS, None], rows),
            "visits": rng.uniform(0, 10, rows),
        }
    )


def open_session(data: pd.DataFrame | None = None, ledger: str | Path = ":memory:", **changes: Any) -> dpnb.Session:
    arguments: dict[str, Any] = {
        "name": "batches",
        "ledger": str(ledger),
        "budget": dpnb.Budget(epsilon=1, delta=1e-6),
        "schema": SCHEMA,
        **changes,
    }
    return dpnb.Session(table() if data is None else data, **arguments)


def queries_of(session: Any) -> list[Any]:
    df = session.frame
    return [df.groupby(["town", "plan"]).size(), df.groupby("plan").size(), df.groupby("town").size(), df.count()]


def test_batch_is_charged_once_and_repeated_free(tmp_path: Path) -> None:
    session = open_session(ledger=tmp_path / "a.dpnb")
    answer = session.plan(queries_of(session)).release(share=0.25)
    assert session.headroom == pytest.approx(0.75, abs=1e-6)
    assert session.spent == answer.cost
    again = session.plan(queries_of(session)[::-1], share=0.25).release()
    other_kernel = open_session(ledger=tmp_path / "a.dpnb")
    there = other_kernel.plan(queries_of(other_kernel)).release(share=0.25)
    for one, other, third in zip(answer, reversed(again.answers), there, strict=True):
        assert one == other == third
    assert session.spent == answer.cost == there.cost


def test_charge_of_all_tables_is_written_before_any_row_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    session = open_session()
    sums, seen = MemoryBackend.sums, []

    def watched(self: MemoryBackend, query: Any) -> Any:
        seen.append([charge.status for charge in session.ledger.charges()])
        return sums(self, query)

    monkeypatch.setattr(MemoryBackend, "sums", watched)
    answer = session.plan(queries_of(session)).release(mu=0.1)
    assert seen[0] == ["reserved"] * answer.n_tables
    assert len(seen) == answer.n_tables


def test_batch_that_failed_is_resumed_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = open_session(ledger=tmp_path / "a.dpnb")
    sums, calls = MemoryBackend.sums, []

    def failing(self: MemoryBackend, query: Any) -> Any:
        calls.append(query)
        if len(calls) == 3:
            raise MemoryError
        return sums(self, query)

    monkeypatch.setattr(MemoryBackend, "sums", failing)
    batch = session.plan(queries_of(session))
    with pytest.raises(ExecutionError):
        batch.release(mu=0.1)
    charges, spent = session.ledger.charges(), session.spent
    assert [charge.status for charge in charges] == ["released", "released", "failed", "reserved"]
    # Until the batch is complete its tables are charged, and used for nothing.
    assert all(query.best is None for query in batch.queries)
    assert batch.queries[0].preview(mu=0.1).cost == GDP(0.1)
    assert all(query.unanswered == [] for query in batch.queries)
    assert session.log["estimate"].isna().all()
    kernel = open_session(ledger=tmp_path / "a.dpnb")
    answer = kernel.plan(queries_of(kernel)).release(mu=0.1)
    assert kernel.spent == spent == answer.cost
    assert kernel.ledger.count == 4
    assert session.log["estimate"].notna().all()
    assert [row.measurement for row in kernel.ledger.charges()][:2] == [charge.measurement for charge in charges[:2]]


KILLED = """
import os, sys
from dpnb._backends.memory.memory_backend import MemoryBackend
from core.test_batches import open_session, queries_of

sums, calls = MemoryBackend.sums, []

def killing(self, query):
    calls.append(query)
    if len(calls) == int(sys.argv[2]):
        os._exit(7)
    return sums(self, query)

MemoryBackend.sums = killing
session = open_session(ledger=sys.argv[1])
session.plan(queries_of(session)).release(mu=0.1)
"""


@pytest.mark.parametrize("table_number", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_batch_of_a_killed_kernel_is_resumed_free(tmp_path: Path, table_number: int) -> None:
    path = tmp_path / "a.dpnb"
    exit_code, _ = ran(tmp_path, KILLED, str(path), str(table_number))
    assert exit_code == 7, (tmp_path / "errors").read_text("utf-8")
    session = open_session(ledger=path)
    statuses = [charge.status for charge in session.ledger.charges()]
    assert statuses == ["released"] * (table_number - 1) + ["reserved"] * (5 - table_number)
    spent = session.spent
    answer = session.plan(queries_of(session)).release(mu=0.1)
    assert answer.cost == spent == session.spent
    assert float(answer[3]) == pytest.approx(answer[0].estimate.sum())


def test_tables_in_an_engine_have_the_same_answers() -> None:
    answers = []
    for data in (table(), pl.from_pandas(table()).lazy()):
        session = open_session(data, not_private_test_seed=3)
        answers.append(session.plan(queries_of(session)).release(mu=0.1))
    for one, other in zip(*answers, strict=True):
        np.testing.assert_array_equal(one.arrays.value, other.arrays.value)


def test_levels_may_be_texts_bins_conditions_and_periods() -> None:
    data = pd.DataFrame(
        {
            "note": ["x", "y", "z", "x"] * 500,
            "age": np.linspace(0, 100, 2000),
            "seen": pd.date_range("2024-01-01", "2024-12-30", 2000),
        }
    )
    schema = {
        "note": dpnb.Text(max_length=9),
        "age": dpnb.Bounded(0, 100),
        "seen": dpnb.Dates("2024-01-01", "2024-12-31"),
    }
    budget = dpnb.Budget(epsilon=20, delta=1e-6, discovery_delta=1e-8)
    session = open_session(data, schema=schema, budget=budget, not_private_test_seed=1)
    df = session.frame
    notes, note_total = session.plan([df.groupby("note", keys=["x", "y"]).size(), df.count()]).release(mu=1)
    np.testing.assert_allclose(notes.arrays.value.ravel(), [1000, 500], atol=6)
    assert float(note_total) == pytest.approx(1500, abs=6)
    queries = [
        df.groupby([dpnb.cut(df["age"], 4), df["age"] > 50]).size(),
        df.resample("M", on="seen").size(),
        df.count(),
    ]
    bins, months, total = session.plan(queries).release(mu=1)
    assert bins.estimate.sum() == pytest.approx(months.estimate.sum()) == pytest.approx(float(total))
    assert float(total) == pytest.approx(2000, abs=6)


def test_answers_can_be_saved() -> None:
    session = open_session()
    batch = session.plan(queries_of(session)).release(mu=0.1)
    table = dpnb.crosstab(session.frame["town"], session.frame["plan"], margins=True).release(mu=0.05)
    for value in (batch, table, session.reconcile(list(batch))):
        copy = pickle.loads(pickle.dumps(value))
        pd.testing.assert_frame_equal(copy.to_pandas(), value.to_pandas())
        assert str(copy) == str(value)


def test_threads_that_release_the_same_batch_get_one_answer() -> None:
    session, answers = open_session(), []
    batch = session.plan(queries_of(session))
    threads = [threading.Thread(target=lambda: answers.append(batch.release(mu=0.1))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert session.spent == answers[0].cost
    assert all(answer[0] == answers[0][0] for answer in answers)


def test_refused_batch_charges_nothing() -> None:
    session = open_session()
    batch = session.plan(queries_of(session))
    preview = batch.preview(mu=1)
    assert not preview.fits
    assert "would be refused" in str(preview)
    with pytest.raises(BudgetExceeded, match="nothing was charged"):
        batch.release(mu=1)
    assert session.ledger.count == 0
    assert preview.max_mu is not None
    batch.release(mu=preview.max_mu)


@pytest.mark.parametrize("target", [{"mu": "0.1"}, {"rho": 0.005}, {"epsilon": 0.3}, {"share": 0.5}, {"share": 1}])
@pytest.mark.parametrize("filter_", ["gdp", "zcdp", "rdp", "approx-dp"])
def test_batch_costs_at_most_its_target(target: dict[str, Any], filter_: str) -> None:
    session = open_session(filter=filter_)
    batch = session.plan(queries_of(session))
    (separate,) = [queries_of(session)[0].preview(**target)]
    preview, answer = batch.preview(**target), batch.release(**target)
    assert preview.cost == answer.cost
    assert separate.cost.mu_squared * Fraction(999, 1000) <= answer.cost.mu_squared <= separate.cost.mu_squared
    assert sum(charge.gdp.mu_squared for charge in session.ledger.charges()) == answer.cost.mu_squared


def test_half_widths_are_met_for_less_than_separately() -> None:
    session = open_session()
    batch = session.plan(queries_of(session))
    separately = sum((query.preview(within=60).cost for query in batch.queries), start=GDP(0))
    preview, answer = batch.preview(within=60), batch.release(within=60)
    for one in answer:
        assert one.arrays.half_width.max() <= 60
    assert preview.cost == answer.cost
    assert preview.cost.mu_squared < separately.mu_squared <= preview.separate_cost.mu_squared * Fraction(1001, 1000)
    for planned, one in zip(preview.queries, answer, strict=True):
        assert planned.half_widths is not None
        np.testing.assert_allclose(planned.half_widths, one.arrays.unclipped[2] - one.arrays.value, rtol=1e-9)


def test_each_query_can_have_its_own_half_width() -> None:
    session = open_session(public_rows=3000)
    df = session.frame
    queries = [df.groupby("town").size(), df.groupby("town")["visits"].sum(), df.count()]
    answer = session.plan(queries, within=[90, 600, 60], confidence=0.9).release()
    for one, width in zip(answer, (90, 600, 60), strict=True):
        assert one.confidence == 0.9
        assert one.arrays.half_width.max() <= width
    with pytest.raises(RequestError, match="may have different units"):
        session.plan(queries).preview(within=50)
    with pytest.raises(RequestError, match="one half-width for each of the 3 queries"):
        session.plan(queries).preview(within=[50])


def test_refining_an_answer_pays_the_difference_to_what_the_batch_knows() -> None:
    session = open_session()
    answer = session.plan(queries_of(session)).release(mu=0.08)
    for one in answer:
        before = session.spent
        finer = one.refine(mu=0.1)
        assert finer.n_observations == 2
        paid = session.spent.mu_squared - before.mu_squared
        assert paid == finer.cost.mu_squared == Fraction(1, 100) - one.total_loss.mu_squared
        own = one.arrays.noise_scale
        fresh = session.ledger.charges()[-1].sigma
        np.testing.assert_allclose(finer.arrays.noise_scale, (own**-2.0 + fresh**-2.0) ** -0.5)
        # The batch knows more of a query than its own table, which alone was charged.
        assert one.total_loss.mu_squared >= one.cost.mu_squared
        assert len(finer.history) == 2
        assert finer.history[0] == one


def test_ordinary_query_uses_what_a_batch_measured() -> None:
    session = open_session()
    batch = session.plan(queries_of(session))
    cells = batch.release(mu=0.1)[0]
    query = queries_of(session)[0]  # by all levels of the batch, so it is about complete rows already
    assert query.preview(mu=float(cells.total_loss.mu) / 2).cost == GDP(0)
    assert query.best is not None
    np.testing.assert_array_equal(query.best.arrays.value, cells.arrays.value)


def test_batch_after_an_earlier_release_is_a_further_observation() -> None:
    session = open_session()
    query = queries_of(session)[0]
    first = query.release(mu=0.05)
    batch = session.plan(queries_of(session))
    answer = batch.release(mu=0.1)
    assert answer[0].n_observations == 1
    best = query.best
    assert best is not None
    assert best.n_observations == 2
    expected = np.sum([one.arrays.noise_scale**-2.0 for one in (first, answer[0])], axis=0) ** -0.5
    np.testing.assert_allclose(best.arrays.noise_scale, expected)
    with pytest.raises(RequestError, match="final"):
        batch.release(mu=0.11, final=True)


def test_final_batch_has_the_whole_confidence_and_is_never_refined() -> None:
    session = open_session()
    batch = session.plan(queries_of(session))
    usual, final = batch.preview(mu=0.1), batch.preview(mu=0.1, final=True)
    assert final.queries[0].expected_error < usual.queries[0].expected_error  # type: ignore[operator]
    answer = batch.release(mu=0.1, final=True)
    z = (answer[0].arrays.unclipped[2] - answer[0].arrays.value) / answer[0].arrays.noise_scale
    np.testing.assert_allclose(z, 1.959964, rtol=1e-5)
    with pytest.raises(RequestError, match="final=True"):
        answer[0].refine(mu=0.2)
    # A table that was released as final is not measured again, even if that would be cheapest.
    other = session.plan(
        [session.frame.groupby("town").size(), session.frame.groupby(["town", "plan"])["visits"].sum()]
    )
    with pytest.raises(RequestError, match="final=True"):
        other.release(mu=0.01)


def test_shares_do_not_use_a_batch() -> None:
    session = open_session()
    df = session.frame
    answer = session.plan([df.groupby("town").size()]).release(mu=0.1)
    with pytest.raises(RequestError, match="not independent"):
        answer[0].proportions()
    shares = df["town"].value_counts(normalize=True)
    assert shares.best is None
    assert shares.preview(mu=0.1).cost == GDP(0.1)
    assert shares.release(mu=0.1).n_observations == 1
    with pytest.raises(RequestError, match="cannot be part of a batch"):
        session.plan([shares])


def test_numbers_of_a_batch_are_not_taken_for_independent() -> None:
    session = open_session()
    cells, by_plan, _, total = session.plan(queries_of(session)).release(mu=0.1)
    with pytest.raises(RequestError, match="same noise"):
        by_plan - total
    with pytest.raises(RequestError, match="same noise"):
        by_plan["free"] - by_plan["paid"]
    assert (by_plan["free"] - 10).is_scalar
    assert cells.refine(mu=0.2)["north", "free"] < 1e6


def test_means_variances_and_quantiles_are_estimated_from_all_tables() -> None:
    data = table(40_000)
    session = open_session(data, budget=dpnb.Budget.gdp(20), not_private_test_seed=1)
    df = session.frame
    queries = [
        df.groupby("town")["visits"].agg(["mean", "std"]),
        df["visits"].agg(["mean", "std"]),
        df["visits"].median(),
    ]
    grouped, whole, median = session.plan(queries).release(mu=10)
    known = data[data["town"].notna()]
    np.testing.assert_allclose(grouped.estimate, known.groupby("town")["visits"].agg(["mean", "std"]), atol=0.02)
    np.testing.assert_allclose(np.ravel(whole.estimate), known["visits"].agg(["mean", "std"]), atol=0.02)
    assert float(median) == pytest.approx(known["visits"].median(), abs=0.05)


def test_every_requested_table_is_measured() -> None:
    session = open_session()
    session.plan(queries_of(session)).release(mu=0.1)
    losses = [charge.gdp.mu_squared for charge in session.ledger.charges()]
    assert len(losses) == 4
    assert min(losses) >= max(losses) * Fraction(MIN_SHARE) * Fraction(99, 100)


def test_sub_sessions_and_parts_release_batches_of_their_own() -> None:
    session = open_session()
    inner = session.delegate(share=0.2, name="colleague")
    answer = inner.plan(queries_of(inner)).release(share=0.5)
    assert inner.headroom == pytest.approx(0.5, abs=1e-6)
    assert session.headroom == pytest.approx(0.8, abs=1e-6)
    parts = session.partition("town", max_parts_per_unit=1)
    before = session.spent.mu_squared
    for town in TOWNS:
        df = parts[town].frame
        parts[town].plan([df.groupby("plan").size(), df.count()]).release(mu=0.05)
    assert session.spent.mu_squared - before <= Fraction(5, 100) ** 2
    with pytest.raises(RequestError, match="all queries must be of this session"):
        session.plan(queries_of(inner))
    inner.close()
    with pytest.raises(MechanismClosed):
        inner.plan(queries_of(inner)).release(share=0.1)
    assert inner.plan(queries_of(inner)).release(share=0.5)[0] == answer[0]


def test_content_of_the_table_changes_nothing_but_the_noisy_values() -> None:
    """An attack: a batch whose tables are empty, or have a single unit, behaves like any other."""
    seen = []
    for data in (table(), table(0), table()[:1], table().assign(town=None), table().assign(visits=np.inf)):
        session = open_session(data, public_rows=3000, not_private_test_seed=1)
        df = session.frame
        queries = [*queries_of(session), df.groupby("town")["visits"].mean(), df["visits"].median()]
        batch = session.plan(queries)
        preview, answer = batch.preview(share=0.5), batch.release(share=0.5)
        rows = [(one.request, one.sigma, one.tau, one.status, one.loss) for one in session.ledger.charges()]
        shapes = [one.arrays.value.shape for one in answer]
        seen.append((rows, shapes, str(preview), answer.cost, session.log["query"].tolist(), type(answer)))
    assert all(one == seen[0] for one in seen)


@pytest.mark.parametrize("value", [2, "x", None, [], [3], {"a": 1}, "query"])
def test_anything_but_a_list_of_queries_is_refused(value: Any) -> None:
    session = open_session()
    with pytest.raises(RequestError, match="needs a list of queries"):
        session.plan(session.frame.count() if value == "query" else value)


@pytest.mark.parametrize(
    ("target", "error"),
    [
        ({}, RequestError),
        ({"mu": 0.1, "share": 0.1}, RequestError),
        ({"mu": 0}, InvalidValueError),
        ({"mu": "nan"}, InvalidValueError),
        ({"mu": 1e-100}, InvalidValueError),
        ({"share": 2}, RequestError),
        ({"mu": 0.1, "confidence": 1}, RequestError),
        ({"within": [1, 2, 3, {"x": 1}]}, RequestError),
    ],
)
def test_impossible_targets_are_refused_before_a_charge(target: dict[str, Any], error: type[Exception]) -> None:
    session = open_session()
    batch = session.plan(queries_of(session))
    for verb in (batch.preview, batch.release) if target else (batch.release,):
        with pytest.raises(error):
            verb(**target)
    assert session.ledger.count == 0


def test_unknown_errors_are_named() -> None:
    session = open_session()
    with pytest.raises(ErrorEstimateUnavailable, match="count"):
        session.plan([session.frame.groupby("town")["visits"].mean()], within=0.1).release()


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"accounting": "individual"}, "accounting='individual'"), ({"filter": "basic"}, "adds mu squared")],
)
def test_sessions_that_cannot_release_batches_say_so(changes: dict[str, Any], message: str) -> None:
    session = open_session(**changes)
    with pytest.raises(RequestError, match=message):
        session.plan(queries_of(session))


def test_levels_in_another_order_are_refused() -> None:
    df = (session := open_session()).frame
    with pytest.raises(PlanError, match="request it once"):
        session.plan([df.groupby(["town", "plan"]).size(), df.groupby(["plan", "town"]).size()])


def test_batch_shows_its_preview_and_is_not_a_number() -> None:
    session = open_session()
    batch = session.plan(queries_of(session), share=0.1)
    html = batch._repr_html_()
    assert "10.0% of the budget" in html
    assert "times as much" in html
    assert "count of rows by town, plan" in html
    with pytest.raises(NotReleasedError, match="a batch of queries, not a number"):
        batch + 1
    answer = batch.release()
    assert "4 tables measured" in str(answer)
    assert "count of rows by town, plan" in answer._repr_html_()
    assert session.ledger.count == 4


@pytest.mark.parametrize("budget", [dpnb.Budget(epsilon=1, delta=1e-6), None], ids=["budget", "no budget"])
def test_preview_without_a_target_is_the_preview_that_is_displayed(budget: dpnb.Budget | None) -> None:
    session = open_session(budget=budget)
    batch = session.plan([session.frame.count(), session.frame.groupby("town").size()])
    table = dpnb.crosstab(session.frame["town"], session.frame["plan"], margins=True)
    for planned in (batch, table):
        assert planned.preview().fits
        assert str(planned.preview().request) in ("share=0.02", "mu=0.05")
        assert "times as much" in planned._repr_html_()
    assert session.ledger.count == 0


def test_a_list_of_other_things_is_refused_with_an_article() -> None:
    session = open_session()
    with pytest.raises(RequestError, match="got a list with an int"):
        session.plan([1])  # type: ignore[list-item]
    with pytest.raises(RequestError, match="needs a list of answers; got an Answer;"):
        session.reconcile(session.frame.count().release(mu=0.1))  # type: ignore[arg-type]
    with pytest.raises(RequestError, match="takes answers of this session; got 1;"):
        session.reconcile([1, 2])  # type: ignore[list-item]


def test_a_table_with_margins_is_reconciled_by_its_batch() -> None:
    df = (session := open_session()).frame
    table = dpnb.crosstab(df["town"], df["plan"], margins=True).release(share=0.1)
    assert str(session.reconcile(table)) == str(session.reconcile(table.batch))
    with pytest.raises(RequestError, match=r"got a table with margins; give the answers in its \.batch"):
        session.reconcile([table])  # type: ignore[list-item]
