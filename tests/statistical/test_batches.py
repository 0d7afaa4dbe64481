"""Intervals of batches: exact for one batch, and valid when the analyst refines as the answers suggest."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dpnb
from dpnb._compile.marginals import Marginals
from dpnb._core.pricing.query_state import plan_of
from dpnb.accounting.intervals import confidence_sequence_radius, fixed_radius
from dpnb.results.observations import FIRST_OBSERVATION_ALPHA, first_tau

pytestmark = pytest.mark.statistical

ALPHA = Fraction(5, 100)
WORKLOAD = ((), (0,), (1,), (0, 1), (1, 2))
SIZES = (3, 4, 2)


def _noise(repetitions: int, seed: int) -> tuple[Marginals, np.ndarray, dict[tuple[int, ...], np.ndarray]]:
    """The measurements of a batch of which every exact sum is 0, each repetition as a slot."""
    design = Marginals(SIZES, WORKLOAD)
    precisions = design.optimal([1.0, 2.0, 0.5, 1.0, 1.5])
    rng = np.random.default_rng(seed)
    measured = {
        table: rng.normal(0, precision**-0.5, (*(SIZES[level] for level in table), repetitions))
        for table, precision in zip(design.subsets, precisions, strict=True)
        if precision
    }
    return design, precisions, measured


def _miss_counts(precisions: np.ndarray, *, weights: np.ndarray | None = None) -> list[int]:
    """For the first cell of each requested table, how often its interval of 95% misses among 20,000 batches."""
    design, own, measured = _noise(20_000, 11)
    scales = np.sqrt(design.variances(precisions))
    counts = []
    for table in WORKLOAD:
        values = design.estimate(table, measured, own if weights is None else weights)
        first = values.reshape(-1, values.shape[-1])[0]
        radius = fixed_radius([float(scales[design.subsets.index(table)])], alpha=ALPHA)
        counts.append(int((np.abs(first) > radius).sum()))
    return counts


def _usual(count: int) -> bool:
    """Whether a number of misses is usual for 5% of 20,000; a correct program fails with probability 1e-8."""
    low, high = stats.binom.interval(1 - 1e-8, 20_000, float(ALPHA))
    return bool(low <= count <= high)


def test_intervals_of_a_batch_miss_with_exactly_the_stated_probability() -> None:
    """Five tables: a correct program fails with probability 5e-8."""
    _, precisions, _ = _noise(1, 0)
    assert all(map(_usual, _miss_counts(precisions)))


def test_check_detects_other_weights_and_other_scales() -> None:
    _, precisions, _ = _noise(1, 0)
    equal = np.where(precisions > 0, 1.0, 0.0)
    assert not all(map(_usual, _miss_counts(precisions, weights=equal)))
    assert not all(map(_usual, _miss_counts(precisions * 1.2)))


def _share_of_missed(first_intervals: str, repetitions: int = 40_000) -> float:
    """How often an analyst who refines until an interval misses gets one that does.

    The batch's estimate has the scale 0.8, that of its own table 1; a best linear unbiased estimate has a covariance
    with each of its measurements of its own variance.
    """
    rng = np.random.default_rng(4)
    batch_scale, own_scale = 0.8, 1.0
    batch = rng.normal(0, batch_scale, repetitions)
    own = batch + rng.normal(0, (own_scale**2 - batch_scale**2) ** 0.5, repetitions)
    first_alpha = FIRST_OBSERVATION_ALPHA * ALPHA
    missed = np.abs(batch) > fixed_radius([batch_scale], alpha=first_alpha)
    if first_intervals == "both":
        missed |= np.abs(own) > fixed_radius([own_scale], alpha=first_alpha)
    tau = first_tau(batch_scale, ALPHA)
    scales, total, information = [batch_scale], batch / batch_scale**2, batch_scale**-2
    for step in range(40):
        scale = 1.5 if step % 2 else 0.6
        total = total + rng.normal(0, 1 / scale, repetitions)
        scales, information = [*scales, scale], information + scale**-2
        radius = confidence_sequence_radius(scales, tau=tau, alpha=(1 - FIRST_OBSERVATION_ALPHA) * ALPHA)
        missed |= np.abs(total / information) > radius
    return float(missed.mean())


def test_intervals_hold_when_answers_of_a_batch_are_refined_until_they_miss() -> None:
    """At most 5% may miss; a correct program exceeds 5.6% of 40,000 with probability 2e-8."""
    assert _share_of_missed("batch") <= 0.056


def test_check_detects_a_second_first_interval_for_the_table_itself() -> None:
    """If the refined answer also used the interval of its own table alone, two intervals would share one alpha."""
    assert _share_of_missed("both") > 0.056


@cache
def _standardised_errors() -> tuple[np.ndarray, np.ndarray]:
    """Errors of one number of each answer in 250 sessions, over their scales, and over those of the tables themselves.

    Both of shape (sessions, answers).
    """
    rng = np.random.default_rng(2)
    data = pd.DataFrame({"a": rng.choice(["x", "y", "z"], 400), "b": rng.choice(["u", "v"], 400)})
    expected = [
        float((data["a"] == "x").sum()),
        float((data["b"] == "u").sum()),
        float(((data["a"] == "x") & (data["b"] == "u")).sum()),
        400.0,
    ]
    stated, own = [], []
    for seed in range(250):
        session = dpnb.Session(
            data,
            name="coverage",
            ledger=":memory:",
            budget=dpnb.Budget.gdp(1),
            schema={"a": dpnb.Categories(["x", "y", "z"]), "b": dpnb.Categories(["u", "v"])},
            not_private_test_seed=seed,
        )
        df = session.frame
        queries = [df.groupby("a").size(), df.groupby("b").size(), df.groupby(["a", "b"]).size(), df.count()]
        answers = session.plan(queries).release(mu=0.1)
        sigma = {plan_of(row).to_json(): row.sigma for row in session.ledger.charges()}
        errors = [one.arrays.value[0, 0] - exact for one, exact in zip(answers, expected, strict=True)]
        stated.append([error / one.arrays.noise_scale[0, 0] for error, one in zip(errors, answers, strict=True)])
        own.append([error / sigma[one.plan.to_json()] for error, one in zip(errors, answers, strict=True)])
    return np.array(stated), np.array(own)


def _are_standard(errors: np.ndarray) -> bool:
    """Whether the sums of squares are usual; of a correct program one is not with probability 1e-7."""
    low, high = stats.chi2.interval(1 - 2.5e-8, len(errors))
    squares = (errors**2).sum(axis=0)
    return bool(((low <= squares) & (squares <= high)).all())


def test_answers_of_sessions_have_the_stated_noise() -> None:
    assert _are_standard(_standardised_errors()[0])


def test_check_detects_the_noise_of_the_table_itself() -> None:
    assert not _are_standard(_standardised_errors()[1])
