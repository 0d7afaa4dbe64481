"""Logarithms have finite bounds of an allowed magnitude, which hold for every value, however libraries round."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dpnb._backends.memory.expressions import NumpyEvaluator
from dpnb._backends.memory.prepare.prepared_table import prepare
from dpnb._plan.expressions.dtypes import Numeric
from dpnb._plan.expressions.nodes import Apply, Column
from dpnb._plan.expressions.rules import dtype_of, is_rounded
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb.errors import PlanError, SchemaError
from dpnb.schema import Bounded, Schema, has_allowed_magnitude

FUNCTIONS = ["log", "log2", "log10"]
ABOVE_ONE = float(np.nextafter(1, 2))
POSITIVE = st.one_of(
    st.floats(1e-100, 1e100), st.sampled_from([1e-100, 1e100, 1.0, ABOVE_ONE, float(np.nextafter(1, 0)), 2.0, 10.0])
)


@given(st.sampled_from(FUNCTIONS), POSITIVE, POSITIVE, st.lists(st.floats(0, 1), max_size=8))
def test_every_value_lies_within_bounds_of_an_allowed_magnitude(
    function: Any, one: float, other: float, places: list[float]
) -> None:
    try:
        schema: Schema = {"x": Bounded(min(one, other), max(one, other))}
    except SchemaError:  # equal, or too close together
        assume(False)
        raise
    low, high = schema["x"].low, schema["x"].high  # type: ignore[union-attr]
    values = np.array([low, high, np.nan, 0, -1, *(low + (high - low) * place for place in places)])
    node = Apply(function, Column("x"))
    kind = dtype_of(node, schema)
    assert isinstance(kind, Numeric)
    assert has_allowed_magnitude(kind.low)
    assert has_allowed_magnitude(kind.high)
    assert is_rounded(node)
    found = NumpyEvaluator(prepare(pd.DataFrame({"x": values}), schema, PrivacyUnit()), schema).numbers(node)
    assert np.isnan(found).tolist() == np.isnan(values).tolist()
    present = found[~np.isnan(found)]
    assert ((present >= kind.low) & (present <= kind.high)).all()


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("bounds", [(0, 1), (-1, 1), (-2, -1), (-1, 0)])
def test_a_range_that_is_not_positive_is_refused(function: Any, bounds: tuple[float, float]) -> None:
    with pytest.raises(PlanError, match=f"x can be 0 or less, where {function} is not defined"):
        dtype_of(Apply(function, Column("x")), {"x": Bounded(*bounds)})
