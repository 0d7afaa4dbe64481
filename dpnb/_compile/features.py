"""Features: the integer vectors of a row that are summed.

The integer `weight` of a feature multiplies its sums, so that every feature of a query gets its share of the charge
under one common noise scale; `limit_squared` is the largest squared L2 norm of one row's vector, before weighting.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpnb._compile import grid
from dpnb._plan.expressions.nodes import Expression, Seconds
from dpnb._plan.measurements import Gradient, ModelLoss
from dpnb._plan.regression import RegressionDesign

BRANCHING = 4
"""Children of a node.  A prefix of the leaves is a sum of at most 3 nodes on each of log_4(leaves) levels, and the
levels share the charge: noise of about 3 log_4(leaves)^2 = 1.56 ln(leaves)^2, the least for any whole number."""

TREE_DEPTH = 6
"""Levels below the root: 4,096 leaves."""

CLIP_STEPS = 2**30
"""Integer steps in the norm to which a unit's gradient is scaled down."""


@dataclass(frozen=True)
class SlotLayout:
    """Slots for the combinations of values of some categories, each without its first values.

    A row is in at most one slot, so its norm is that of its one number.
    """

    by: tuple[Expression, ...] = ()
    sizes: tuple[int, ...] = ()  # number of values of each category that have slots
    first: int = 1  # number of values of each category that have none


@dataclass(frozen=True)
class CountFeature:
    """1 for each row in which no expression of `required` is missing."""

    required: tuple[Expression, ...] = ()
    weight: int = 1  # factor of the sums
    split: SlotLayout = SlotLayout()

    limit_squared = 1

    @cached_property
    def slots(self) -> int:
        """Number of slots."""
        return math.prod(self.split.sizes)

    @cached_property
    def unit(self) -> Fraction:
        """The value of one integer step."""
        return Fraction(1, self.weight)

    @property
    def limit(self) -> int:
        """Largest absolute value of a row, after weighting."""
        return self.weight


@dataclass(frozen=True)
class ValueFeature:
    """A number in grid steps, minus a centre, for each row in which no expression of `required` is missing."""

    expression: Expression
    low: float  # the number is clamped to `low` and `high`
    high: float
    centre: int = 0  # the constant that is subtracted, in grid steps
    required: tuple[Expression, ...] = ()
    weight: int = 1  # factor of the sums
    split: SlotLayout = SlotLayout()

    @cached_property
    def slots(self) -> int:
        """Number of slots."""
        return math.prod(self.split.sizes)

    @property
    def magnitude(self) -> float:
        """Largest absolute value of the number."""
        return max(abs(self.low), abs(self.high))

    @property
    def row_limit(self) -> int:
        """Largest absolute value of a row, before weighting."""
        return max(abs(grid.steps(end, self) - self.centre) for end in (self.low, self.high))

    @property
    def limit_squared(self) -> int:
        """The square of `row_limit`."""
        return self.row_limit**2

    @cached_property
    def unit(self) -> Fraction:
        """The value of one integer step."""
        return Fraction(2) ** grid.exponent(self) / self.weight

    @property
    def limit(self) -> int:
        """Largest absolute value of a row, after weighting."""
        return self.row_limit * self.weight

    @cached_property
    def middle(self) -> float:
        """The centre, in the units of the number."""
        return float(self.centre * Fraction(2) ** grid.exponent(self))


@dataclass(frozen=True)
class UnitValueFeature(ValueFeature):
    """A number that a unit has once in each group; see `dpnb._compile.products`."""

    max_rows: int = 1  # of a unit in a group, for which the number is bounded


