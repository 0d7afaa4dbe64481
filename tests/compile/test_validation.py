"""A compiled plan holds no range, width, grid, scale or sensitivity that is not a finite, normal number above 0."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from dpnb._compile.features import Feature
from dpnb._compile.lowering import features_of
from dpnb._compile.sensitivity import refuse_unsound
from dpnb._plan.expressions.nodes import Arithmetic, Column, Literal
from dpnb._plan.measurements import Gradient, Mean, ModelLoss, Moments, QuantileTree, RegressionModel
from dpnb.errors import PlanError
from dpnb.schema import Bounded, Schema

X, Y, N = Column("x"), Column("y"), Column("i")
SCHEMA: Schema = {"x": Bounded(0, 10), "y": Bounded(-1, 1), "i": Bounded(0, 5, integer=True)}
MODEL = RegressionModel("linear", Y, (X,))
ODD = (math.inf, -math.inf, math.nan, 1e308, -1e308, 5e-324)
NOTHING = (0.0, 5e-324, -1.0, math.inf, math.nan)


def features(*aggregations: Any) -> list[Feature]:
    return [feature for aggregation in aggregations for feature in features_of(aggregation, SCHEMA)]


ALL = (
    Mean(X),
    Moments((X, Y)),
    QuantileTree(X),
    QuantileTree(N),
    Gradient(MODEL, ((0.0, 0.0),), 1.0),
    ModelLoss(MODEL, (0.0, 0.0)),
)


def refused(feature: Feature, **changes: Any) -> bool:
    try:
        refuse_unsound("a question", [replace(feature, **changes)], 4, None)
    except PlanError:
        return True
    return False


def test_usual_figures_are_let_through() -> None:
    refuse_unsound("a question", features(*ALL), 4, 9)


@pytest.mark.parametrize("place", range(len(features(*ALL))))
def test_every_figure_of_every_feature_is_looked_at(place: int) -> None:
    feature = features(*ALL)[place]
    for name, values in (("low", ODD), ("high", ODD), ("width", NOTHING), ("weight", (0, -1))):
        for value in values if hasattr(feature, name) else ():
            if name in ("low", "high") and not (hasattr(feature, "width") or math.isfinite(value)):
                continue  # of which no grid can be made at all
            assert refused(feature, **{name: value}), (name, value)
    if hasattr(feature, "design"):
        for value in NOTHING:
            assert refused(feature, design=replace(feature.design, reaches=(value,)))
            assert refused(feature, design=replace(feature.design, outcome=(0.0, value)))


@pytest.mark.parametrize("clip", NOTHING)
def test_a_clip_is_looked_at(clip: float) -> None:
    if math.isfinite(clip):
        (slopes,) = features(Gradient(MODEL, ((0.0, 0.0),), clip))
        with pytest.raises(PlanError, match="normal number above 0"):
            refuse_unsound("a question", [slopes], 4, None)


@pytest.mark.parametrize("squared", [0, 10**700, -1])
def test_sensitivities_are_looked_at(squared: int) -> None:
    for given in ((squared, None), (4, squared)):
        with pytest.raises(PlanError, match="normal number above 0"):
            refuse_unsound("a question", features(Mean(X)), *given)


def test_a_tree_of_one_whole_number_is_sound() -> None:
    one = Arithmetic("+", Arithmetic("-", N, N), Literal(3))
    assert [feature.unit for feature in features(QuantileTree(one))] == [Fraction(1)]
    refuse_unsound("a question", features(QuantileTree(one)), 4, None)
