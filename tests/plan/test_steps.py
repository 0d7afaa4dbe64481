"""Groups of whole numbers with a step: only those that the declared values can have."""

from __future__ import annotations

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from dpnb._backends.memory.expressions import NumpyEvaluator
from dpnb._backends.memory.prepare.prepared_table import prepare
from dpnb._plan.expressions.nodes import (
    Apply,
    Arithmetic,
    AsNumber,
    Clip,
    Column,
    Compare,
    Expression,
    FillNull,
    Literal,
    Lookup,
    Round,
    Where,
)
from dpnb._plan.expressions.rules import public_keys_of
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb.schema import Bounded, Categories, Schema

SCHEMA: Schema = {"age": Bounded(-7, 40, integer=True), "coins": Categories([0, 25, 50, 95, 100])}
ROWS = pd.DataFrame([(age, coins) for age in range(-7, 41) for coins in (0, 25, 50, 95, 100)], columns=["age", "coins"])
EVERY = NumpyEvaluator(prepare(ROWS, SCHEMA, PrivacyUnit()), SCHEMA)
AGE, COINS = Column("age"), AsNumber(Column("coins"))
DECADE = Arithmetic("*", Arithmetic("//", AGE, Literal(10)), Literal(10))

WHOLE = st.integers(-12, 12)
NUMBERS: st.SearchStrategy[Expression] = st.recursive(
    st.sampled_from([AGE, COINS, DECADE]) | WHOLE.map(Literal),
    lambda inner: st.one_of(
        st.builds(Arithmetic, st.sampled_from(["+", "-", "*"]), inner, inner),
        st.builds(lambda of, by: Arithmetic("//", of, Literal(by)), inner, st.integers(1, 12)),
        st.builds(lambda of, by: Arithmetic("%", of, Literal(by)), inner, st.integers(1, 12)),
        st.builds(lambda of, low, more: Clip(of, float(low), float(low + more)), inner, WHOLE, st.integers(0, 30)),
        st.builds(Apply, st.just("abs"), inner),
        st.builds(Round, inner, st.integers(-2, 1)),
        st.builds(FillNull, inner, WHOLE),
        st.builds(lambda one, other: Where(Compare(">", AGE, Literal(3)), one, other), inner, inner),
    ),
    max_leaves=4,
)


def groups(node: Expression) -> list[object]:
    keys = public_keys_of(node, SCHEMA)
    assert keys is not None
    return [*keys]


def test_multiples_of_ten_are_the_groups_of_decades() -> None:
    assert groups(DECADE) == [-10, 0, 10, 20, 30, 40]
    assert groups(Arithmetic("+", DECADE, Literal(5))) == [-5, 5, 15, 25, 35, 45]
    assert groups(Arithmetic("-", Literal(0), DECADE)) == [-40, -30, -20, -10, 0, 10]
    assert groups(Clip(DECADE, 5.0, 25.0)) == [5, 10, 15, 20, 25]
    assert groups(COINS) == [*range(0, 101, 5)]
    assert groups(Lookup("pay", (Column("coins"),), ((0,), (95,)), (100, 400), 100.0, 400.0)) == [100, 400]


@given(NUMBERS)
def test_every_value_is_a_group_and_no_group_is_between_the_steps(node: Expression) -> None:
    keys = groups(node)
    values = np.unique(EVERY.numbers(node))
    values = values[~np.isnan(values)]
    assert {*values.tolist()} <= {*keys}
    codes, count = EVERY.level_codes(node)
    assert count == len(keys)
    found = np.asarray(keys, float)[codes[codes >= 0]]
    assert np.array_equal(found, EVERY.numbers(node)[codes >= 0])
