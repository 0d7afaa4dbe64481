"""Random arms of a real experiment seldom differ in the population, although they differ in its table."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import statsmodels

import dpnb
from dpnb.ledger import MEMORY
from statistical.population_samples import Array, covers
from statistical.quick import prepared_once

pytestmark = pytest.mark.statistical

MUS = (0.15, 0.4, 1.0)
DRAWS, ALLOWED, AT_ONCE = 240, 32, 60
"""Random arms, how many may differ, and how many are drawn in one table.

8 of 60 are enough to tell: at the 4% at which a first release may err, more do so in one of six cells with probability
5e-9, and at 5% with 1e-6.  If 20% of a cell do, they are caught with probability 99.5%.
"""


@pytest.fixture(autouse=True)
def _prepared_once() -> Iterator[None]:
    with prepared_once():
        yield


@cache
def verdicts() -> dict[float, dict[str, Array]]:
    """Whether two random arms of persons differ in the RAND experiment, in the population and in this table; by mu.

    Each draw of the arms has the persons of the experiment as units of its own, and is a group of one table.
    """
    data = Path(statsmodels.__file__).parent / "datasets/randhie/src/randhie.csv"
    experiment = pd.read_csv(data, usecols=["zper", "mdvis"])
    persons, index = np.unique(experiment["zper"], return_inverse=True)
    chance = np.random.default_rng(60)
    found: dict[float, dict[str, Array]] = {mu: {} for mu in MUS}
    for number in range(DRAWS // AT_ONCE):
        draw, row = np.indices((AT_ONCE, len(index))).reshape(2, -1)
        arms = chance.integers(0, 2, (AT_ONCE, len(persons)))[draw, index[row]]
        unit, visits = draw * len(persons) + index[row], experiment["mdvis"].to_numpy()[row]
        table = pd.DataFrame({"unit": unit, "draw": draw, "arm": arms, "mdvis": visits})
        for mu in MUS:
            session = dpnb.Session(
                table,
                name="arms",
                privacy_unit="unit",
                max_rows_per_unit=5,
                max_groups_per_unit=1,
                budget=dpnb.Budget.gdp(100),
                schema={
                    "draw": dpnb.Categories(list(range(AT_ONCE))),
                    "arm": dpnb.Categories([0, 1]),
                    "mdvis": dpnb.Bounded(0, 10),
                },
                ledger=MEMORY,
                not_private_test_seed=60 + number,
            )
            df = session.frame.assign(visited=lambda df: df["mdvis"] > 0)
            for column in ("mdvis", "visited"):
                means = df.groupby(["draw", "arm"])[column].mean(population=True).release(mu=mu).unstack()
                limits = (means[0] - means[1]).to_pandas()
                for scope, kind in (("", "population_"), (" here", "")):
                    differ = ~covers(limits[f"{kind}low"].to_numpy(), limits[f"{kind}high"].to_numpy(), 0)
                    found[mu][column + scope] = np.append(found[mu].get(column + scope, []), differ)
    return found


@pytest.mark.parametrize("mu", MUS)
def test_random_arms_seldom_differ_in_the_population(mu: float) -> None:
    found = {name: draws.sum() for name, draws in verdicts()[mu].items() if "here" not in name}
    assert all(len(draws) == DRAWS for draws in verdicts()[mu].values())
    assert max(found.values()) <= ALLOWED, found


def test_random_arms_that_differ_in_the_table_are_caught() -> None:
    """The control: by the noise intervals most random arms differ, since in this table they do."""
    found = verdicts()[1.0]
    assert min(found["mdvis here"].sum(), found["visited here"].sum()) > 2 * ALLOWED
