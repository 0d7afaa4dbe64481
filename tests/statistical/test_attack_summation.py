"""Attacks on the sum before the noise (Casacuberta et al. 2022, *Widespread underestimation of sensitivity*).

Sums of doubles depend on their order and round differently when a row is gone; sums of machine integers wrap round;
one NaN or infinity swallows all other rows.  Each attack is run against a session, where it must see nothing, and
against the sum that it was found in, where it must succeed.  Nothing here is drawn: with one seed, equal exact sums
give equal answers.
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
from dpnb._plan.measurements import Count, CountUnits, JointAggregation, Mean, Moments, Sum, WeightedAggregation
from dpnb._plan.plan import Plan
from dpnb._plan.privacy_unit import ContributionBounds, PrivacyUnit
from dpnb._plan.schema import Bounded, Schema
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


def answers(table: pd.DataFrame, schema: dict[str, Any], **more: Any) -> list[float]:
    """Everything that sums, asked of a column x."""
    frame = session(table, schema, **more).frame
    questions = [frame["x"].sum(), frame["x"].mean(), frame["x"].var(), frame["x"].median(), frame.count()]
    return [float(question.release(mu=1).estimate) for question in questions]


# --- order and rounding -----------------------------------------------------------------------------------------------

ONES, SMALL = 2**17, 2.0**-8
"""In single precision 2**17 + 2**-8 is 2**17: whether the small rows count depends on when they are added."""


def in_table_order(column: NDArray[Any]) -> float:
    """Add up in the column's own type, row after row."""
    return float(np.cumsum(column)[-1])


def two_orders() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    rows = np.r_[np.full(ONES, SMALL), np.ones(ONES)].astype(np.float32)
    return rows, rows[::-1].copy()


def test_the_order_of_rows_changes_no_answer() -> None:
    first, second = (pd.DataFrame({"x": rows}) for rows in two_orders())
    schema = {"x": dpnb.Bounded(0, 1)}
    assert answers(first, schema) == answers(second, schema)


def test_control_the_order_of_rows_is_told_by_a_sum_in_single_precision() -> None:
    """The claim is a sensitivity of 1; nothing but the order differs, and one noisy answer tells it."""
    first, second = (in_table_order(rows) for rows in two_orders())
    assert first - second > 500


@pytest.mark.parametrize("seed", range(4))
def test_any_order_of_any_doubles_gives_the_same_answers(seed: int) -> None:
    chance = np.random.default_rng(seed)
    rows = pd.DataFrame({"x": np.exp(chance.normal(0, 20, 3000)) * chance.choice([-1, 1], 3000)})
    schema = {"x": dpnb.Bounded(-1e6, 1e6)}
    assert answers(rows, schema) == answers(rows.sample(frac=1, random_state=seed), schema)


def rounding_pair() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """A large row in front makes every later one be rounded up."""
    others = np.full(2**18, 96.0, np.float32)
    return np.r_[np.float32(2**30), others].astype(np.float32), others


def test_one_row_does_not_change_how_others_are_rounded() -> None:
    rows, others = (pd.DataFrame({"x": column}) for column in rounding_pair())
    for aggregation in (Sum(Column("x")), Mean(Column("x")), Moments((Column("x"),))):
        assert change(rows, others, {"x": Bounded(0, 2**30)}, Plan(aggregation), PrivacyUnit()) <= 1


def test_control_one_row_changes_how_others_are_rounded_in_single_precision() -> None:
    with_row, without = (in_table_order(column) for column in rounding_pair())
    assert with_row - without > 2**30


def test_control_one_row_changes_how_others_are_rounded_in_double_precision() -> None:
    """Less than in single precision, and still beyond the claim."""
    others = np.full(2**18, 0.75 * 2.0**-22)
    with_row, without = in_table_order(np.r_[2.0**30, others]), in_table_order(others)
    assert with_row - without > 2**30


# --- overflow ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint64", "float16", "float32"])
def test_no_sum_is_kept_in_the_type_of_the_column(dtype: str) -> None:
    kind = np.dtype(dtype).type
    largest = np.finfo(kind).max if dtype.startswith("float") else np.iinfo(kind).max
    others = pd.DataFrame({"x": np.full(300, largest, dtype)})
    rows = pd.concat([others, others[:1]], ignore_index=True)
    assert rows["x"].dtype == dtype
    schema = {"x": Bounded(0, float(largest))}
    for aggregation in (Sum(Column("x")), Mean(Column("x")), Moments((Column("x"),))):
        assert change(rows, others, schema, Plan(aggregation), PrivacyUnit()) <= 1


@pytest.mark.parametrize("dtype", ["int8", "int64"])
def test_control_a_sum_in_the_type_of_the_column_wraps_round(dtype: str) -> None:
    largest = np.iinfo(np.dtype(dtype).type).max
    with np.errstate(over="ignore"):
        sums = [int(np.sum(np.full(count, largest, dtype), dtype=dtype)) for count in (1, 2)]
    assert abs(sums[1] - sums[0]) > largest


def test_sums_beyond_the_largest_double_stay_within_the_claim() -> None:
    others = pd.DataFrame({"x": np.full(17, 1e308)})
    rows = pd.DataFrame({"x": np.full(18, 1e308)})
    for aggregation in (Sum(Column("x")), Mean(Column("x")), Moments((Column("x"),))):
        assert change(rows, others, {"x": Bounded(0, 1e100)}, Plan(aggregation), PrivacyUnit()) <= 1


def test_control_a_sum_of_doubles_overflows_to_infinity_for_one_row_more() -> None:
    with np.errstate(over="ignore"):
        assert np.isinf(np.sum(np.full(18, 1e307)))
    assert np.isfinite(np.sum(np.full(17, 1e307)))


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


# --- what is not a number ---------------------------------------------------------------------------------------------

POISON = [math.nan, math.inf, -math.inf, None, "nan", "inf", "-inf", "1e999", 10**400, pd.NA, pd.NaT]


@pytest.mark.parametrize("value", POISON, ids=repr)
def test_what_is_not_a_finite_number_changes_no_answer_about_numbers(value: Any) -> None:
    """Not even through the dtype of its column; the row itself counts, since it is one."""
    rows = [float(k % 7) for k in range(200)]
    schema = {"x": dpnb.Bounded(0, 6)}
    clean = answers(pd.DataFrame({"x": rows}), schema)
    poisoned = answers(pd.DataFrame({"x": pd.Series([*rows, value], dtype=object)}), schema)
    assert np.isfinite(poisoned).all()
    assert poisoned[:-1] == clean[:-1]
    assert poisoned[-1] == pytest.approx(clean[-1] + 1, abs=1e-5)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_control_one_such_row_swallows_a_sum_of_doubles(value: float) -> None:
    """Clamping first does not help against NaN."""
    assert not np.isfinite(np.sum(np.array([1.0, 2.0, value])))
    assert np.isnan(np.sum(np.clip(np.array([1.0, 2.0, math.nan]), 0, 6)))


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
