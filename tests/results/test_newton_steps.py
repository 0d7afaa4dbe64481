"""Steps of a regression from any released sums: noise decides how good they are, not whether there is an answer."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from dpnb._plan.measurements import Family
from dpnb._plan.regression import LARGEST, MIN_SLOPE, RegressionDesign
from dpnb.results.estimates import newton
from dpnb.results.estimates.newton import StepSums, covariance, first_coefficients, linear_start, newton_step

FAMILIES: list[Family] = ["logistic", "poisson"]


def random_design(chance: np.random.Generator, family: Family) -> RegressionDesign:
    sizes = tuple(chance.integers(1, 4, chance.integers(0, 3)).tolist())
    numbers, high = int(chance.integers(0, 4)), float(10 ** chance.uniform(-9, 12))
    outcome = (high / 2, high / 2) if family == "poisson" else (0.0, 1.0)
    return RegressionDesign((0.0,) * numbers, (1.0,) * numbers, sizes, outcome)


def random_sums(chance: np.random.Generator, design: RegressionDesign) -> StepSums:
    """Of no rows or many, of terms that differ or are all alike, with any noise."""
    terms, largest = design.terms, sum(design.outcome)
    scale, of_products = 10 ** chance.uniform(-9, 16, 2) * largest
    rows = 10 ** chance.uniform(0, 9) * chance.integers(0, 2)
    x = np.ones((terms, terms)) if chance.random() < 0.3 else chance.uniform(-1, 1, (terms, terms))

    def noise() -> Any:
        upper = np.triu(chance.normal(size=(terms, terms)))
        return upper + np.triu(upper, 1).T

    score = chance.normal(size=terms) * (scale + rows * largest * chance.choice([0, 1, 1000]))
    information = rows * largest * (x @ x.T) / terms + chance.integers(0, 2) * scale * noise()
    every = np.ones((terms, terms))
    return StepSums(
        score, np.full(terms, scale), information, every * scale, noise() * of_products, every * of_products
    )


def failures(tries: int) -> int:
    """Tries in which a step is not defined, or would make a request that is refused after those before were charged."""
    chance, found = np.random.default_rng(1), 0
    for number in range(tries):
        family = FAMILIES[number % 2]
        design = random_design(chance, family)
        sums = [random_sums(chance, design) for _ in newton.SHARES]
        try:
            step = linear_start(family, design, first_coefficients(family, design), sums[0])
            for one in sums[1:]:
                step = newton_step(design, step, one)
            result = covariance(sums[-1], step)
        except (OverflowError, RuntimeWarning, np.linalg.LinAlgError):
            found += 1
            continue
        numbers = [*step.coefficients, step.max_slope]
        sound = np.isfinite(numbers).all() and max(map(abs, step.coefficients)) < LARGEST
        sound = sound and MIN_SLOPE <= step.max_slope <= 1 / MIN_SLOPE
        if not sound or (not result.flaw and not np.isfinite([result.noise, result.sampling]).all()):
            found += 1
    return found


def test_any_released_sums_have_a_next_step() -> None:
    assert failures(400) == 0


def test_the_control_information_that_cannot_be_inverted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(newton, "SINGULAR", 0.0)
    monkeypatch.setattr(newton, "FLOOR", 1e-200)
    assert failures(400) > 0


def test_equal_terms_without_noise_are_not_clear() -> None:
    sums = random_sums(np.random.default_rng(0), RegressionDesign((0.0,), (1.0,), (), (0.0, 1.0)))
    alike = dataclasses.replace(sums, information=np.ones((2, 2)), information_scale=np.full((2, 2), 1e-300))
    information, is_raised = alike.raised
    assert is_raised
    assert np.isfinite(np.linalg.inv(information)).all()
