"""Population intervals cover as often as those of statistics without noise do, in samples of any size and shape.

Each sample is a group of one table, so that the public interface answers thousands of them at once.  An interval is
compared with the one that has no noise, computed with numpy on the same samples at the same nominal 95%: it must cover
at least as often, less one point and less 6 standard errors of the difference (for paired samples, at most 1.5 points
in 4,000).  If a true difference were at the limit of one point, one comparison would fail with probability 1e-9; there
are about 300.  The controls: intervals for the noise alone, and persons whose rows are taken as independent.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb.frame.frame import Frame
from statistical.population_samples import ROWS, TRUTH, Array, Samples, Shape, covers, samples
from statistical.quick import compiled_once, prepared_once, summed_once

pytestmark = pytest.mark.statistical
Z = 1.959963984540054


@dataclass(frozen=True)
class Statistic:
    """What is asked of each sample, what is true in the population, and a standard error without noise."""

    ask: Callable[[Frame], Any]  # a query by sample, or two whose answers are subtracted
    truth: Callable[[Samples], float]
    without: Callable[[Samples, bool], tuple[Array, Array]]  # estimates and standard errors; as if each row were a unit
    afterwards: bool = False  # whether its sampling error is measured by a charge of its own
    combine: Callable[[Any, Any], Any] = operator.sub  # of two answers


def by_sample(frame: Frame) -> Any:
    return frame.groupby("s")


def quotient(top: str, bottom: str | None = None) -> Callable[[Samples, bool], tuple[Array, Array]]:
    """A ratio of sums, or a mean."""

    def without(of: Samples, by_row: bool) -> tuple[Array, Array]:
        s, m = of.table[top].to_numpy(float), of.table[bottom].to_numpy(float) if bottom else np.ones(len(of.table))
        total = of.total(m)
        total = np.where(total > 0, total, np.nan)  # a sample without the rare group has no estimate
        theta = of.total(s) / total
        return theta, np.sqrt(of.squares(s - of.each(theta) * m, by_row=by_row)) / total

    return without


def added(column: str | None) -> Callable[[Samples, bool], tuple[Array, Array]]:
    """A sum, or a count of rows with b = 1."""

    def without(of: Samples, by_row: bool) -> tuple[Array, Array]:
        values = of.table[column or "b"].to_numpy(float)
        return of.total(values), np.sqrt(of.squares(values, by_row=by_row))

    return without


def moment(kind: str) -> Callable[[Samples, bool], tuple[Array, Array]]:
    def without(of: Samples, by_row: bool) -> tuple[Array, Array]:
        x, y, total = of.table["x"].to_numpy(), of.table["y"].to_numpy(), of.total(1.0)
        x, y = (one - of.each(of.total(one) / total) for one in (x, y))
        var, var_y = of.total(x**2) / total, of.total(y**2) / total
        if kind == "correlation":
            x, y = x / of.each(np.sqrt(var)), y / of.each(np.sqrt(var_y))
            theta = of.total(x * y) / total
            influence = x * y - of.each(theta) * (x**2 + y**2) / 2
        else:
            theta, influence = var, x**2 - of.each(var)
        error = np.sqrt(of.squares(influence, by_row=by_row)) / total
        return (np.sqrt(theta), error / (2 * np.sqrt(theta))) if kind == "deviation" else (theta, error)

    return without


def difference(of: Samples, by_row: bool) -> tuple[Array, Array]:
    parts = [quotient("x")(of.of(of.table["g"].to_numpy() == g), by_row) for g in "ab"]
    return parts[0][0] - parts[1][0], np.hypot(parts[0][1], parts[1][1])


def of_both(of: Samples, by_row: bool) -> tuple[Array, Array]:
    """The sum of the means of two columns."""
    return quotient("x")(replace(of, table=of.table.assign(x=of.table["x"] + of.table["y"])), by_row)


def true(name: str) -> Callable[[Samples], float]:
    return lambda of: TRUTH[of.shape][name]


def rows(of: Samples) -> int:
    return of.units * (ROWS if of.persons else 1)


MEAN, RATIO = quotient("x"), quotient("x", "y")
STATISTICS = {
    "count": Statistic(lambda df: by_sample(df[df["b"] == 1]).size(), lambda of: 0.3 * rows(of), added(None)),
    "share": Statistic(lambda df: by_sample(df)["b"].mean(), lambda of: 0.3, quotient("b")),
    "share, measured": Statistic(lambda df: by_sample(df)["b"].mean(population=True), lambda of: 0.3, quotient("b")),
    "mean": Statistic(lambda df: by_sample(df)["x"].mean(population=True), true("x"), MEAN),
    "mean, afterwards": Statistic(lambda df: by_sample(df)["x"].mean(), true("x"), MEAN, afterwards=True),
    "ratio": Statistic(
        lambda df: by_sample(df)["x"].ratio(df["y"], population=True),
        lambda of: TRUTH[of.shape]["x"] / TRUTH[of.shape]["y"],
        RATIO,
    ),
    "ratio, afterwards": Statistic(
        lambda df: by_sample(df)["x"].ratio(df["y"]),
        lambda of: TRUTH[of.shape]["x"] / TRUTH[of.shape]["y"],
        RATIO,
        afterwards=True,
    ),
    "sum": Statistic(
        lambda df: by_sample(df)["x"].sum(population=True), lambda of: rows(of) * TRUTH[of.shape]["x"], added("x")
    ),
    "variance": Statistic(lambda df: by_sample(df)["x"].var(), true("variance"), moment("variance"), afterwards=True),
    "deviation": Statistic(lambda df: by_sample(df)["x"].std(), true("variance"), moment("deviation"), afterwards=True),
    "correlation": Statistic(
        lambda df: by_sample(df)["x"].corr(df["y"]), true("correlation"), moment("correlation"), afterwards=True
    ),
    "difference of groups": Statistic(
        lambda df: [by_sample(df[df["g"] == g])["x"].mean(population=True) for g in "ab"], lambda of: 0.0, difference
    ),
    "sum of two means": Statistic(
        lambda df: [by_sample(df)[name].mean(population=True) for name in "xy"],
        lambda of: TRUTH[of.shape]["x"] + TRUTH[of.shape]["y"],
        of_both,
        combine=operator.add,
    ),
    "quotient of two means": Statistic(
        lambda df: [by_sample(df)[name].mean(population=True) for name in "xy"],
        lambda of: TRUTH[of.shape]["x"] / TRUTH[of.shape]["y"],
        RATIO,
        combine=operator.truediv,
    ),
}


def answered(
    statistic: Statistic, of: Samples, mu: float, refinements: int, session: dpnb.Session | None = None, **options: Any
) -> pd.DataFrame:
    """The final or refined answers for all samples, in a session that has no answers or in the given one."""
    whole: list[Any] = []
    asked = statistic.ask((of.session(**options) if session is None else session).frame)
    for query in asked if isinstance(asked, list) else [asked]:
        answer = query.release(mu=mu / 3) if refinements else query.release(mu=mu, final=True)
        if statistic.afterwards:
            answer = answer.population(mu=mu / 3)
        for step in range(refinements):
            answer = answer.refine(mu=mu / 3 + (mu - mu / 3) * (step + 1) / refinements)
        whole.append(answer)
    return (statistic.combine(*whole) if len(whole) == 2 else whole[0]).to_pandas()


@dataclass(frozen=True)
class Coverage:
    """How often intervals cover, by sample."""

    private: Array
    noise: Array
    without: Array
    width: float  # median, as a multiple of that without noise

    @property
    def slack(self) -> float:
        """What is allowed for: one point, and 6 standard errors of the difference."""
        differ = np.mean(self.private != self.without)
        return 0.01 + 6 * float(np.sqrt(max(differ, 1 / len(self.private)) / len(self.private)))

    @property
    def falls_short(self) -> bool:
        return bool(self.private.mean() < self.without.mean() - self.slack)


def coverage(
    statistic: Statistic,
    of: Samples,
    mu: float,
    refinements: int = 0,
    truth: Array | None = None,
    session: dpnb.Session | None = None,
    **options: Any,
) -> Coverage:
    true = statistic.truth(of) if truth is None else truth
    table = answered(statistic, of, mu, refinements, session, **options)
    low, high = (table[f"population_{end}"].to_numpy() for end in ("low", "high"))
    with np.errstate(all="ignore"):  # a sample may have no unit in the rare group, and a limit may be infinite
        estimate, error = statistic.without(of, False)
        error = error * np.sqrt(1 - options.get("sampled", 0))
        width = float(np.nanmedian(high - low) / np.nanmedian(2 * Z * error))
    return Coverage(
        covers(low, high, true),
        covers(table["low"].to_numpy(), table["high"].to_numpy(), true),
        covers(estimate - Z * error, estimate + Z * error, true),
        width,
    )


# --- in samples of every size and shape -------------------------------------------------------------------------------

Setting = tuple[Shape, bool, int, float, int]
"""Distribution, whether units are persons, rows, mu, refinements."""

SETTINGS: list[Setting] = [
    *(
        (shape, persons, n, mu, refinements)
        for shape in ("normal", "skewed")
        for persons in (False, True)
        for n, mu, refinements in [(200, 0.5, 0), (200, 2, 0), (1000, 0.07, 0), (1000, 0.7, 3), (1000, 2, 0)]
    ),
    ("skewed", False, 20_000, 0.08, 0),
    ("normal", True, 20_000, 0.8, 0),
]  # type: ignore[assignment]  # of shapes
NUMBER = {200: 2000, 1000: 400, 20_000: 60}
"""Samples, by their rows: all that half a minute has time for."""


@pytest.fixture(autouse=True, scope="module")
def _worked_out_once() -> Iterator[None]:
    with prepared_once(), compiled_once(), summed_once():
        yield


@lru_cache(maxsize=1)
def drawn(shape: Shape, persons: bool, n: int) -> Samples:
    return samples(shape, n // (ROWS if persons else 1), NUMBER[n], n, persons=persons)


def short(of: Samples, mu: float, refinements: int = 0) -> dict[str, str]:
    """The statistics whose intervals cover too seldom.

    All are asked in one session, where what several of them are made of is the same answer; but not if it is refined.
    """
    session = None if refinements else of.session()
    found = {name: coverage(each, of, mu, refinements, session=session) for name, each in STATISTICS.items()}
    return {
        name: f"{each.private.mean():.3f} instead of {each.without.mean():.3f}"
        for name, each in found.items()
        if each.falls_short
    }


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: "-".join(map(str, setting)))
def test_population_intervals_cover_as_often_as_without_noise(setting: Setting) -> None:
    shape, persons, n, mu, refinements = setting
    assert short(drawn(shape, persons, n), mu, refinements) == {}


@pytest.mark.smoke
@pytest.mark.parametrize("persons", [False, True], ids=["rows", "persons"])
def test_population_intervals_of_small_samples_cover_as_often_as_without_noise(persons: bool) -> None:
    assert short(samples("normal", 100, 500, 1, persons=persons), 2) == {}


@pytest.mark.smoke
@pytest.mark.parametrize("name", ["count", "share", "mean", "sum", "variance", "difference of groups"])
def test_intervals_of_the_noise_alone_are_caught(name: str) -> None:
    found = coverage(STATISTICS[name], samples("normal", 1000, 400, 2), 2)
    assert replace(found, private=found.noise).falls_short


@pytest.mark.smoke
@pytest.mark.parametrize("name", ["mean", "share, measured", "ratio"])
def test_rows_of_persons_taken_as_independent_are_caught(name: str) -> None:
    """With intra-class correlation 0.5 and 5 rows they cover 74%: 1.96 standard deviations divided by the root of 3.

    Truth values, whose correlation is 0.33, 80%: in 1000 samples these are caught with more than 99.9%.
    """
    of = samples("normal", 100, 1000, 3, persons=True)
    estimate, error = STATISTICS[name].without(of, True)
    by_row = covers(estimate - Z * error, estimate + Z * error, STATISTICS[name].truth(of))
    assert 0.6 < by_row.mean() < 0.9
    found = coverage(STATISTICS[name], of, 2)
    assert not found.falls_short
    assert replace(found, private=by_row).falls_short


def test_persons_read_as_rows_are_caught() -> None:
    """The same table in a session where each row is a unit, which must under-cover: what is a unit is declared."""
    of = samples("normal", 1000, 400, 3, persons=True)
    as_rows = replace(of, persons=False)
    found = replace(coverage(STATISTICS["mean"], of, 2), private=coverage(STATISTICS["mean"], as_rows, 2).private)
    assert found.falls_short


# --- in batches, and one row per person -------------------------------------------------------------------------------


@pytest.mark.smoke
def test_counts_of_a_batch_cover_as_often_as_without_noise() -> None:
    """Of the rare group in each sample, whose estimate also uses the counts of the samples."""
    of = samples("normal", 400, 1000, 6)
    session = of.session()
    frame = session.frame
    both, _ = session.plan([frame.groupby(["s", "g"]).size(), frame.groupby("s").size()]).release(mu=1)
    table = both.to_pandas().xs("a", level="g")
    exact = of.of(of.table["g"].to_numpy() == "a").total(1.0)
    limits = [table[name].to_numpy() for name in ("population_low", "population_high", "low", "high")]
    without = covers(exact - Z * np.sqrt(exact), exact + Z * np.sqrt(exact), 40)
    found = Coverage(covers(*limits[:2], 40), covers(*limits[2:], 40), without, 1.0)
    assert not found.falls_short
    assert replace(found, private=found.noise).falls_short


@pytest.mark.smoke
def test_means_of_persons_with_one_row_each_cover_as_often_as_without_noise() -> None:
    of = samples("skewed", 200, 500, 7, persons=True)
    people = of.session().frame.sort_values("y").groupby("u").agg(x=("x", "mean"), s=("s", "first"))
    table = by_sample(people)["x"].mean(population=True).release(mu=2, final=True).to_pandas()
    own = of.table.groupby("u").agg(x=("x", "mean"), s=("s", "first"), y=("y", "first"))
    estimate, error = MEAN(replace(of, persons=False, table=own.reset_index()), False)
    limits = [table[name].to_numpy() for name in ("population_low", "population_high", "low", "high")]
    without = covers(estimate - Z * error, estimate + Z * error, 1)
    found = Coverage(covers(*limits[:2], 1), covers(*limits[2:], 1), without, 1.0)
    assert not found.falls_short
    assert replace(found, private=found.noise).falls_short


# --- samples of a known fraction --------------------------------------------------------------------------------------


def drawn_from_populations(fraction: float, seed: int, *, persons: bool = False) -> tuple[Samples, dict[str, Array]]:
    """Samples of populations of their own, of which each unit is drawn with some probability, and their truth."""
    whole = samples("skewed", 400, 2000, seed, persons=persons)
    units = whole.table["u"].to_numpy()
    kept = (np.random.default_rng(seed + 1).random(units[-1] + 1) < fraction)[units]
    total = whole.total(whole.table["x"].to_numpy())
    return whole.of(kept), {"sum": fraction * total, "mean": total / whole.total(1.0)}


@pytest.mark.parametrize("persons", [False, True], ids=["rows", "persons"])
def test_of_a_known_fraction_less_is_uncertain(persons: bool) -> None:
    of, truth = drawn_from_populations(0.75, 4, persons=persons)

    def found(**sampled: float) -> dict[str, Coverage]:
        session = of.session(**sampled)
        return {
            name: coverage(STATISTICS[name], of, 2, truth=truth[name], session=session, **sampled) for name in truth
        }

    right, large, wrong = found(sampled=0.75), found(), found(sampled=0.99)
    for name, shown in right.items():
        assert not shown.falls_short
        assert shown.width < large[name].width * 2.2
        assert replace(shown, private=wrong[name].private).falls_short


def test_of_a_census_only_the_noise_is_uncertain() -> None:
    of = samples("skewed", 400, 1000, 5)
    table = answered(STATISTICS["sum"], of, 0.5, 0, sampled="census")
    assert table["population_low"].equals(table["low"].rename("population_low"))
    assert covers(table["low"].to_numpy(), table["high"].to_numpy(), of.total(of.table["x"].to_numpy())).mean() > 0.92
