"""Population intervals beside noise intervals: where they are free, what they cost elsewhere, and what they decide."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb.accounting import GDP
from dpnb.errors import PlanError, RequestError
from dpnb.ledger import MEMORY

ROWS = 4
CHANCE = np.random.default_rng(44)
TABLE = pd.DataFrame(
    {
        "u": np.arange(2000) // ROWS,
        "x": CHANCE.uniform(0, 10, 500).repeat(ROWS) / 2 + CHANCE.uniform(0, 5, 2000),
        "y": CHANCE.uniform(1, 3, 2000),
        "g": np.tile(["a", "b", "b", "b"], 500),
    }
)
SCHEMA = {"x": dpnb.Bounded(0, 10), "y": dpnb.Bounded(0, 4), "g": dpnb.Categories(["a", "b"])}
PERSONS = {"privacy_unit": "u", "max_rows_per_unit": ROWS}


def opened(persons: bool = True, **options: Any) -> dpnb.Session:
    unit = PERSONS if persons else {}
    given = {
        "name": "people",
        "budget": dpnb.Budget.gdp(1000),
        "schema": SCHEMA,
        "ledger": MEMORY,
        "not_private_test_seed": 4,
    }
    return dpnb.Session(TABLE if persons else TABLE.drop(columns="u"), **{**given, **unit, **options})


Ask = Callable[[Any], Any]

FREE: dict[str, Ask] = {
    "count": lambda df: df.count(),
    "counts": lambda df: df.groupby("g").size(),
    "share": lambda df: (df["x"] > 5).mean(),
    "number of rows": lambda df: (df["x"] > 5).sum(),
    "median": lambda df: df["x"].median(),
    "quantiles by group": lambda df: df.groupby("g")["x"].quantile([0.25, 0.5]),
    "mean and variance": lambda df: df["x"].agg(["mean", "var"]),
    "measured together": lambda df: df["x"].mean(population=True),
    "sum": lambda df: df["x"].sum(population=True),
    "ratio": lambda df: df["x"].ratio(df["y"], population=True),
}
MEASURED: dict[str, Ask] = {
    "mean": lambda df: df["x"].mean(),
    "means": lambda df: df.groupby("g")["x"].mean(),
    "sum": lambda df: df["x"].sum(),
    "ratio": lambda df: df["x"].ratio(df["y"]),
    "variance": lambda df: df["x"].var(),
    "standard deviation": lambda df: df["x"].std(),
    "correlation": lambda df: df["x"].corr(df["y"]),
    "covariance": lambda df: df["x"].cov(df["y"]),
    "several": lambda df: df.agg(n="count", m=("x", "mean"), v=("y", "var"), s=("x", "sum"), q=("x", "median")),
    "description": lambda df: df["x"].describe(),
    "columns": lambda df: df[["x", "y"]].mean(),
}


def ends(answer: Any) -> tuple[Any, Any]:
    """Noise interval and population interval, as tables."""
    table = answer.to_pandas()
    return table[["low", "high"]].to_numpy(), table[["population_low", "population_high"]].to_numpy()


def contains(answer: Any) -> bool:
    """Whether each population interval contains the noise interval, where there is one."""
    noise, population = ends(answer)
    known = ~np.isnan(population[:, 0])
    return bool((population[known, 0] <= noise[known, 0]).all() and (noise[known, 1] <= population[known, 1]).all())


@pytest.mark.parametrize("persons", [False, True], ids=["rows", "persons"])
@pytest.mark.parametrize("name", FREE)
def test_what_is_released_has_both_intervals_at_no_further_cost(name: str, persons: bool) -> None:
    session = opened(persons)
    answer = FREE[name](session.frame).release(mu=2)
    assert answer.has_population_intervals
    assert contains(answer)
    assert session.ledger.count == 1
    assert session.spent == GDP("2")


@pytest.mark.parametrize("persons", [False, True], ids=["rows", "persons"])
@pytest.mark.parametrize("name", MEASURED)
def test_elsewhere_the_sampling_error_is_measured_afterwards_at_exactly_its_target(name: str, persons: bool) -> None:
    session = opened(persons)
    answer = MEASURED[name](session.frame).release(mu=3)
    before = session.spent.mu_squared
    found = answer.population(mu="0.4")
    assert found.cost == GDP("0.4")
    assert session.spent.mu_squared == before + GDP("0.4").mu_squared == found.total_loss.mu_squared
    assert contains(found)
    assert answer.arrays.value.tolist() == found.arrays.value.tolist()
    unknown = found.to_pandas()["population_low"].isna()
    assert unknown.sum() == (2 if name == "description" else 0)  # the extremes of a population, which no sample shows


def test_a_repetition_is_free_and_a_refinement_keeps_it() -> None:
    session = opened()
    answer = session.frame["x"].mean().release(mu=1)
    first = answer.population(mu=0.3)
    spent, rows = session.spent, session.ledger.count
    again = answer.population(mu=0.3)
    assert (session.spent, session.ledger.count) == (spent, rows)
    assert again.population_interval == first.population_interval
    for mu in (2, 4, 8):
        refined = again.refine(mu=mu)
        assert refined.has_population_intervals
        assert contains(refined)
    better = answer.population(mu=0.5)
    assert session.spent.mu_squared == GDP(8).mu_squared + GDP("0.5").mu_squared
    assert better.has_population_intervals


def test_without_a_measurement_it_says_how_to_get_one() -> None:
    df = opened().frame
    answer = df["x"].mean().release(mu=1)
    assert not answer.has_population_intervals
    assert "population_low" not in answer.to_pandas()
    with pytest.raises(RequestError, match=r"sampling error of mean of x is not known; measure it by \.population\("):
        answer.population_interval  # noqa: B018
    with pytest.raises(RequestError, match="compute with answers that have one"):
        (answer - 5).population_interval  # noqa: B018
    with pytest.raises(RequestError, match=r"release the mean by \.mean\(population=True\)"):
        df["x"].sem().release(mu=1).population_interval  # noqa: B018


REFUSED: dict[str, tuple[Ask, str]] = {
    "shares of persons": (lambda df: df["g"].value_counts(normalize=True), r"\.mean\(population=True\)"),
    "limited rows": (lambda df: df.bound_contributions(max_rows_per_unit=2)["x"].mean(), "leave out .bound_contrib"),
    "matrix": (lambda df: df[["x", "y"]].corr(), "not offered"),
    "units": (lambda df: df.count_units(), "has its population interval already"),
    "measured together": (lambda df: df["x"].mean(population=True), "has its population interval already"),
    "extremes": (lambda df: df["x"].max(), "not offered"),
    "standard error": (lambda df: df["x"].sem(), "not offered for this statistic; use counts, sums, means"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_where_it_is_not_offered_it_is_refused_before_a_charge(name: str) -> None:
    session = opened()
    ask, remedy = REFUSED[name]
    answer = ask(session.frame).release(mu=1)
    with pytest.raises(PlanError, match=remedy):
        answer.population(mu=0.1)
    assert session.ledger.count == 1


def test_arguments_are_checked() -> None:
    df = opened().frame
    limited = df.bound_contributions(max_rows_per_unit=2)
    for verb in ("mean", "sum"):
        with pytest.raises(PlanError, match="population: must be True or False"):
            getattr(df["x"], verb)(population=1)
        with pytest.raises(PlanError, match=r"leave out \.bound_contributions"):
            getattr(limited["x"], verb)(population=True)
    answer = df["x"].mean().release(mu=1)
    for target in ({}, {"mu": 1, "share": 0.1}, {"within": 3}):
        with pytest.raises((RequestError, TypeError)):
            answer.population(**target)
    with pytest.raises(RequestError, match="copied answer has no session"):
        pickle.loads(pickle.dumps(answer)).population(mu=1)


def test_a_copy_keeps_it() -> None:
    answer = opened().frame["x"].mean().release(mu=1).population(mu=0.3)
    copy = pickle.loads(pickle.dumps(answer))
    assert copy.population_interval == answer.population_interval
    assert (copy > 2).scope == "in the population"


def test_a_batch_has_what_adds_up_over_groups() -> None:
    """A person's square over all groups is not the sum of those in each; afterwards each table has its own."""
    for persons in (False, True):
        session = opened(persons)
        means = session.frame.groupby("g")["x"], session.frame["x"]
        planned = [one.mean(population=True) for one in means]
        if persons:
            with pytest.raises(PlanError, match="do not add up"):
                session.plan(planned)
            by_group, whole = session.plan([one.mean() for one in means]).release(mu=50)
            by_group, whole = by_group.population(mu=20), whole.population(mu=20)
        else:
            by_group, whole = session.plan(planned).release(mu=50)
        direct = opened(persons).frame["x"].sem().release(mu=50)
        assert sampling(whole) == pytest.approx(2.05 * float(direct.estimate), rel=0.05)
        assert by_group.has_population_intervals


