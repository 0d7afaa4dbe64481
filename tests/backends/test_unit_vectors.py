"""What each unit adds to a question: its vector, the square of its norm, and what is left when it is scaled down."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compile.neighbours import MENU, ROW, SCHEMA, WITH_NORM, WITHOUT_NORM, squared
from dpnb._backends.memory.execute import execute
from dpnb._backends.memory.prepare.prepared_table import PreparedTable, prepare
from dpnb._backends.memory.unit_contributions import per_unit_vectors
from dpnb._compile import linear_query
from dpnb._plan.expressions.nodes import Column, Compare, Literal
from dpnb._plan.measurements import (
    Count,
    CountUnits,
    JointAggregation,
    Mean,
    Moments,
    QuantileTree,
    Ratio,
    Sum,
    WeightedAggregation,
)
from dpnb._plan.plan import GroupLevel, Plan
from dpnb._plan.privacy_unit import ContributionBounds, PrivacyUnit

X, Y, G = Column("x"), Column("y"), Column("g")
PLANS = [
    *(
        Plan(one, where, by)
        for one in (
            Count(),
            Count(X),
            CountUnits(),
            Sum(X),
            Mean(Y),
            Ratio(X, Y),
            Moments((X, Y), (G,)),
            QuantileTree(X),
        )
        for where in (None, Compare(">", X, Literal(0)))
        for by in ((), (GroupLevel("g", G),))
    ),
    Plan(
        JointAggregation(
            (WeightedAggregation(Count(), 7.0), WeightedAggregation(Sum(X)), WeightedAggregation(CountUnits(), 0.1))
        ),
        None,
        (GroupLevel("g", G),),
    ),
]
UNITS = {**WITHOUT_NORM, **WITH_NORM}


def table(rows: list[tuple[Any, ...]], unit: PrivacyUnit) -> PreparedTable:
    frame = pd.DataFrame(rows, columns=["u", "x", "y", "g"])
    return prepare(frame, SCHEMA, unit)


people = st.lists(st.tuples(st.sampled_from("abcd"), *(st.sampled_from(column) for column in zip(*MENU, strict=True))))


@pytest.mark.parametrize("unit", UNITS.values(), ids=list(UNITS))
@settings(max_examples=15)  # for each of the units
@given(rows=people, plan=st.sampled_from(PLANS), divisible=st.booleans())
def test_vectors_add_up_to_the_sums_and_their_squares_are_no_less_than_the_true_ones(
    unit: PrivacyUnit, rows: list[tuple[Any, ...]], plan: Plan, divisible: bool
) -> None:
    query, prepared = linear_query(plan, SCHEMA, unit, divisible=divisible), table(rows, unit)
    vectors = per_unit_vectors(query, prepared, SCHEMA)
    assert vectors.sums().tolist() == execute(query, prepared, SCHEMA).tolist()
    entries = [part.tolist() for part in np.split(vectors.values, vectors.starts[1:])] if len(vectors.owners) else []
    told = {}
    exact = dict(zip(vectors.owners.tolist(), map(squared, entries), strict=True))

    def active(owners: Any, squares: Any) -> Any:
        told.update(zip(owners.tolist(), squares.tolist(), strict=True))
        return owners % 2 == 0

    sums = execute(query, prepared, SCHEMA, active)
    assert sums.tolist() == vectors.sums(vectors.owners % 2 == 0).tolist(), "units that take part, and only they"
    for owner, square in told.items():
        true = exact.pop(owner, 0)
        assert true <= square <= true * (1 + 1e-14)
        assert Fraction(square) <= Fraction(query.l2_sensitivity_squared) * (1 + Fraction(1, 10**14))
    assert not any(exact.values()), "everybody who adds something was asked"


@given(
    rows=people,
    plan=st.sampled_from(PLANS),
    share=st.floats(0, 1.2),
    unit=st.sampled_from(list(UNITS.values())),
)
def test_scaled_down_vectors_are_no_longer_than_allowed_and_point_where_they_did(
    rows: list[tuple[Any, ...]], plan: Plan, share: float, unit: PrivacyUnit
) -> None:
    query, prepared = linear_query(plan, SCHEMA, unit, divisible=True), table(rows, unit)
    vectors = per_unit_vectors(query, prepared, SCHEMA)
    radii = np.sqrt(vectors.squares()) * share
    short = vectors.within(radii)
    for place, start in enumerate(vectors.starts.tolist()):
        part = slice(start, start + int(vectors.sizes[place]))
        before, after = vectors.values[part].tolist(), short.values[part].tolist()
        assert squared(after) <= Fraction(float(radii[place])) ** 2 or share >= 1
        factor = min(share, 1.0)
        assert all(abs(new) <= abs(old) and new * old >= 0 for new, old in zip(after, before, strict=True))
        assert all(abs(new - factor * old) <= 1 + 1e-11 * abs(old) for new, old in zip(after, before, strict=True))


def test_a_divisible_question_loses_no_more_than_a_millionth_of_a_row_to_rounding() -> None:
    query = linear_query(Plan(Count()), SCHEMA, ROW, divisible=True)
    vectors = per_unit_vectors(query, table([("a", 1, 1, "a")] * 3, ROW), SCHEMA)
    half = vectors.within(np.sqrt(vectors.squares()) / 2)
    assert half.sums()[0] / query.features[0].weight == pytest.approx(1.5, abs=3e-6)


def test_limits_of_groups_are_a_units_own() -> None:
    unit = PrivacyUnit("u", None, ContributionBounds(max_groups=1, max_rows_per_group=1))
    rows = [("a", 1, 1, "a"), ("a", 1, 1, "b"), ("b", 2, 1, "b")]
    query = linear_query(Plan(Sum(X), None, (GroupLevel("g", G),)), SCHEMA, unit)
    alone = per_unit_vectors(query, table(rows[:2], unit), SCHEMA)
    beside = per_unit_vectors(query, table(rows, unit), SCHEMA)
    assert alone.values.tolist() == beside.values[: len(alone.values)].tolist()
    assert alone.slots.tolist() == beside.slots[: len(alone.slots)].tolist()
