"""Sums of joint questions and of expressions near the largest and smallest sizes stay within the claim.

The published attacks on sums of doubles, machine integers and NaN (Casacuberta et al. 2022) are in `attacks/`:
`test_order_of_rows.py`, `test_rounding.py`, `test_integer_overflow.py`, `test_float_overflow.py` and `test_nan.py`.
Nothing here is drawn.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import dpnb
from dpnb._compile import linear_query
from dpnb._plan.expressions.nodes import Column
from dpnb._plan.measurements import Count, CountUnits, JointAggregation, Sum, WeightedAggregation
from dpnb._plan.plan import Plan
from dpnb._plan.privacy_unit import ContributionBounds, PrivacyUnit
from dpnb.schema import Bounded, Schema
from statistical.attacks import change

Floats = NDArray[np.float64]


def session(table: pd.DataFrame, schema: dict[str, Any], **more: Any) -> dpnb.Session:
    return dpnb.Session(
        table,
        name="attacked",
        schema=schema,
        budget=dpnb.Budget.gdp(100),
        ledger=":memory:",
        not_private_test_seed=5,
        **more,
    )


def heavy() -> Plan:
    """Weights so unequal that each row of the count stands for about 2**56 integer steps."""
    spread = 2.0**20
    return Plan(
        JointAggregation(
            (
                WeightedAggregation(Count(), spread),
                WeightedAggregation(CountUnits(), 3.0),
                WeightedAggregation(Sum(Column("x")), 1 / spread),
            )
        )
    )


SCHEMA: Schema = {"x": Bounded(0, 1.1)}
BY_NORM = PrivacyUnit("u", None, ContributionBounds(max_norm=2.0))


def heaviest(unit: PrivacyUnit) -> int:
    """Integer steps of one row of the count."""
    return max(feature.weight for feature in linear_query(heavy(), SCHEMA, unit).features)


def people(count: int) -> pd.DataFrame:
    return pd.DataFrame({"u": range(count), "x": 1.0})


@pytest.mark.parametrize(
    "unit",
    [PrivacyUnit("u", 3), BY_NORM, PrivacyUnit("u", 3, ContributionBounds(max_norm=2.0))],
    ids=["rows", "norm", "rows and norm"],
)
def test_unequal_shares_of_a_joint_question_do_not_wrap_round(unit: PrivacyUnit) -> None:
    """64 bits end between one number of people and the next."""
    last = 2**63 // heaviest(unit)
    assert 10 < last < 1000
    assert max(change(people(n + 1), people(n), SCHEMA, heavy(), unit) for n in range(last - 2, last + 3)) <= 1


@pytest.mark.parametrize("count", [1000, 1024, 1500])
def test_one_person_with_very_many_rows_is_scaled_down_and_does_not_wrap_round(count: int) -> None:
    """Such a person needs more than 64 bits, before being scaled down and after."""
    unit = PrivacyUnit("u", None, ContributionBounds(max_norm=500.0))
    rows = pd.concat([people(3), pd.DataFrame({"u": [99] * count, "x": 1.1})], ignore_index=True)
    assert 0.99 < change(rows, people(3), SCHEMA, heavy(), unit) <= 1


def test_control_the_same_shares_added_up_in_64_bits_wrap_round() -> None:
    weight = heaviest(BY_NORM)
    with np.errstate(over="ignore"):
        sums = np.cumsum(np.full(2**63 // weight + 2, weight, np.int64)).tolist()
    assert max(abs(after - before) for before, after in itertools.pairwise(sums)) > weight


@pytest.mark.parametrize(
    "expression",
    [
        lambda f: f["x"] / (f["y"] * f["y"] + 1e-95).clip(1e-95, None),
        lambda f: (f["x"] * 1e93) * (f["y"] * 1e5),
        lambda f: (f["x"] * 38).exp(),
        lambda f: f["x"] % 0.1,
        lambda f: (f["x"] - f["x"]) ** 3,
    ],
    ids=["quotient", "product", "exp", "modulo", "power"],
)
def test_expressions_near_the_stated_sizes_stay_within_the_claim(expression: Any) -> None:
    """Rows that make a computed column as large as it can be, tiny, or undefined."""
    chance = np.random.default_rng(1)
    others = pd.DataFrame({"x": chance.choice([0.0, 6.0, 1e-308, 5e-324], 60), "y": chance.choice([0.0, 6.0], 60)})
    schema = {"x": dpnb.Bounded(0, 6), "y": dpnb.Bounded(0, 6)}
    for x, y in [(6.0, 0.0), (6.0, 6.0), (5e-324, 6.0), (math.inf, 0.0), (0.0, math.nan)]:
        rows = pd.concat([others, pd.DataFrame({"x": [x], "y": [y]})], ignore_index=True)
        frame = session(rows, schema).frame
        plan = expression(frame).mean().plan
        assert change(rows, others, schema, plan, PrivacyUnit()) <= 1