def test_groups_and_numbers_keep_theirs() -> None:
    answer = opened(persons=False).frame.groupby("g")["x"].mean(population=True).release(mu=1)
    table = answer.to_pandas()
    assert answer["a"].population_interval == tuple(table.loc["a", ["population_low", "population_high"]])
    assert answer.population_interval.equals(table[["population_low", "population_high"]])
    ordered = answer.sort_values(ascending=False).to_pandas()
    assert ordered.loc["a"].equals(table.loc["a"])
    assert (answer * 2 + 1).to_pandas()["population_low"].tolist() == pytest.approx(
        (table["population_low"] * 2 + 1).tolist()
    )


def test_individual_accounting_has_them_too() -> None:
    session = opened(accounting="individual", budget=dpnb.Budget.gdp(5))
    joint = session.frame["x"].mean(population=True).release(mu=1)
    later = session.frame["x"].mean().release(mu=1).population(mu=0.5)
    assert contains(joint)
    assert contains(later)


# --- what is decided --------------------------------------------------------------------------------------------------


def test_a_verdict_is_about_the_population_if_the_interval_is_known() -> None:
    session = opened()
    answer = session.frame["x"].mean().release(mu=20)
    (low, high), middle = answer.interval, TABLE["x"].mean()
    beyond = high + (high - low) / 2
    assert (answer < beyond).scope == "in this table"
    assert (answer < beyond).outcome is True
    found = answer.population(mu=6)
    assert found.population_interval[1] > beyond
    verdict = found < beyond
    assert (verdict.scope, verdict.outcome) == ("in the population", None)
    assert (verdict.in_this_table.scope, verdict.in_this_table.outcome) == ("in this table", True)
    with pytest.raises(RequestError, match="too close to say in the population at 95% confidence: the population inte"):
        bool(verdict)
    assert (found < middle + 5).outcome is True
    assert (~verdict).scope == verdict.scope


