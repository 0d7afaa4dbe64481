"""The last check of a compiled plan: the numbers that rows and sums are divided, shifted and multiplied by.

Interval arithmetic should have refused what is out of range, but the check does not rely on it: for any plan and any
features, each of these numbers is finite, normal and positive as a double, or the plan is refused before anything is
charged.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from fractions import Fraction

from dpnb._compile import grid
from dpnb._compile.features import CLIP_STEPS, Feature, GradientFeature, ModelLossFeature, TreeFeature, ValueFeature
from dpnb._plan.regression import RegressionDesign
from dpnb.errors import PlanError
from dpnb.schema import ALLOWED_MAGNITUDES, has_allowed_magnitude

Figure = tuple[str, float | Fraction]


def refuse_unsound(words: str, features: Sequence[Feature], l2_sensitivity_squared: int, clip: int | None) -> None:
    """Refuse a plan with a range, width, grid, scale or sensitivity that is not finite, normal and positive.

    `clip` is the squared norm to which units are scaled down.
    """
    for feature in features:
        for name, bound in _bounds(feature):
            if not has_allowed_magnitude(bound):
                raise PlanError(
                    f"{words}: its {name} must be {ALLOWED_MAGNITUDES}; it is {bound!r}; .clip() the column first"
                )
        for name, figure in _figures(feature):
            if not _is_sound(figure):
                raise PlanError(_REFUSAL.format(words=words, name=name, figure=figure))
    for name, squared in (("sensitivity", l2_sensitivity_squared), ("clip", clip)):
        if squared is not None and not _is_sound(Fraction(squared)):
            raise PlanError(_REFUSAL.format(words=words, name=name, figure=squared))


_REFUSAL = (
    "{words}: its {name} must be a finite, normal number above 0; it is {figure}; give the column other bounds, by "
    ".clip() or in the schema"
)


def _is_sound(figure: float | Fraction) -> bool:
    try:
        return sys.float_info.min <= float(figure) < math.inf
    except OverflowError:
        return False


def _bounds(feature: Feature) -> Iterator[tuple[str, float]]:
    """The bounds to which rows are clamped."""
    if isinstance(feature, ValueFeature | TreeFeature):
        yield "lower bound", feature.low
        yield "upper bound", feature.high


def _figures(feature: Feature) -> Iterator[Figure]:
    """The numbers by which rows, or their sums, are divided or multiplied."""
    yield "weight", feature.weight
    yield "unit", feature.unit
    yield "longest row", Fraction(feature.limit_squared)
    if isinstance(feature, ValueFeature):
        yield "range", feature.high - feature.low
        yield "grid", Fraction(2) ** -grid.exponent(feature)
    if isinstance(feature, TreeFeature):
        yield "width of a leaf", feature.width
        yield "range", feature.width * feature.leaves
        for piece in feature.pieces:
            yield "width of a leaf", piece.width
        if not feature.pieces:
            yield "number of leaves", feature.leaves - feature.whole * (feature.high - feature.low)
    if isinstance(feature, GradientFeature):
        yield "clip", feature.gradient.clip_norm
        yield "steps of the clip", CLIP_STEPS / feature.gradient.clip_norm if feature.gradient.clip_norm else math.inf
    if isinstance(feature, GradientFeature | ModelLossFeature):
        yield from _scales(feature.design)


def _scales(design: RegressionDesign) -> Iterator[Figure]:
    """The numbers by which columns are divided, to scale them to -1 to 1."""
    for reach in (*design.reaches, design.outcome[1]):
        yield "half of a range", reach
