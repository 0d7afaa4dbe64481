"""Released noise is N(0, sigma^2): its shape, its tails to 6 sigma, its independence.

Seeds are fixed, so a test passes always or never.  Each threshold is set so that a fresh seed would raise a false alarm
with probability below ALARM; with some 60 checks that is less than 1e-4 for the whole file.  Beside each kind of check
stands a control: noise that is slightly wrong, which must be caught.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from dpnb.mechanisms import gaussian
from dpnb.mechanisms.gaussian import measure
from dpnb.mechanisms.randomness import NotPrivateSeededSource

pytestmark = pytest.mark.statistical

ALARM = 1e-6
# The Anderson-Darling statistic of a fully specified distribution exceeds a with probability below 2 exp(-a) for large
# a (its largest weight is 1/2); 16 leaves room for the approximation.
ANDERSON_DARLING_LIMIT = 16.0
CELLS = 400_000

Floats = NDArray[np.float64]


class TailWords:
    """Words whose digits are uniform below `limit`: draws conditioned to lie beyond a quantile, on both sides.

    Only the first call is conditioned; the further digits that the fall-back asks for are plain random words.
    """

    private = False

    def __init__(self, seed: int, limit: int) -> None:
        self._generator = np.random.default_rng(seed)
        self._limit: int | None = limit

    def words(self, n: int) -> NDArray[np.uint64]:
        plain = self._generator.integers(0, 2**64 - 1, size=n, dtype=np.uint64, endpoint=True)
        if self._limit is None:
            return plain
        digits = self._generator.integers(0, self._limit, size=n, dtype=np.uint64)
        self._limit = None
        return digits | (plain & np.uint64(1 << 63))


@lru_cache(maxsize=4)
def noise(seed: int, n: int = CELLS, *, sigma: float = 2.0**20, total: int = 0) -> Floats:
    """Draw n standardised errors.  The rounding adds at most 2^-21 sigma: invisible to every check here."""
    measured = measure([total] * n, sigma=sigma, source=NotPrivateSeededSource(seed))
    errors = np.array(measured.values, dtype=object) * (2**measured.exponent if measured.exponent >= 0 else 1)
    below = 1 if measured.exponent >= 0 else 2**-measured.exponent
    found = np.array((errors - total * below) / below, dtype=np.float64) / sigma
    found.flags.writeable = False
    return found


def anderson_darling(uniforms: Floats) -> float:
    """Distance from the uniform distribution, weighted towards both ends."""
    u = np.sort(uniforms)
    n = len(u)
    odd = 2 * np.arange(1, n + 1) - 1
    return float(-n - np.mean(odd * (np.log(u) + np.log1p(-u[::-1]))))


def is_uneven(uniforms: Floats) -> bool:
    """Kolmogorov-Smirnov; at these numbers its limit distribution, gives p-values 4% too large at most, and quickly."""
    return bool(stats.kstest(uniforms, "uniform", method="asymp").pvalue < ALARM)


def looks_normal(z: Floats) -> bool:
    """Kolmogorov-Smirnov and Anderson-Darling, each with its own false alarms below ALARM."""
    uniforms = np.asarray(stats.norm.cdf(z))
    return not is_uneven(uniforms) and anderson_darling(uniforms) < ANDERSON_DARLING_LIMIT


@pytest.mark.parametrize(
    ("sigma", "total"),
    [(2.0**20, 0), (1.0, 0), (1.9999, -(10**6)), (0.03, 2**70 + 1), (7e8, 123_456_789), (1e25, -(10**24)), (1e-9, 5)],
)
def test_noise_has_the_normal_distribution(sigma: float, total: int) -> None:
    assert looks_normal(noise(1, sigma=sigma, total=total))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda z: z * 1.02,
        lambda z: z + 0.01,
        lambda z: np.clip(z, -2.6, 2.6),
        lambda z: np.round(z * 50) / 50,
        lambda z: np.where(z > 0, z * 1.02, z),
    ],
)
def test_control_slightly_wrong_noise_is_caught(spoil: Callable[[Floats], Floats]) -> None:
    assert not looks_normal(spoil(noise(1)))


def test_fall_back_alone_has_the_normal_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gaussian, "_INVERSE_MARGIN", 1.0)  # no draw is left to the quick path
    assert looks_normal(noise(2, 15_000))


def test_mean_and_variance_are_those_of_the_scale() -> None:
    z = noise(3)
    limit = stats.norm.isf(ALARM / 2)
    assert abs(z.mean()) < limit / math.sqrt(CELLS)
    assert abs(np.mean(z * z) - 1) < limit * math.sqrt(2 / CELLS)
    assert abs(np.mean(z**3)) < limit * math.sqrt(15 / CELLS)
    assert abs(np.mean(z**4) - 3) < limit * math.sqrt(96 / CELLS)


def test_noise_is_symmetric() -> None:
    z = noise(4)
    assert stats.binomtest(int(np.sum(z > 0)), CELLS).pvalue > ALARM
    assert stats.ks_2samp(z[z > 0], -z[z < 0]).pvalue > ALARM


# --- tails, by importance: every draw is in the tail, so what lies beyond 6 sigma is seen a thousand times ------------


@lru_cache(maxsize=4)
def tail(seed: int, start: float, n: int = 200_000) -> tuple[Floats, float]:
    """Draw |Z| given |Z| > start, with the exact probability that a draw lies beyond start on a given side."""
    limit = round(stats.norm.sf(start) * 2**64)
    measured = measure([0] * n, sigma=2.0**20, source=TailWords(seed, limit))
    found = np.abs(measured.to_floats()) / 2.0**20
    found.flags.writeable = False
    return found, limit / 2**64


@pytest.mark.parametrize(("start", "beyond"), [(3.0, 4.0), (4.0, 5.0), (5.0, 5.5), (5.0, 6.0), (5.5, 6.0), (6.0, 6.5)])
def test_tail_probabilities_are_right_to_six_sigma_and_beyond(start: float, beyond: float) -> None:
    z, weight = tail(5, start)
    expected = stats.norm.sf(beyond) / weight
    seen = int(np.sum(z > beyond))
    assert seen > 500
    assert stats.binomtest(seen, len(z), expected).pvalue > ALARM


@pytest.mark.parametrize(
    ("start", "n"),
    [(2.0, 200_000), (4.0, 200_000), (6.0, 200_000), (7.5, 4000), (8.9, 4000)],  # from 7.5 on, all by the fall-back
)
def test_tail_has_the_right_shape(start: float, n: int) -> None:
    z, weight = tail(6, start, n)
    uniforms = np.asarray(stats.norm.sf(z)) / weight
    assert z.min() > start - 1e-5
    assert not is_uneven(np.minimum(uniforms, 1.0))


def test_control_slightly_heavy_tail_is_caught() -> None:
    z, weight = tail(6, 6.0)
    uniforms = np.asarray(stats.norm.sf(6.0 + (z - 6.0) * 1.03)) / weight
    assert is_uneven(uniforms)


def test_both_tails_are_equally_likely() -> None:
    measured = measure([0] * 100_000, sigma=2.0**20, source=TailWords(7, round(stats.norm.sf(6.0) * 2**64)))
    assert stats.binomtest(sum(value > 0 for value in measured.values), 100_000).pvalue > ALARM


@pytest.mark.parametrize("beyond", [1.0, 2.0, 3.0, 4.0])
def test_plain_draws_reach_the_tails_as_often_as_they_should(beyond: float) -> None:
    z = noise(8)
    for side in (1, -1):
        assert stats.binomtest(int(np.sum(side * z > beyond)), CELLS, stats.norm.sf(beyond)).pvalue > ALARM


# --- independence -----------------------------------------------------------------------------------------------------


def correlation_alarm(first: Floats, second: Floats) -> bool:
    """Whether the values or their squares go together more than chance lets them."""
    limit = stats.norm.isf(ALARM / 4) / math.sqrt(len(first))
    plain = np.mean(first * second)
    squared = np.mean((first**2 - 1) * (second**2 - 1)) / 2
    return bool(abs(plain) > limit or abs(squared) > 1.5 * limit)  # the product of squares has heavier tails


@pytest.mark.parametrize("lag", [1, 2, 3, 64, 1024, gaussian._CHUNK])
def test_cells_are_independent(lag: int) -> None:
    z = noise(9)
    assert not correlation_alarm(z[:-lag], z[lag:])


def test_calls_are_independent() -> None:
    source = NotPrivateSeededSource(10)
    first = measure([0] * CELLS, sigma=2.0**20, source=source).to_floats() / 2.0**20
    second = measure([0] * CELLS, sigma=2.0**20, source=source).to_floats() / 2.0**20
    assert not correlation_alarm(first, second)


def test_neighbouring_cells_fill_the_plane_evenly() -> None:
    uniforms = np.asarray(stats.norm.cdf(noise(11))).reshape(-1, 2)
    counts, _, _ = np.histogram2d(uniforms[:, 0], uniforms[:, 1], bins=20, range=[[0, 1], [0, 1]])
    assert stats.chisquare(counts.ravel()).pvalue > ALARM


def test_control_shared_noise_is_caught() -> None:
    z = noise(9)
    assert correlation_alarm(z[:-1], np.sqrt(0.9999) * z[1:] + 0.01 * z[:-1])
    assert correlation_alarm(z[:-1], np.sign(z[1:]) * np.abs(z[:-1]))


# --- low bits ---------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def released(total: int) -> NDArray[Any]:
    return np.array(measure([total] * 100_000, sigma=2.0**30, source=NotPrivateSeededSource(12)).values)


@pytest.mark.parametrize("modulus", [2, 16, 1000])
@pytest.mark.parametrize("total", [0, 1, 511, 512, 513, 2**40 + 777])
def test_low_digits_of_a_release_are_even_whatever_the_sum(total: int, modulus: int) -> None:
    """On a grid of 2^-20 sigma the residues of the rounded Gaussian are uniform to within 1e-100."""
    residues = np.bincount(released(total) % modulus, minlength=modulus)
    assert stats.chisquare(residues).pvalue > ALARM