def test_a_comparison_of_two_answers_is_about_the_population_if_both_intervals_are_known() -> None:
    groups = opened().frame.groupby("g")["x"]
    measured, other = groups.mean(population=True).release(mu=2), groups.mean().release(mu=2)
    assert (measured["a"] > measured["b"]).scope == "in the population"
    assert (measured["a"] > other["b"]).scope == "in this table"


def sampling(answer: Any, side: int = 1) -> float:
    """The distance to a limit through sampling alone: the lower one at -1, the upper one at 1."""
    at, value = (side + 1) // 2, float(answer.estimate)
    return math.sqrt((answer.population_interval[at] - value) ** 2 - (answer.interval[at] - value) ** 2)


def is_sum(combined: Any, one: Any, other: Any, sign: int) -> bool:
    """Whether sampling errors were added as those of the same units are: at least in full."""
    return sampling(combined) >= (sampling(one) + sampling(other, sign)) * (1 - 1e-6)


def is_quadrature(combined: Any, one: Any, other: Any, sign: int) -> bool:
    return sampling(combined) == pytest.approx(math.hypot(sampling(one), sampling(other, sign)), rel=1e-6)


APART: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    "groups of one answer": lambda df: (lambda one: (one["a"], one["b"]))(df.groupby("g")["x"].mean(population=True)),
    "filters": lambda df: tuple(df[df["g"] == g]["x"].mean(population=True) for g in "ab"),
    "a condition and its negation": lambda df: (df[df["x"] > 3].count(), df[~(df["x"] > 3)].count()),
    "one of a list": lambda df: (df[df["g"].isin(["a"])].count(), df[df["g"] == "b"].count()),
    "a further filter": lambda df: (df[(df["g"] == "a") & (df["x"] > 3)].count(), df[df["g"] == "b"].count()),
}
TOGETHER: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    "two columns": lambda df: (df["x"].mean(population=True), df["y"].mean(population=True)),
    "a part and all": lambda df: (df[df["g"] == "a"].count(), df.count()),
    "filters by other columns": lambda df: (df[df["g"] == "a"].count(), df[df["x"] > 3].count()),
    "overlapping conditions": lambda df: (df[df["x"] > 3].count(), df[df["x"] < 5].count()),
    "shares of one total": lambda df: ((df["g"] == "a").mean(), (df["g"] == "b").mean()),
}


def released(queries: Any, mu: float = 2) -> tuple[Any, Any]:
    return tuple(query.release(mu=mu) for query in queries)  # type: ignore[return-value]  # two


@pytest.mark.parametrize("name", list(APART)[1:])
def test_without_a_common_row_squares_are_added(name: str) -> None:
    one, other = released(APART[name](opened(persons=False).frame))
    assert is_quadrature(one - other, one, other, -1)
    assert is_quadrature(one + other, one, other, 1)


def test_groups_of_one_answer_have_no_common_row() -> None:
    answer = opened(persons=False).frame.groupby("g")["x"].mean(population=True).release(mu=2)
    assert is_quadrature(answer["a"] - answer["b"], answer["a"], answer["b"], -1)


