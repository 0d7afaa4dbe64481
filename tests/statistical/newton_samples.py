"""Samples of logistic and Poisson regressions, and their noisy Newton steps, with numpy in place of a table.

The sums are those of `tests/backends/test_scores.py`, which compares them with what a table is summed to; noise scales,
steps and covariances are computed by the package.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from dpnb._compile import linear_query
from dpnb._plan.expressions.nodes import Column
from dpnb._plan.measurements import Family, JointAggregation, RegressionModel, ScoreSums, StepView, WeightedAggregation
from dpnb._plan.plan import Plan
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb._plan.regression import RegressionDesign, design
from dpnb.results.estimates.estimate import estimate
from dpnb.results.estimates.newton import (
    INFORMATION,
    LAST_INFORMATION,
    LAST_PRODUCTS,
    LAST_SCORE,
    SCORE,
    SHARES,
    NewtonStep,
    StepCovariance,
    StepSums,
    covariance,
    first_coefficients,
    linear_start,
    newton_step,
)
from dpnb.results.estimates.noisy import IntervalArrays
from dpnb.schema import Bounded, Categories, Schema

Array = NDArray[np.float64]

MOST = 20
"""Upper bound of the outcome of a Poisson regression."""

SCHEMA: Schema = {
    **{name: Bounded(-1, 1) for name in "xzw"},
    "g": Categories(["a", "b", "c", "d"]),
    "y": Categories([False, True]),
    "count": Bounded(0, MOST),
}


@dataclass(frozen=True)
class Setting:
    """A design, its size and the budget."""

    family: Family
    rows: int
    mu: float
    kind: str = "plain"  # or "categories", "collinear", "steep"
    persons: int = 1  # rows of a person, whose outcomes are correlated

    @cached_property
    def model(self) -> RegressionModel:
        columns = [Column(name) for name in ("xzw" if self.kind == "collinear" else "xz")]
        categories = (Column("g"),) if self.kind == "categories" else ()
        outcome = Column("y" if self.family == "logistic" else "count")
        return RegressionModel(self.family, outcome, tuple(columns), categories)

    @cached_property
    def design(self) -> RegressionDesign:
        return design(self.model, SCHEMA)

    @cached_property
    def unit(self) -> PrivacyUnit:
        return PrivacyUnit() if self.persons == 1 else PrivacyUnit("u", self.persons)

    @cached_property
    def truth(self) -> Array:
        """The coefficients in the population."""
        if self.kind == "steep":
            return np.array([-2.0, 3.0, -2.0] if self.family == "logistic" else [-0.5, 1.5, -0.8])
        intercept = -0.7 if self.family == "logistic" else -0.1
        return np.array([intercept, 0.8, -0.5, 0.4, -0.3, 0.5][: self.design.terms])

    def sample(self, chance: np.random.Generator) -> tuple[Array, Array]:
        """The terms and the outcomes of a sample; half of the variance of x is between persons."""
        n, k = self.rows, self.persons
        between = np.repeat(chance.normal(0, 0.35, n // k), k)
        x = np.clip(between + chance.normal(0, 0.35, n), -1, 1)
        columns = [np.ones(n), x, chance.uniform(-1, 1, n)]
        if self.kind == "collinear":
            columns.append(np.clip(0.8 * x + chance.normal(0, 0.25, n), -1, 1))
        if self.kind == "categories":
            codes = chance.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])
            columns += [(codes == code).astype(float) for code in (1, 2, 3)]
        terms = np.array(columns).T  # each term in a row of memory, which is quicker than each row of the sample
        mean = self.mean(terms @ self.truth)
        common = np.repeat(chance.normal(size=n // k), k)
        if self.family == "logistic":
            both = norm.cdf(math.sqrt(0.5) * (common + chance.normal(size=n))) if k > 1 else chance.random(n)
            return terms, (both < mean).astype(float)
        frailty = np.repeat(chance.gamma(5, 0.2, n // k), k) if k > 1 else 1.0
        return terms, np.minimum(chance.poisson(mean * frailty), MOST).astype(float)

    def mean(self, predictor: Array) -> Array:
        return np.asarray(1 / (1 + np.exp(-predictor)) if self.family == "logistic" else np.exp(predictor))

    # --- steps ----------------------------------------------------------------------------------------------------

    def sums(self, terms: Array, y: Array, at: Any, slope: float | None, rows: int | None) -> Array:
        """The sums of a step without noise, in the order of their names; those of units of some rows if it is given."""
        mean = self.mean(terms @ np.array(at))
        weight = mean * (1 - mean) if self.family == "logistic" else np.where(mean < MOST, mean, 0.0)
        mean = np.minimum(mean, MOST)
        score = terms * (y - mean)[:, None]
        information = (terms * np.minimum(weight, slope or math.inf)[:, None]).T @ terms
        upper = np.triu_indices(terms.shape[1])
        sums = [score.sum(axis=0), information[upper]]
        if rows is not None:
            by_unit = score if rows == 1 else score.reshape(-1, rows, terms.shape[1]).sum(axis=1)
            sums.append((by_unit.T @ by_unit)[upper])
        return np.concatenate(sums)

    @lru_cache(maxsize=16)  # noqa: B019  # the first step is alike in all samples
    def scales(self, at: Any, slope: float | None, mu: float, *, last: bool, rows: int) -> Array:
        """The noise scales of these sums."""
        parts = [ScoreSums(self.model, at, "score"), ScoreSums(self.model, at, "information", slope)]
        weights: tuple[float, ...] = SCORE, INFORMATION
        if last:
            parts.append(ScoreSums(self.model, at, "products", max_rows=rows))
            weights = LAST_SCORE, LAST_INFORMATION, LAST_PRODUCTS
        plan = Plan(JointAggregation(tuple(map(WeightedAggregation, parts, weights))))
        query = linear_query(plan, SCHEMA, self.unit)
        view = StepView(("",) * self.design.terms, products=last)
        sigma = np.array([math.sqrt(query.l2_sensitivity_squared) / mu])
        return estimate(query, view, np.zeros((1, query.slots)), sigma, sigma, SCHEMA).noise_scale[0]

    def fitted(
        self, terms: Array, y: Array, chance: np.random.Generator, *, row_products: bool = False
    ) -> tuple[NewtonStep, StepSums]:
        """The last step; with `row_products` the meat is that of rows, as if each were a unit."""
        rows = 1 if row_products else self.persons
        at, slope, step = first_coefficients(self.family, self.design), None, None
        for index, share in enumerate(SHARES):
            last = index == len(SHARES) - 1
            scale = self.scales(at, slope, self.mu * math.sqrt(share), last=last, rows=rows)
            exact = self.sums(terms, y, at, slope, rows if last else None)
            value = exact + scale * chance.normal(size=len(scale))
            ends = [array[None, :] for array in (value, value, value, scale)]
            sums = StepSums.of(IntervalArrays(*ends), self.design.terms)
            if step is None:
                step = linear_start(self.family, self.design, at, sums)
            else:
                step = newton_step(self.design, step, sums)
            at, slope = step.coefficients, step.max_slope
        assert step is not None
        return step, sums

    def exact(self, terms: Array, y: Array) -> Array:
        """The coefficients without noise; a step below a ten-thousandth is followed by one of its square."""
        at, step = self.truth, np.ones(1)
        while abs(step).max() > 1e-4:
            mean = self.mean(terms @ at)
            weight = mean * (1 - mean) if self.family == "logistic" else mean
            step = np.linalg.solve((terms * weight[:, None]).T @ terms, terms.T @ (y - mean))
            at = at + step
        return at


@dataclass(frozen=True)
class Fit:
    """A fit of one sample."""

    coefficients: Array
    found: StepCovariance
    move: Array
    truth: Array
    exact: Array

    @property
    def errors(self) -> Array:
        """Standard errors of noise and sampling."""
        return np.sqrt(np.diag(self.found.noise + self.found.sampling))

    @property
    def noise(self) -> Array:
        return np.sqrt(np.diag(self.found.noise))


def fits(setting: Setting, number: int, seed: int = 0, *, row_products: bool = False) -> Iterator[Fit]:
    """Fits of several samples."""
    chance = np.random.default_rng([seed, setting.rows, int(setting.mu * 100), setting.persons, len(setting.kind)])
    for _ in range(number):
        terms, y = setting.sample(chance)
        step, sums = setting.fitted(terms, y, chance, row_products=row_products)
        exact = setting.exact(terms, y)
        yield Fit(np.array(step.coefficients), covariance(sums, step), step.move, setting.truth, exact)
