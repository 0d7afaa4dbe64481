"""Intervals of coefficients cover as often as those without noise, and p-values are uniform where there is no effect.

Each sample is a table of its own.  The coverage, over the coefficients of a sample, is compared with that of ordinary
intervals without noise in the same samples, which are robust or clustered as the private ones are: it must be at least
as large less one point, and at most 97%, apart from 5 standard errors of its mean over samples.  If a true coverage
were at such a limit, one comparison would fail with probability 3e-7; there are about 30.  The controls: intervals for
the noise alone, rows of persons taken as independent, and errors of one variance where they have several.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from numpy.typing import NDArray

import dpnb
from dpnb.ledger import MEMORY
from statistical.quick import compiled_once, prepared_once, summed_once

pytestmark = pytest.mark.statistical
Z = 1.959963984540054
ROWS = 5
EPSILON_1 = 0.2367
"""The mu of (1, 1e-6)."""

Array = NDArray[Any]
SCHEMA = {
    "x": dpnb.Bounded(-3, 3),
    "z": dpnb.Bounded(-3, 3),
    "y": dpnb.Bounded(-3, 5),
    "g": dpnb.Categories(["a", "b", "c"]),
}


@dataclass(frozen=True)
class Sample:
    """A table, and the design without noise."""

    table: pd.DataFrame
    formula: str
    truth: Array  # NaN for a coefficient that is not asked for

    @property
    def asked(self) -> Array:
        return ~np.isnan(self.truth)

    @property
    def persons(self) -> bool:
        return "u" in self.table

    @property
    def predictors(self) -> Array:
        last = [self.table["g"] == "b", self.table["g"] == "c"] if "C(g)" in self.formula else [self.table["z"]]
        return np.column_stack([np.ones(len(self.table)), self.table["x"], *last]).astype(float)

    def without_noise(self) -> dict[str, tuple[Array, Array]]:
        """Coefficients and standard errors: of one variance, robust, and clustered."""
        x, y = self.predictors, self.table["y"].to_numpy()
        inverse = np.linalg.inv(x.T @ x)
        beta = inverse @ x.T @ y
        scores = x * (y - x @ beta)[:, None]
        sums = scores.reshape(-1, ROWS, x.shape[1]).sum(axis=1) if self.persons else scores
        one = ((y - x @ beta) ** 2).sum() / (len(y) - len(beta)) * inverse
        covariances = {
            "one variance": one,
            "rows": inverse @ scores.T @ scores @ inverse,
            "units": inverse @ sums.T @ sums @ inverse,
        }
        return {name: (beta, np.sqrt(np.diag(found))) for name, found in covariances.items()}


Design = Callable[[np.random.Generator, int], Sample]


def normal(rng: np.random.Generator, n: int) -> Array:
    return rng.normal(0, 1, n).clip(-3, 3)


def sample(table: dict[str, Any], truth: list[float], formula: str = "y ~ x + z") -> Sample:
    return Sample(pd.DataFrame({**table, "y": table["y"].clip(-3, 5)}), formula, np.array(truth))


def homoskedastic(rng: np.random.Generator, n: int) -> Sample:
    x, z = normal(rng, n), normal(rng, n)
    return sample({"x": x, "z": z, "y": 1 + 0.5 * x - 0.3 * z + normal(rng, n)}, [1, 0.5, -0.3])


def heteroskedastic(rng: np.random.Generator, n: int) -> Sample:
    x, z = normal(rng, n), normal(rng, n)
    y = 1 + 0.3 * x - 0.3 * z + normal(rng, n) * np.exp(0.5 * x) / 2
    return sample({"x": x, "z": z, "y": y}, [1, 0.3, -0.3])


def categorical(rng: np.random.Generator, n: int) -> Sample:
    x, z, g = normal(rng, n), normal(rng, n), rng.choice(list("abc"), n, p=[0.5, 0.3, 0.2])
    y = 1 + 0.5 * x + 0.4 * (g == "b") - 0.2 * (g == "c") + normal(rng, n)
    return sample({"x": x, "z": z, "g": g, "y": y}, [1, 0.5, 0.4, -0.2], "y ~ x + C(g)")


def collinear(rng: np.random.Generator, n: int) -> Sample:
    """Two predictors with the correlation 0.8."""
    x = normal(rng, n)
    z = (0.8 * x + 0.6 * normal(rng, n)).clip(-3, 3)
    return sample({"x": x, "z": z, "y": 1 + 0.5 * x - 0.3 * z + normal(rng, n)}, [1, 0.5, -0.3])


def persons(rng: np.random.Generator, n: int) -> Sample:
    """Five rows a person, with the intra-class correlation 0.5 of predictors and errors."""
    unit = np.arange(n) // ROWS

    def of_persons() -> Array:
        return (normal(rng, n // ROWS)[unit] + normal(rng, n)) * np.sqrt(0.5)

    x, z = of_persons().clip(-3, 3), of_persons().clip(-3, 3)
    y = 1 + 0.5 * x - 0.3 * z + of_persons()
    return sample({"u": unit, "x": x, "z": z, "y": y}, [1, 0.5, -0.3])


def no_effect(rng: np.random.Generator, n: int) -> Sample:
    return sample({"x": normal(rng, n), "z": normal(rng, n), "y": 1 + normal(rng, n)}, [1, 0, 0])


# --- how often intervals cover ----------------------------------------------------------------------------------------


@pytest.fixture(autouse=True, scope="module")
def _compiled_once() -> Iterator[None]:
    with compiled_once():
        yield


def released(one: Sample, mu: float, seed: int, **options: Any) -> Any:
    unit = {"privacy_unit": "u", "max_rows_per_unit": ROWS} if one.persons else {}
    session = dpnb.Session(
        one.table,
        name="sample",
        budget=dpnb.Budget.gdp(1000),
        schema={name: kind for name, kind in SCHEMA.items() if name in one.table},
        ledger=MEMORY,
        not_private_test_seed=seed,
        **unit,
    )
    return session.frame.regress(one.formula, **{"population": True, **options}).release(mu=mu, final=True)


@dataclass(frozen=True)
class Coverage:
    """How often intervals cover, by sample: the means over its coefficients."""

    private: Array
    noise: Array
    without: dict[str, Array]
    width: Array  # median over samples, of each coefficient, as a multiple of that without noise
    units: str

    def falls_short(self, private: Array | None = None) -> bool:
        shown = self.private if private is None else private
        return bool((shown - self.without[self.units]).mean() < -0.01 - 5 * self._error(shown))

    @property
    def is_too_wide(self) -> bool:
        return bool(self.private.mean() > 0.97 + 5 * self._error(self.private))

    @staticmethod
    def _error(shown: Array) -> float:
        return float(np.sqrt(max(shown.var(), 0.01) / len(shown)))


def covered_without_noise(one: Sample, plain: dict[str, tuple[Array, Array]]) -> dict[str, float]:
    """How many coefficients intervals without noise cover, by their kind of standard errors."""
    return {
        name: float(np.mean((np.abs(beta - one.truth) <= Z * error)[one.asked]))
        for name, (beta, error) in plain.items()
    }


def coverage(design: Design, n: int, mu: float, samples: int, seed: int, **options: Any) -> Coverage:
    rng = np.random.default_rng(seed)
    private, noise, widths = [], [], []
    without: dict[str, list[float]] = {}
    for number in range(samples):
        one = design(rng, n)
        answer = released(one, mu, 1000 * seed + number + 1, **options)
        arrays = answer.population_arrays
        assert arrays is not None
        for found, shown in ((private, arrays), (noise, answer.arrays)):
            found.append(np.mean(((shown.low[0] <= one.truth) & (one.truth <= shown.high[0]))[one.asked]))
        plain = one.without_noise()
        for name, share in covered_without_noise(one, plain).items():
            without.setdefault(name, []).append(share)
        widths.append((arrays.high - arrays.low)[0] / (2 * Z * plain["units"][1]))
    exact = {name: np.array(found) for name, found in without.items()}
    return Coverage(np.array(private), np.array(noise), exact, np.median(widths, axis=0), "units")


DESIGNS: dict[str, Design] = {
    each.__name__: each for each in (homoskedastic, heteroskedastic, categorical, collinear, persons)
}
SETTINGS = [(1000, 2.0, 60), (20_000, EPSILON_1, 30), (50_000, EPSILON_1, 20)]
"""Rows of a sample, mu for rows, samples: as many as catch the controls, and fewer where each takes longer."""


@pytest.mark.parametrize(("n", "mu", "samples"), SETTINGS)
@pytest.mark.parametrize("name", DESIGNS)
def test_measured_intervals_cover_as_often_as_without_noise(name: str, n: int, mu: float, samples: int) -> None:
    times = ROWS if name == "persons" else 1.0
    found = coverage(DESIGNS[name], n, mu * times, samples, 11)
    assert not found.falls_short()
    assert not found.is_too_wide


@pytest.mark.smoke
def test_intervals_of_few_samples_cover_and_those_of_the_noise_alone_are_caught() -> None:
    found = coverage(heteroskedastic, 1000, 20, 60, 12)
    assert not found.falls_short()
    assert found.falls_short(found.noise)


@pytest.mark.smoke
def test_rows_of_persons_taken_as_independent_are_caught_and_intervals_of_the_noise_alone() -> None:
    """Rows of persons, whose intervals cover 80%, are caught in 240 samples without noise with more than 99.9%.

    Intervals of the noise alone cover 27%, which is ten standard errors below what 60 samples allow.
    """
    found = coverage(persons, 1000, 20, 60, 12)
    assert not found.falls_short()
    assert found.falls_short(found.noise)
    rng = np.random.default_rng(15)
    plain = [covered_without_noise(one, one.without_noise()) for one in (persons(rng, 1000) for _ in range(240))]
    rows, units = (np.array([shares[kind] for shares in plain]) for kind in ("rows", "units"))
    assert replace(found, private=rows, without={"units": units}).falls_short()


@pytest.mark.parametrize("name", ["homoskedastic", "categorical", "collinear"])
def test_intervals_of_one_variance_cover_where_it_is_one(name: str) -> None:
    for n, mu in ((1000, 2.0), (1000, 20.0)):
        found = coverage(DESIGNS[name], n, mu, 50, 13, population=False)
        assert not found.falls_short()
        assert not found.is_too_wide
    assert found.falls_short(found.noise)


def test_errors_of_several_variances_are_caught_where_one_is_assumed() -> None:
    """The slope of x, to which errors are in proportion: its interval covers 74%."""

    def in_proportion(rng: np.random.Generator, n: int) -> Sample:
        x, z = normal(rng, n), normal(rng, n)
        return sample({"x": x, "z": z, "y": 1 + 0.3 * x + normal(rng, n) * x / 3}, [np.nan, 0.3, np.nan])

    assumed = coverage(in_proportion, 500, 50, 200, 14, population=False)
    assert assumed.falls_short()
    assert not coverage(in_proportion, 500, 50, 50, 14).falls_short()


@pytest.mark.parametrize("name", ["homoskedastic", "categorical"])
def test_at_epsilon_1_an_interval_is_at_most_twice_as_wide_as_without_noise(name: str) -> None:
    """The outcome is clamped to 4 standard deviations of its errors on both sides."""
    assert coverage(DESIGNS[name], 20_000, EPSILON_1, 10, 16).width.max() < 2


# --- p-values ---------------------------------------------------------------------------------------------------------


def distance(values: Array) -> float:
    """The largest distance of a distribution function from that of the uniform distribution."""
    values = np.sort(values)
    steps = np.arange(1, len(values) + 1) / len(values)
    return float(np.maximum(steps - values, values - steps + 1 / len(values)).max())


@pytest.mark.parametrize("population", [False, True], ids=["one variance", "robust"])
def test_p_values_are_uniform_where_there_is_no_effect(population: bool) -> None:
    """Of two slopes in 80 samples, 0.22 is exceeded with probability 4e-7 (Massart 1990)."""
    rng, found, noise = np.random.default_rng(17), [], []
    for number in range(80):
        answer = released(no_effect(rng, 1000), 20, number + 1, population=population)
        found += answer.pvalues.iloc[1:].tolist()
        scores = answer.params.iloc[1:].to_numpy() / answer.noise_scale.iloc[1:].to_numpy()
        noise += [2 * sm.stats.stattools.stats.norm.sf(abs(score)) for score in scores.tolist()]
    assert distance(np.array(found)) < 0.22
    assert distance(np.array(noise)) > 0.22  # the control: of the noise alone


# --- a real table -----------------------------------------------------------------------------------------------------


def test_coefficients_of_the_rand_experiment_are_within_their_noise_intervals() -> None:
    """Of 20 releases with 6 coefficients: even if the six of a release always miss together, fewer than 67 of 120 hold
    with probability 4e-7."""
    bounds = {"mdvis": (0, 20), "lncoins": (0, 4.7), "idp": (0, 1), "lpi": (0, 7.2), "disea": (0, 60), "physlm": (0, 1)}
    table = sm.datasets.randhie.load_pandas().data[[*bounds]]
    table = table.apply(lambda column: column.clip(*bounds[column.name]))
    exact = sm.OLS(table["mdvis"], sm.add_constant(table.drop(columns="mdvis"))).fit(cov_type="HC0")
    formula = f"mdvis ~ {' + '.join([*bounds][1:])}"

    def answer_of(seed: int) -> Any:
        session = dpnb.Session(
            table,
            name="hie",
            budget=dpnb.Budget(epsilon=1, delta=1e-6),
            schema={name: dpnb.Bounded(*ends) for name, ends in bounds.items()},
            ledger=MEMORY,
            not_private_test_seed=seed + 1,
        )
        return session.frame.regress(formula, population=True).release(share=1, final=True)

    inside, ratios = 0, []
    with prepared_once(), summed_once():
        answers = [answer_of(seed) for seed in range(20)]
    for answer in answers:
        low, high = answer.arrays.low[0], answer.arrays.high[0]
        inside += int(((low <= exact.params.to_numpy()) & (exact.params.to_numpy() <= high)).sum())
        ratios.append(answer.bse.to_numpy() / exact.bse.to_numpy())
    assert inside >= 67
    assert np.median(ratios, axis=0).max() < 2.7