@pytest.mark.parametrize("name", TOGETHER)
def test_sampling_errors_of_the_same_rows_are_added_in_full(name: str) -> None:
    one, other = released(TOGETHER[name](opened(persons=False).frame))
    assert is_sum(one - other, one, other, -1)
    assert is_sum(one + other, one, other, 1)


@pytest.mark.parametrize("name", [*list(APART)[1:], *TOGETHER])
def test_those_of_persons_with_several_rows_are_added_in_full(name: str) -> None:
    one, other = released({**APART, **TOGETHER}[name](opened().frame))
    assert is_sum(one - other, one, other, -1)


def test_shares_of_one_total_are_not_independent() -> None:
    """Their sampling covariance is negative, so that of a difference exceeds the sum of squares."""
    df = opened(persons=False).frame
    one = df["g"].value_counts(normalize=True).release(mu=2)["a"]
    other = df[df["x"] >= 0]["g"].value_counts(normalize=True).release(mu=2)["b"]
    assert is_sum(one - other, one, other, -1)


def test_a_limit_of_the_query_does_not_keep_units_apart() -> None:
    """Which of a unit's rows counts depends on the filter: every unit is in both counts."""
    df = opened().frame.bound_contributions(max_rows_per_unit=1)
    one, other = released(df[df["g"] == g].count() for g in "ab")
    assert min(one.estimate, other.estimate) > 490
    assert is_sum(one + other, one, other, 1)


def test_nor_does_a_limit_on_groups_between_queries() -> None:
    df = opened(max_groups_per_unit=1).frame
    one, other = released(df[df["y"] < at].groupby("g").size() for at in (3, 3.5))
    assert is_sum(one["a"] + other["b"], one["a"], other["b"], 1)
    assert is_quadrature(one["a"] - one["b"], one["a"], one["b"], -1)


def test_nor_is_a_unit_in_one_table_only() -> None:
    tables = {name: TABLE.iloc[start::ROWS] for start, name in enumerate(("visits", "bills"))}
    session = dpnb.Session(
        tables,
        name="tables",
        budget=dpnb.Budget.gdp(1000),
        schema=dict.fromkeys(tables, SCHEMA),
        privacy_unit="u",
        max_rows_per_unit=dict.fromkeys(tables, 1),
        ledger=MEMORY,
        not_private_test_seed=4,
    )
    visits, bills = map(session.table, tables)
    one, other = released((visits[visits["g"] == "a"].count(), bills[bills["g"] == "b"].count()))
    assert is_sum(one + other, one, other, 1)
    one, other = released(visits[visits["g"] == g].count() for g in "ab")
    assert is_quadrature(one + other, one, other, 1)


def test_persons_with_one_row_each_are_in_one_group() -> None:
    df = opened().frame
    people = df.groupby("u").agg(x=("x", "mean"), y=("y", "mean"))
    high = people["y"] > 2
    one, other = released(people[condition]["x"].mean(population=True) for condition in (high, ~high))
    assert is_quadrature(one - other, one, other, -1)


# --- standard errors --------------------------------------------------------------------------------------------------


def test_the_standard_error_is_that_of_pandas_where_each_row_is_a_unit() -> None:
    answer = opened(persons=False).frame["x"].sem().release(mu=500)
    assert float(answer.estimate) == pytest.approx(TABLE["x"].sem(), rel=0.01)
    low, high = answer.interval
    assert low < TABLE["x"].std(ddof=0) / len(TABLE) ** 0.5 < high


def test_that_of_persons_is_clustered() -> None:
    answer = opened().frame["x"].sem().release(mu=500)
    residuals = TABLE["x"] - TABLE["x"].mean()
    clustered = math.sqrt((residuals.groupby(TABLE["u"]).sum() ** 2).sum()) / len(TABLE)
    assert clustered > 1.3 * TABLE["x"].sem()
    assert float(answer.estimate) == pytest.approx(clustered, rel=0.01)
    low, high = answer.interval
    assert low < clustered < high


def test_the_standard_error_and_the_mean_are_one_measurement() -> None:
    session = opened()
    standard_error = session.frame["x"].sem().release(mu=50)
    mean = session.frame["x"].mean(population=True).release(mu=50)
    assert session.spent == GDP("50")
    assert sampling(mean) == pytest.approx(2.05 * float(standard_error.estimate), rel=0.05)


def test_by_group() -> None:
    answer = opened(persons=False).frame.groupby("g")["x"].sem().release(mu=500)
    assert answer.to_pandas()["estimate"].tolist() == pytest.approx(TABLE.groupby("g")["x"].sem().tolist(), rel=0.02)
