"""The variances of coefficients: what the added part of the noise does to the coverage, and the matrices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

from dpnb.results.estimates.least_squares import MARGIN, LeastSquares, _quotient, in_own_units
from dpnb.results.estimates.noisy import IntervalArrays

NOISE = np.linspace(-7, 7, 4001)
WEIGHTS = np.exp(-(NOISE**2) / 2) / np.exp(-(NOISE**2) / 2).sum()


def coverages(ratio: float, margin: float) -> list[float]:
    """Of intervals of 95%, for any sampling variance V; the noise of a coefficient has the variance 1, that of V its
    scale `ratio`."""
    found = []
    for variance in np.concatenate([[0.0], np.logspace(-3, 3, 121)]):
        assumed = 1 + np.maximum(variance + ratio * NOISE, 0) + margin * ratio
        found.append(float(WEIGHTS @ (2 * ndtr(1.959964 * np.sqrt(assumed / (1 + variance))) - 1)))
    return found


@pytest.mark.parametrize(
    ("ratio", "least", "most", "without", "whole"),
    [
        (0.3, 95.0, 96.6, 94.5, 97.9),
        (0.6, 94.8, 97.4, 93.8, 99.0),
        (1.2, 94.3, 98.4, 92.5, 99.8),
        (2.4, 93.5, 99.2, 90.3, 100),
    ],
)
def test_coverage_is_as_stated(ratio: float, least: float, most: float, without: float, whole: float) -> None:
    found = coverages(ratio, MARGIN)
    assert (100 * min(found), 100 * max(found)) == pytest.approx((least, most), abs=0.06)
    assert 100 * min(coverages(ratio, 0)) == pytest.approx(without, abs=0.06)
    assert 100 * max(coverages(ratio, 1)) == pytest.approx(whole, abs=0.06)


def model(seed: int, size: int, noise: float = 0.0) -> tuple[LeastSquares, np.ndarray]:
    """Of random rows, with an intercept and `size` predictors; and the scores of the rows."""
    rng = np.random.default_rng(seed)
    rows = np.column_stack([rng.uniform(-1, 1, 200), np.ones(200), rng.uniform(-1, 1, (200, size))])
    places = [(i, j) for i in range(size + 2) for j in range(i, size + 2)]
    changes = np.zeros((len(places), size + 2, size + 2))
    for at, (i, j) in enumerate(places):
        changes[at, i, j] = changes[at, j, i] = noise
    units = in_own_units((3.0, 2.0), [(float(at), at + 1.0) for at in range(size)], intercept=True)
    found = LeastSquares(rows.T @ rows, changes, *units, 2.0, intercept=True)
    residuals = rows[:, 0] - rows[:, 1:] @ found.scaled
    return found, rows[:, 1:] * residuals[:, None]


@given(seed=st.integers(0, 1000), size=st.integers(1, 4))
def test_the_robust_variance_is_that_of_the_scores(seed: int, size: int) -> None:
    found, scores = model(seed, size)
    rows, columns = np.triu_indices(size + 1)
    meat = scores.T @ scores
    robust = found.robust(meat[rows, columns], np.zeros(len(rows)))
    assert robust == pytest.approx(found.bread @ meat @ found.bread.T, rel=1e-9)
    noisy = found.robust(meat[rows, columns], np.full(len(rows), 5.0))
    assert (np.diag(noisy) > np.diag(robust)).all()


@given(seed=st.integers(0, 1000), size=st.integers(1, 4))
def test_a_noisy_variance_is_a_covariance(seed: int, size: int) -> None:
    """Also of a matrix that is only noise, with negative entries where none can be."""
    found, _ = model(seed, size)
    products = np.random.default_rng(seed).normal(0, 5, (size + 1) * (size + 2) // 2)
    covariance = found.robust(products, np.full(len(products), 5.0))
    assert (np.diag(covariance) > 0).all()
    scale = np.sqrt(np.diag(covariance))
    assert np.linalg.eigvalsh(covariance / np.outer(scale, scale)).min() > -1e-9


@given(seed=st.integers(0, 1000), size=st.integers(1, 4))
def test_the_noise_is_that_of_moments_moved_one_by_one(seed: int, size: int) -> None:
    found, _ = model(seed, size, noise=1e-5)
    moved = [
        LeastSquares(
            found.moments + change, found.changes, found.transform, found.shift, 2.0, intercept=True
        ).coefficients
        - found.coefficients
        for change in found.changes
    ]
    assert found.noise == pytest.approx(np.array(moved).T @ np.array(moved), rel=1e-2)


def test_residuals_are_corrected_for_the_noise_of_the_coefficients() -> None:
    """The mean over noises is that of the exact moments, within 5 errors of it; the control is without correction."""
    exact, _ = model(1, 3, noise=3.0)
    rng, corrected, raw = np.random.default_rng(2), [], []
    for _ in range(4000):
        noise = np.einsum("s,sij->ij", rng.standard_normal(len(exact.changes)), exact.changes)
        one = LeastSquares(exact.moments + noise, exact.changes, exact.transform, exact.shift, 2.0, intercept=True)
        weights = np.concatenate([[1.0], -one.scaled])
        corrected.append(one.residuals[0])
        raw.append(weights @ one.moments @ weights)
    plain = LeastSquares(exact.moments, exact.changes * 0, exact.transform, exact.shift, 2.0, intercept=True)
    error = np.std(corrected) / np.sqrt(4000)
    assert abs(np.mean(corrected) - plain.residuals[0]) < 5 * error
    assert np.mean(raw) < plain.residuals[0] - 5 * error


def covered_share(size: int, noise: float, draws: int) -> float:
    """How often the interval of R-squared, which is small, covers that of the rows."""
    rng = np.random.default_rng(size)
    predictors = rng.uniform(-1, 1, (2000, size))
    rows = np.column_stack([predictors[:, 0] / 8 + rng.uniform(-0.8, 0.8, 2000), np.ones(2000), predictors])
    places = [(i, j) for i in range(size + 2) for j in range(i, size + 2)]
    changes = np.zeros((len(places), size + 2, size + 2))
    for at, (i, j) in enumerate(places):
        changes[at, i, j] = changes[at, j, i] = noise
    units = in_own_units((0.0, 1.0), [(0.0, 1.0)] * size, intercept=True)
    exact = LeastSquares(rows.T @ rows, changes, *units, 1.0, intercept=True)
    wanted = float(replace(exact, changes=0 * changes).rsquared(1.96).value[0, 0])
    inside = 0
    for draw in rng.normal(size=(draws, len(places))):
        found = replace(exact, moments=exact.moments + np.tensordot(draw, changes, 1)).rsquared(1.959964)
        inside += int(found.low[0, 0] <= wanted <= found.high[0, 0])
    return inside / draws


@pytest.mark.parametrize(("size", "noise"), [(1, 10), (1, 40), (3, 40), (5, 10)])
def test_the_interval_of_a_small_r_squared_covers(size: int, noise: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """With 95%, fewer than 91% of 600 draws have the probability 2e-5; the control has the variance at the estimate."""
    assert covered_share(size, noise, 600) > 0.91
    if (size, noise) == (1, 40):
        monkeypatch.setattr(LeastSquares, "rsquared", with_variance_at_the_estimate)
        assert covered_share(size, noise, 600) < 0.91


def with_variance_at_the_estimate(one: LeastSquares, z: float) -> IntervalArrays:
    (value, changes), total = one.residuals, one.total
    return _quotient((total[0] - value, total[1] - changes), total, z, (0.0, 1.0), 0.0)