@dataclass(frozen=True)
class TreeFeature:
    """1 in the node, on each level of a tree, that contains a row's number."""

    expression: Expression
    low: float  # the first leaf begins here
    high: float
    width: float  # of a leaf
    levels: int  # below the root, which is not counted
    whole: bool  # all numbers, and the edges between leaves, are whole
    weight: int = 1  # factor of the sums
    # the leaves if they have several widths, ascending; `width` is then the largest
    pieces: tuple[grid.Piece, ...] = ()

    @property
    def leaves(self) -> int:
        """Number of leaves."""
        return int(BRANCHING**self.levels)

    @cached_property
    def edges(self) -> NDArray[np.float64]:
        """The edges between the leaves of several widths, ascending; leaves after the last edge are empty."""
        return grid.edges_of(self.pieces)

    def at(self, position: NDArray[np.float64]) -> NDArray[np.float64]:
        """The numbers at some positions, counted in leaves."""
        if self.pieces:
            return np.interp(position, np.arange(len(self.edges)), self.edges)
        return self.low + position * self.width

    @cached_property
    def first_edge(self) -> float:
        """The upper edge of the leaf that has the lower bound."""
        return float(self.edges[self.edges > self.low][0]) if self.pieces else self.low + self.width

    @cached_property
    def last_edge(self) -> float:
        """The lower edge of the leaf that has the upper bound."""
        edges = self.edges if self.pieces else self.at(np.arange(self.leaves + 1.0))
        return float(edges[edges <= self.high if self.whole else edges < self.high][-1])

    @property
    def resolution(self) -> str | None:
        """How far apart numbers may be that are in one leaf, in words; None if each leaf is one whole number."""
        if isinstance(self.expression, Seconds):
            return f"{self.width:,.0f} seconds"
        if not self.pieces:
            return None if self.whole else f"{self.width:.3g}"
        finest = min(piece.width for piece in self.pieces)
        near = f", {finest:.3g} near 0" if finest > 1e-6 * (self.high - self.low) else ""
        return f"at most {1 / grid.STEPS:.1%} of the value{near}"

    @cached_property
    def slots(self) -> int:
        """Number of nodes, ordered by level, the leaves last."""
        return int(sum(BRANCHING**level for level in range(1, self.levels + 1)))

    @property
    def limit_squared(self) -> int:
        """A row is in one node on each level."""
        return self.levels

    @cached_property
    def unit(self) -> Fraction:
        """The value of one integer step."""
        return Fraction(1, self.weight)


@dataclass(frozen=True)
class UnitFeature:
    """1 for each unit that has at least one row."""

    weight: int = 1  # factor of the sums

    slots = 1
    limit_squared = 1

    @cached_property
    def unit(self) -> Fraction:
        """The value of one integer step."""
        return Fraction(1, self.weight)


@dataclass(frozen=True)
class ModelLossFeature(ValueFeature):
    """The error, from 0 to 1, with which a regression predicts `expression` for each row."""

    misfit: ModelLoss = field(kw_only=True)
    design: RegressionDesign = field(kw_only=True)


class ScoreFeature(ValueFeature):
    """A number of a row in the score or the information of a regression; see `dpnb._compile.scores`."""


@dataclass(frozen=True)
class GradientFeature:
    """The gradients of a unit, summed over its rows and scaled down to a norm; the bound is per unit, not per row."""

    gradient: Gradient
    design: RegressionDesign
    weight: int = 1  # factor of the sums

    @property
    def required(self) -> tuple[Expression, ...]:
        """Expressions that must not be missing in a row."""
        model = self.gradient.model
        return (model.outcome, *model.columns, *model.categories)

    @property
    def chains(self) -> int:
        """Number of gradients."""
        return len(self.gradient.at)

    @cached_property
    def slots(self) -> int:
        """Number of coefficients of all gradients together."""
        return self.chains * self.design.width

    @property
    def limit_squared(self) -> int:
        """The largest squared norm of a unit's vector."""
        return self.chains * CLIP_STEPS**2

    @cached_property
    def unit(self) -> Fraction:
        """The value of one integer step."""
        return Fraction(self.gradient.clip_norm) / (CLIP_STEPS * self.weight)


Feature = CountFeature | ValueFeature | TreeFeature | UnitFeature | GradientFeature

IN_MEMORY = (GradientFeature, ModelLossFeature, ScoreFeature)
"""Features with exponentials, which engines round differently."""

BY_UNIT = (UnitFeature, GradientFeature)
"""Features for which the contribution of a unit is bounded whatever the number of its rows."""
