"""Population intervals tell nothing of the table beyond the noisy numbers: neither widths nor prices nor what is asked.

Whatever the rows are, the noisy sums are made the same; then everything that an analyst can see must be the same: both
intervals, types, availability, previews, prices, refusals, verdicts, and the ledger with the constants of the adaptive
query.  The controls compute the fraction that was drawn from the number of rows, and centre the squares at the exact
mean, and the same comparison must see both.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb._core.accountant.accountant import Accountant
from dpnb._core.execution import releases
from dpnb._core.pricing.influence import _Influence
from dpnb._plan.expressions.nodes import Literal
from dpnb.errors import DpnbError
from dpnb.ledger import MEMORY
from dpnb.mechanisms.gaussian import measure
from pairwise import product

pytestmark = pytest.mark.slow

SCHEMA = {"x": dpnb.Bounded(0, 10), "y": dpnb.Bounded(0, 4), "g": dpnb.Categories(["a", "b"])}
UNITS: dict[str, dict[str, Any]] = {
    "rows": {},
    "persons": {"privacy_unit": "u", "max_rows_per_unit": 3},
    "persons in one group": {"privacy_unit": "u", "max_rows_per_unit": 3, "max_groups_per_unit": 1},
    "a known fraction": {"privacy_unit": "u", "max_rows_per_unit": 3, "sampled": 0.1, "public_size": 500},
}
USUAL = pd.DataFrame(
    {"u": np.arange(300) // 3, "x": np.arange(300) % 10.0, "y": np.arange(300) % 4.0, "g": ["a", "b", "b"] * 100}
)
TABLES = {
    "one person less": USUAL[USUAL["u"] != 7],
    "a person with extreme values": USUAL.assign(x=USUAL["x"].where(USUAL["u"] != 7, 1e300)),
    "a person without values": USUAL.assign(x=USUAL["x"].where(USUAL["u"] != 7)),
    "a person with many rows": pd.concat([USUAL, USUAL[USUAL["u"] == 7].sample(50, replace=True, random_state=1)]),
    "constant": USUAL.assign(x=5.0, y=1.0, g="a"),
    "no rows": USUAL[:0],
}
QUERIES: dict[str, Callable[[Any], Any]] = {
    "count": lambda df: df.groupby("g").size(),
    "share": lambda df: (df["x"] > 5).mean(),
    "shares": lambda df: df["g"].value_counts(normalize=True),
    "mean": lambda df: df.groupby("g")["x"].mean(),
    "mean, measured": lambda df: df["x"].mean(population=True),
    "sum": lambda df: df["x"].sum(population=True),
    "ratio": lambda df: df["x"].ratio(df["y"]),
    "median": lambda df: df["x"].median(),
    "standard error": lambda df: df["x"].sem(),
    "correlation": lambda df: df["x"].corr(df["y"]),
    "several": lambda df: df.groupby("g").agg(n="count", v=("x", "var"), q=("y", "median")),
}


def public_noise(sums: Any, *, sigma: float, source: Any) -> Any:
    """The measurement of numbers that are the same for every table."""
    length = len(sums)
    same = [round((index % 7 - 2) * 20 * sigma) for index in range(length)]
    return measure(same, sigma=sigma, source=source)


PRIVATE: list[pd.DataFrame] = []
"""The table that is asked last, for the controls."""


def seen(table: pd.DataFrame, unit: str) -> list[str]:
    """All that an analyst sees, but the time."""
    options = UNITS[unit]
    PRIVATE[:] = [table]
    session = dpnb.Session(
        table if "privacy_unit" in options else table.drop(columns="u"),
        name="attacked",
        budget=dpnb.Budget.gdp(100),
        schema=SCHEMA,
        ledger=MEMORY,
        not_private_test_seed=1,
        **options,
    )
    shown: list[str] = []
    for ask in QUERIES.values():
        query = ask(session.frame)
        answer = query.release(mu=1)
        try:
            answer = answer.population(mu=0.5)
        except DpnbError as error:
            shown.append(str(error))
        refined = answer.refine(mu=1.5)
        for one in (answer, refined):
            table = one.to_pandas()
            shown += [
                repr(one),
                one._repr_html_(),
                table.to_json(double_precision=15),
                str(table.dtypes),
                str(one.cost),
            ]
            shown.append(str(one.has_population_intervals))
        shown.append(repr(refined > 3) + str((refined > 3).outcomes))
        shown.append(str(query.preview(mu=2)))
    shown += [str((charge.request, charge.measurement, charge.loss)) for charge in session.ledger.charges()]
    return [re.sub(r"\d{4}-\d\d-\d\d[T ][\d:.]+(\+00:00)?", "", text) for text in shown]


@cache
def seen_usually(unit: str) -> list[str]:
    """What is seen of the usual table, for all tests that change nothing of the package but the noise."""
    return seen(USUAL, unit)


@pytest.fixture(autouse=True)
def _same_noisy_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(releases, "measure", public_noise)


@pytest.mark.parametrize(("unit", "table"), product(UNITS, TABLES, together=1))
def test_all_that_is_seen_follows_from_the_noisy_sums(unit: str, table: str) -> None:
    assert seen(TABLES[table], unit) == seen_usually(unit)


def test_a_fraction_that_is_computed_from_the_rows_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the size of the population public, it would tell the number of rows."""
    monkeypatch.setattr(Accountant, "sampled", property(lambda _: Fraction(len(PRIVATE[0]), 1000)))
    assert seen(TABLES["one person less"], "rows") != seen(USUAL, "rows")


def test_squares_about_the_exact_mean_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Influence, "_constant", lambda *_: Literal(float(PRIVATE[0]["x"].mean())))
    assert seen(TABLES["one person less"], "rows") != seen(USUAL, "rows")
