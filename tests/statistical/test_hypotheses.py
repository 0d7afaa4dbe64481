"""Tests of released answers reject true hypotheses in 5% of samples, where tests that ignore the noise do not.

Each kind has its own 300 samples of 300 units, so all 2,100 p-values are independent.  Were the level 6%, more than 9%
of them would be rejected with probability below 1e-6; were it 3%, fewer than 1.4%.  `tests/bench/hypotheses.py` has the
level of every kind for 300 to 30,000 units and mu from 0.05 to 1, and the power.  The controls: scipy's tests of the
same released numbers, taken as exact, and tests that leave out the sampling.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpnb.results.testing import independence
from statistical.tested_samples import Array, TestedSamples

pytestmark = pytest.mark.statistical
KINDS = ("two means", "two shares", "one mean", "four shares", "four counts", "trend of shares", "trend of means")
MU = 0.2


def rejected(pvalues: Array) -> float:
    """The share of rejections; nothing is unknown."""
    assert np.isfinite(pvalues).all()
    return float((pvalues <= 0.05).mean())


def test_true_hypotheses_are_rejected_in_5_percent_of_samples() -> None:
    found = [TestedSamples(300, 300, seed).pvalues(kind, MU) for seed, kind in enumerate(KINDS)]
    assert 0.014 < rejected(np.concatenate(found)) < 0.09


def test_ignoring_the_noise_or_the_sampling_rejects_too_often() -> None:
    samples = TestedSamples(300, 300, 0)
    assert rejected(samples.naive("two means", MU)) > 0.2
    answer = samples.frame(MU).groupby(["s", "arm"])["b"].mean().release(mu=MU)
    noise_only = replace(answer, population_arrays=answer.arrays, tested_arrays=None)
    found = [noise_only.test(groups=[(s, "new"), (s, "old")]).pvalue for s in range(samples.count)]
    assert rejected(np.array(found)) > 0.1


def tables(chance: np.random.Generator, many: int) -> Any:
    """Tables of counts of independent categories, with noise of standard deviation 1/MU."""
    shares = np.outer([0.2, 0.3, 0.5], [0.5, 0.3, 0.2])
    return chance.poisson(600 * shares, (many, 3, 3)) + chance.normal(0, 1 / MU, (many, 3, 3))


def test_independence_is_rejected_in_5_percent_of_tables_of_independent_categories() -> None:
    noise = np.full((3, 3), MU**-2)
    counts = tables(np.random.default_rng(1), 1000)
    assert 0.008 < rejected(np.array([independence(one, noise, noise, 1.0).pvalue for one in counts])) < 0.1
    naive = [stats.chi2_contingency(np.maximum(one, 0.5), correction=False).pvalue for one in counts]
    assert rejected(np.array(naive)) > 0.15


def test_a_released_table_is_tested_as_the_simulated_ones_are() -> None:
    table = TestedSamples(600, 2, 1).crosstab(0, MU)
    counts, scales = table.unstack().estimate.to_numpy(), table.unstack().noise_scale.to_numpy()
    found = independence(counts, scales**2, scales, 1.0)
    assert table.test().statistic == pytest.approx(found.value, rel=1e-6)
