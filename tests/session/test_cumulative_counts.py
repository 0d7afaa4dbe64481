"""Cumulative counts in a session: their error, what can be done with them, and what each unit is charged."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb._backends import MemoryBackend
from dpnb.accounting.intervals import fixed_radius
from dpnb.accounting.prefix_sums import prefix_sums_norm_squared, square_root_of_prefix_sums
from dpnb.errors import DpnbError, PlanError, RequestError
from dpnb.results.estimates import estimate
from pairwise import product

MONTHS = list(range(1, 9))
TABLE = pd.DataFrame(
    {
        "who": np.arange(400) % 150,
        "month": np.random.default_rng(1).choice(MONTHS, 400),
        "x": np.random.default_rng(2).choice([0.0, 1.0, np.nan], 400),
    }
)
TRUTH = TABLE.groupby("month").size().reindex(MONTHS).cumsum().to_numpy()
SCHEMA = {"month": dpnb.Categories(MONTHS), "x": dpnb.Bounded(0, 1)}


def opened(table: pd.DataFrame = TABLE, **changes: Any) -> dpnb.Session:
    arguments = {"name": "visits", "budget": dpnb.Budget.gdp(5), "schema": SCHEMA, "ledger": ":memory:"}
    return dpnb.Session(table, **{**arguments, "not_private_test_seed": 3, **changes})


def totals(session: dpnb.Session) -> Any:
    return session.frame.groupby("month").size().cumsum()


def test_a_promised_error_is_met_in_every_group_and_exactly_in_the_last() -> None:
    session = opened()
    query = totals(session)
    answer = query.release(within=12)
    widths = (answer.interval["high"] - answer.interval["low"]).to_numpy() / 2
    assert (np.diff(widths) > 0).all()
    assert widths[-1] == pytest.approx(12, rel=1e-6)
    assert query.preview(mu=0.5).expected_error is not None


def test_the_noise_is_that_of_the_factorisation() -> None:
    answer = totals(opened()).release(mu=1)
    norm = math.sqrt(prefix_sums_norm_squared(len(MONTHS))) / 2**30
    assert answer.noise_scale.iloc[0] == pytest.approx(norm)
    assert answer.noise_scale.iloc[-1] == pytest.approx(norm**2, rel=1e-6)


def test_a_refinement_costs_the_difference_and_narrows_every_total() -> None:
    session = opened()
    coarse = totals(session).release(mu="0.3")
    fine = coarse.refine(mu="0.5")
    assert fine.cost.mu_squared == Fraction("0.16")
    assert (fine.noise_scale < coarse.noise_scale).all()
    assert fine.noise_scale.tolist() == pytest.approx((coarse.noise_scale * 0.6).tolist())
    count = session.ledger.count
    assert totals(session).release(mu="0.3").estimate.equals(coarse.estimate)
    assert session.ledger.count == count, "the identical request is free"


def refused(answer: Any, session: dpnb.Session) -> dict[str, tuple[Callable[[], Any], str]]:
    frame, query = session.frame, totals(session)
    return {
        "some groups": (lambda: query.release(mu=1, groups=[2]), "without groups="),
        "a batch": (lambda: session.plan([query]), "do not add up"),
        "reconciling": (lambda: session.reconcile([answer]), "do not add up"),
        "a difference": (lambda: answer[2] - answer[1], "the same noise"),
        "shares": (lambda: answer.proportions(), "needs counts"),
        "a selection": (lambda: query.top(1), "by a count of rows"),
        "a population": (lambda: answer.population(mu=1), "not offered"),
        "twice": (lambda: query.cumsum(), "adds up counts"),
        "of shares": (lambda: frame["month"].value_counts(normalize=True).cumsum(), "adds up counts"),
        "of sums": (lambda: frame.groupby("month")["x"].sum().cumsum(), "adds up counts"),
        "without groups": (lambda: frame.count().cumsum(), "one level"),
        "two levels": (lambda: frame.groupby(["month", frame["x"] > 0]).size().cumsum(), "one level"),
    }


@pytest.mark.parametrize("name", refused(None, opened()))
def test_what_correlated_noise_does_not_allow_is_refused_for_nothing(name: str) -> None:
    session = opened()
    answer = totals(session).release(mu=1)
    spent = session.ledger.count
    attempt, words = refused(answer, session)[name]
    with pytest.raises((PlanError, RequestError), match=words):
        attempt()
    assert [charge for charge in session.ledger.charges(after=spent) if charge.loss] == []


def test_too_many_groups_are_refused() -> None:
    session = opened(schema={**SCHEMA, "month": dpnb.Categories(list(range(5000)))})
    with pytest.raises(PlanError, match="at most 4,096 groups"):
        totals(session)


def test_explanation_names_the_noise_of_the_first_and_the_last_total() -> None:
    text = repr(totals(opened(privacy_unit="who", max_rows_per_unit=3)).explain())
    assert "of its group and of every later one" in text
    norm = math.sqrt(prefix_sums_norm_squared(len(MONTHS))) / 2**30
    assert f"{3 * norm:.4g}" in text
    assert f"{3 * norm**2:.4g}" in text


@pytest.mark.statistical
def test_intervals_cover_and_do_not_when_noise_is_taken_for_that_of_the_first() -> None:
    """4000 answers of 8 totals; of 95%, fewer than 93.3% are covered by chance less than once in a million."""
    query, random, sigma = totals(opened()), np.random.default_rng(4), 2.0**31
    compiled = query.runner.tables.compile(query.plan)
    exactly = np.array(square_root_of_prefix_sums(np.diff(TRUTH, prepend=0)), float)
    ones, radius = np.ones(len(MONTHS)), fixed_radius([sigma], alpha=Fraction(1, 20))
    covered = narrow = np.zeros(len(MONTHS))
    for _ in range(4000):
        sums = (exactly + sigma * random.standard_normal(len(MONTHS)))[:, None]
        found = estimate(compiled, query.view, sums, sigma * ones, radius * ones, SCHEMA)
        low, high, value = found.low[:, 0], found.high[:, 0], found.value[:, 0]
        covered = covered + ((low <= TRUTH) & (high >= TRUTH))
        narrow = narrow + (np.abs(value - TRUTH) <= (high - low)[0] / 2)
    assert covered.min() / 4000 > 0.933
    assert narrow[-1] / 4000 < 0.90


# --- individual accounting --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mode", "unit"), product(["skip", "clip"], ["rows", "persons"]))
def test_a_unit_is_charged_for_its_own_rows(mode: str, unit: str) -> None:
    """Squares of numbers of rows in one group, as a share of the squared largest number; no unit is under-charged."""
    options: dict[str, Any] = {"privacy_unit": "who", "max_rows_per_unit": 3} if unit == "persons" else {}
    table = TABLE if unit == "rows" else TABLE[TABLE.who < 100].assign(month=lambda t: t.who % 8 + 1)
    session = opened(table, accounting="individual", on_exhausted=mode, **options)
    frame = session.frame.bound_contributions(max_groups_per_unit=1) if options else session.frame
    answer = frame.groupby("month").size().cumsum().release(mu="0.5")
    truth = table.groupby("month").size().reindex(MONTHS).cumsum()
    assert (np.abs(answer.estimate - truth) < 6 * answer.noise_scale).all()
    individuals = session._core.individuals
    assert individuals is not None
    state = individuals._state
    assert state is not None
    spent = state.unit_budgets.units.spent  # type: ignore[attr-defined]
    rows = np.bincount(table.who)[np.unique(table.who)] if options else np.ones(len(table))
    due = 0.25 * (np.sort(np.minimum(rows, 3)) / (3 if options else 1)) ** 2
    assert np.sort(spent) == pytest.approx(due, rel=1e-9)
    assert (np.sort(spent) >= due * (1 - 1e-15)).all()


def test_units_in_several_groups_are_refused_under_individual_accounting() -> None:
    session = opened(accounting="individual", privacy_unit="who", max_rows_per_unit=3)
    with pytest.raises(DpnbError, match="in one group only"):
        totals(session).release(mu=1)
    assert [charge for charge in session.ledger.charges() if charge.loss] == []


# --- in the parts of a partition -------------------------------------------------------------------------------------

PARTS = ["a", "b", "c"]


def of_persons(rows: list[tuple[str, str, int]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["who", "part", "month"])


@pytest.mark.parametrize("most", [1, 2])
def test_a_person_in_several_parts_and_months_is_charged_for_all_of_them(most: int) -> None:
    """Every choice of its rows; what all parts show of it, in squared mu, is at most what the table is charged."""
    others = [("v", "a", 1), ("w", "c", 3)]
    schema = {"part": dpnb.Categories(PARTS), "month": dpnb.Categories([1, 2, 3])}
    session = opened(of_persons(others), schema=schema, privacy_unit="who", max_rows_per_unit=3)
    parts, tables = session.partition("part", max_parts_per_unit=most), session._core.tables
    queries = [parts[part].frame.groupby("month").size().cumsum() for part in PARTS]
    compiled = [tables.compile(query.plan) for query in queries]

    def measured(rows: list[tuple[str, str, int]]) -> np.ndarray[Any, Any]:
        read = MemoryBackend.read({"": of_persons(rows)}, tables.schemas, tables.units)
        return np.array([square_root_of_prefix_sums(read.sums(query)) for query in compiled]).astype(float)

    sigmas = np.array([query.release(mu="0.5").noise_scale.iloc[0] for query in queries]) * 2.0**30
    charged = float(session.spent.mu_squared)
    assert charged == 0.25 * most
    menu = [("me", "a", 1), ("me", "a", 3), ("me", "b", 1), ("me", "c", 1), ("me", "c", 2)]
    chosen = [rows for size in (1, 2, 3) for rows in itertools.combinations_with_replacement(menu, size)]
    before = measured(others)
    shown = []
    for rows in chosen:
        change = measured([*others[:1], *rows, *others[1:]]) - before
        shown.append(float(((change**2).sum(axis=1) / sigmas**2).sum()))
    assert max(shown) <= charged * (1 + 1e-9)
    assert max(shown) >= 0.25 * (1 - 1e-9), "all rows in the first month of one part"
    counts = 3**2 / (sigmas[0] / 2**30) ** 2
    assert max(shown) > counts * 1.2, "control: what the counts of a month alone would show"


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_an_engine_and_memory_give_the_same_numbers(engine: str) -> None:
    polars, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    table = polars.from_pandas(TABLE).lazy() if engine == "polars" else duckdb.from_df(TABLE)
    here, there = (totals(opened(one)).release(mu=1).estimate for one in (TABLE, table))
    assert here.tolist() == there.tolist()
