"""The population intervals of a table one and of weighted means cover, and those of the noise do not.

Each sample is a pair of groups, or a group, of one table, so that one release answers for all of them.  With
``tests/bench/studies.py`` these intervals cover 95 to 98% here.  If they covered 94%, a check would fail with a
probability below 1e-6 (a normal approximation of 5 standard errors).
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb.ledger import MEMORY
from dpnb.results.answer import Answer
from dpnb.results.tables.operators import difference

pytestmark = pytest.mark.statistical
PAIRS, ROWS, MU = 3000, 150, 0.6
NOMINAL, ERRORS = 0.94, 5.0


def drawn() -> dpnb.Frame:
    """Groups of rows from one population, in which the weighted means are those of all rows."""
    chance = np.random.default_rng(49)
    sizes = chance.poisson(ROWS, 2 * PAIRS)
    rows = sizes.sum()
    table = {
        "s": np.repeat(np.arange(2 * PAIRS), sizes),
        "x": chance.normal(60, 10, rows).clip(30, 90),
        "stage": chance.choice(["a", "b", "c"], rows, p=[0.6, 0.3, 0.1]),
        "w": chance.choice([0.5, 1.0, 2.0], rows),
    }
    schema = {
        "s": dpnb.Categories(list(range(2 * PAIRS))),
        "x": dpnb.Bounded(30, 90),
        "stage": dpnb.Categories(["a", "b", "c"]),
        "w": dpnb.Bounded(0, 2),
    }
    return dpnb.Session(
        pd.DataFrame(table), name="samples", budget=dpnb.Budget.gdp(100), schema=schema, ledger=MEMORY,
        not_private_test_seed=49,
    ).frame  # fmt: skip


def covered(answer: Answer, *, population: bool) -> float:
    """How often the interval of the difference of two groups contains 0."""
    arrays = answer.population_arrays if population else answer.arrays
    columns = [at for at, name in enumerate(answer.outputs[1]) if name.split(": ")[-1] in ("n", "mean", "a", "b", "c")]
    one, other = (arrays.take(range(first, 2 * PAIRS, 2), columns) for first in (1, 0))
    found = difference(one, other)
    return float(((found.low <= 0) & (found.high >= 0)).mean())


def test_differences_of_groups_are_covered() -> None:
    answer = drawn().table_one(by="s", columns=["x", "stage"]).release(mu=MU)
    # Of five numbers of a pair, whose errors are dependent.
    least = NOMINAL - ERRORS * np.sqrt(NOMINAL * (1 - NOMINAL) / PAIRS)
    assert covered(answer, population=True) > least
    assert covered(answer, population=False) < least  # the control


def test_weighted_means_are_covered() -> None:
    answer = drawn().groupby("s")["x"].mean(weights="w", population=True).release(mu=3 * MU)
    least = NOMINAL - ERRORS * np.sqrt(NOMINAL * (1 - NOMINAL) / (2 * PAIRS))
    table = answer.to_pandas()
    assert table["population_low"].le(60).mul(table["population_high"].ge(60)).mean() > least
    assert table["low"].le(60).mul(table["high"].ge(60)).mean() < least  # the control
