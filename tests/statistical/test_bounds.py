"""The bounds finder is wrong as rarely as it states, and discloses no more about one unit's outlier than mu allows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import stats

import dpnb
from dpnb.ledger import MEMORY
from dpnb.results.bounds import EVENTS_PER_BIN, BoundsAnswer
from dpnb.results.estimates.noisy import IntervalArrays

pytestmark = pytest.mark.statistical

Counts = NDArray[np.float64]
REPEATS = 3000
ALARM = 1e-7

DECLARED = dpnb.Bounded(-1e6, 1e6)
USUAL = np.concatenate([np.linspace(21, 49, 400), np.linspace(51, 99, 12), [150.0, -3.0]])
"""Most values in one bin, some in the next near the threshold, and two outliers."""


def released(values: Any, *, confidence: float = 0.95, mu: float = 1.0) -> BoundsAnswer:
    session = dpnb.Session(
        pd.DataFrame({"x": values}),
        name="bounds",
        budget=dpnb.Budget.gdp(100),
        schema={"x": DECLARED},
        ledger=MEMORY,
        not_private_test_seed=8,
    )
    return session.frame["x"].find_bounds().release(mu=mu, confidence=confidence, final=True)


def exact_counts(answer: BoundsAnswer, values: Counts) -> Counts:
    edges = np.array(answer.plan.group_by[0].expression.edges)
    return np.bincount(np.searchsorted(edges, values, side="left") - 1, minlength=len(answer.keys)).astype(float)


def repeated(answer: BoundsAnswer, exact: Counts, seed: int, shrink: float = 1.0) -> Iterator[BoundsAnswer]:
    """The answer with other noise; `shrink` makes every limit wrong by a factor, for the control."""
    value, low, _ = (array[:, 0] for array in answer.arrays.unclipped)
    reach, scale = (value - low) * shrink, answer.arrays.noise_scale[:, 0]
    for noise in np.random.default_rng(seed).normal(0, scale, (REPEATS, len(scale))):
        noisy = exact + noise
        arrays = IntervalArrays.of(noisy, noisy - reach, noisy + reach, scale)
        yield replace(answer, arrays=arrays.clipped(0, np.inf, value=False))


def wrong(answer: BoundsAnswer, exact: Counts) -> bool:
    """Whether an empty bin is above the noise, or more rows lie outside than the answer states."""
    above = answer.arrays.low[:, 0] > 0
    if not above.any():
        return False
    first, last = np.flatnonzero(above)[[0, -1]]
    outside = exact[:first].sum() + exact[last + 1 :].sum()
    return bool((above & (exact == 0)).any() or outside > answer.rows_outside)


def test_limits_are_those_of_the_union_bound_over_all_bins() -> None:
    answer = released(USUAL)
    alpha = 0.05 / (EVENTS_PER_BIN * len(answer.keys))
    assert answer.threshold == pytest.approx(stats.norm.isf(alpha / 2), rel=1e-3)


@pytest.mark.parametrize(("confidence", "values"), [(0.95, USUAL), (0.5, USUAL), (0.5, USUAL[:0])])
def test_bounds_are_wrong_no_more_often_than_stated(confidence: float, values: Counts) -> None:
    """A correct program fails this with probability at most 1e-7 for each case."""
    answer = released(values, confidence=confidence)
    exact = exact_counts(answer, values)
    failures = sum(wrong(one, exact) for one in repeated(answer, exact, 5))
    assert failures <= stats.binom.isf(ALARM, REPEATS, 1 - confidence)


def test_limits_of_single_bins_would_be_wrong_too_often() -> None:
    """The control: without the union bound the same test fails."""
    answer = released(USUAL)
    exact = exact_counts(answer, USUAL)
    shrink = stats.norm.isf(0.025) / answer.threshold
    assert sum(wrong(one, exact) for one in repeated(answer, exact, 5, shrink)) > stats.binom.isf(ALARM, REPEATS, 0.05)


# --- an attack: does the range show whether one person has an outlier? --------------------------------------------

OUTLIER = 9e5
MU = 1.0


def reaches(answer: BoundsAnswer) -> bool:
    return answer.bounds is not None and answer.bounds.high >= OUTLIER


def of_noisy_counts(answers: Iterator[BoundsAnswer], exact: Counts) -> int:
    del exact
    return sum(map(reaches, answers))


def of_exact_counts(answers: Iterator[BoundsAnswer], exact: Counts) -> int:
    """A broken finder: it shows every bin that has a row."""
    return sum(bool(exact[-1] > 0) for _ in answers)


@pytest.mark.parametrize(("finder", "broken"), [(of_noisy_counts, False), (of_exact_counts, True)])
def test_an_outlier_of_one_unit_is_told_no_better_than_mu(
    finder: Callable[[Iterator[BoundsAnswer], Counts], int], broken: bool
) -> None:
    """Gaussian DP bounds the power of every test of one unit by Phi(Phi^-1(level) + mu), Dong et al. 2022, sec. 2.2.

    A low confidence makes the range reach far, so that the test has power.  A correct program fails this with
    probability at most 2e-7.
    """
    answer = released(USUAL, confidence=1e-6, mu=MU)
    without = exact_counts(answer, USUAL)
    with_outlier = exact_counts(answer, np.append(USUAL, OUTLIER))
    assert np.abs(with_outlier - without).sum() == 1
    hits = [finder(repeated(answer, exact, seed), exact) for seed, exact in ((1, without), (2, with_outlier))]
    level = stats.beta.isf(ALARM, hits[0] + 1, REPEATS - hits[0])  # Clopper-Pearson
    power = stats.beta.ppf(ALARM, hits[1], REPEATS - hits[1] + 1) if hits[1] else 0.0
    assert (power > stats.norm.cdf(stats.norm.ppf(level) + MU)) == broken
