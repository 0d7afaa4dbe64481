"""What a row gives, in integers.

A feature has a `limit`, the largest L2 norm of what one row gives, and a `weight`, an integer by which its sums are
multiplied afterwards, so that every feature of a question gets its share of the charge under one common noise scale.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction

from dpnb._compile import grid
from dpnb._plan.expressions.nodes import Arithmetic, Expression, Literal
from dpnb._plan.expressions.rules import numeric_dtype_of, public_keys_of
from dpnb._plan.expressions.text import words
from dpnb._plan.measurements import (
    Count,
    CountUnits,
    Discovery,
    Gradient,
    Mean,
    ModelLoss,
    Moments,
    QuantileTree,
    Ratio,
    Single,
    Sum,
)
from dpnb._plan.regression import RegressionDesign, design
from dpnb._plan.schema import NARROWEST_RANGE, Schema
from dpnb.errors import PlanError

BRANCHING = 4
"""Children of a node.  A prefix of the leaves is a sum of at most 3 nodes on each of log_4(leaves) levels, and the
charge is shared by the levels: noise of about 3 log_4(leaves)^2 = 1.56 ln(leaves)^2, the least for any whole number."""

DEEPEST = 6
"""Levels below the root: 4,096 leaves."""

CLIP_STEPS = 2**30
"""Steps in the norm to which a unit's gradient is scaled down."""


@dataclass(frozen=True)
class SlotLayout:
    """Slots for the combinations of values that some categories have, each without its first value.

    A row is in at most one of them, so that its norm is that of its one number.

    Parameters
    ----------
    by : tuple of expression
        Nothing to split by is one slot.
    sizes : tuple of int
        Values that count of each.
    """

    by: tuple[Expression, ...] = ()
    sizes: tuple[int, ...] = ()


@dataclass(frozen=True)
class CountFeature:
    """1 for each row that has something in all of `required`.

    Parameters
    ----------
    required : tuple of expression
    weight : int
    split : Split
    """

    required: tuple[Expression, ...] = ()
    weight: int = 1
    split: SlotLayout = SlotLayout()

    limit_squared = 1

    @property
    def slots(self) -> int:
        """Number of slots."""
        return math.prod(self.split.sizes)

    @property
    def unit(self) -> Fraction:
        """What one integer step stands for."""
        return Fraction(1, self.weight)

    @property
    def limit(self) -> int:
        """Largest absolute value of a row, weighted."""
        return self.weight


@dataclass(frozen=True)
class ValueFeature:
    """The grid steps of a number, less a centre, for each row that has something in all of `required`.

    Parameters
    ----------
    expression : expression
    low, high : float
        Bounds, to which the number is clamped.
    centre : int
        In grid steps.
    required : tuple of expression
    weight : int
    split : Split
    """

    expression: Expression
    low: float
    high: float
    centre: int = 0
    required: tuple[Expression, ...] = ()
    weight: int = 1
    split: SlotLayout = SlotLayout()

    @property
    def slots(self) -> int:
        """Number of slots."""
        return math.prod(self.split.sizes)

    @property
    def magnitude(self) -> float:
        """Largest absolute value of the number."""
        return max(abs(self.low), abs(self.high))

    @property
    def row_limit(self) -> int:
        """Largest absolute value that a row can give, before weighting."""
        return max(abs(grid.steps(end, self) - self.centre) for end in (self.low, self.high))

    @property
    def limit_squared(self) -> int:
        """The square of `row_limit`."""
        return self.row_limit**2

    @property
    def unit(self) -> Fraction:
        """What one integer step stands for."""
        return Fraction(2) ** grid.exponent(self) / self.weight

    @property
    def limit(self) -> int:
        """Largest absolute value of a row, weighted."""
        return self.row_limit * self.weight

    @property
    def middle(self) -> float:
        """What was taken off, in the number's own units."""
        return float(self.centre * Fraction(2) ** grid.exponent(self))


@dataclass(frozen=True)
class TreeFeature:
    """1 in the node of each level of a tree that a row's number falls into.

    Parameters
    ----------
    expression : expression
    low, high : float
        Bounds of the number; the first leaf begins at the lower one.
    width : float
        Of a leaf.
    levels : int
        Below the root, which is not counted.
    whole : bool
        A leaf is one whole number: the first one is `low`.
    weight : int
    """

    expression: Expression
    low: float
    high: float
    width: float
    levels: int
    whole: bool
    weight: int = 1

    @property
    def leaves(self) -> int:
        """Number of leaves."""
        return int(BRANCHING**self.levels)

    @property
    def slots(self) -> int:
        """Number of nodes; the levels follow each other, the leaves last."""
        return int(sum(BRANCHING**level for level in range(1, self.levels + 1)))

    @property
    def limit_squared(self) -> int:
        """A row is in one node on each level."""
        return self.levels

    @property
    def unit(self) -> Fraction:
        """What one integer step stands for."""
        return Fraction(1, self.weight)


@dataclass(frozen=True)
class UnitFeature:
    """1 for each unit that has a row, however many it has.

    Parameters
    ----------
    weight : int
    """

    weight: int = 1

    slots = 1
    limit_squared = 1

    @property
    def unit(self) -> Fraction:
        """What one integer step stands for."""
        return Fraction(1, self.weight)


@dataclass(frozen=True)
class ModelLossFeature(ValueFeature):
    """A value that no expression gives: from 0 to 1 how badly a regression predicts `expression` a row.

    Parameters
    ----------
    misfit : Misfit
    design : Design
    """

    misfit: ModelLoss = field(kw_only=True)
    design: RegressionDesign = field(kw_only=True)


@dataclass(frozen=True)
class GradientFeature:
    """The gradients of a unit's rows, each scaled down to the clip: what bounds it is the unit's, not a row's.

    Parameters
    ----------
    gradient : Gradient
    design : Design
    weight : int
    """

    gradient: Gradient
    design: RegressionDesign
    weight: int = 1

    @property
    def required(self) -> tuple[Expression, ...]:
        """What every row that counts has."""
        model = self.gradient.model
        return (model.outcome, *model.columns, *model.categories)

    @property
    def chains(self) -> int:
        """Number of gradients."""
        return len(self.gradient.at)

    @property
    def slots(self) -> int:
        """Numbers of all gradients."""
        return self.chains * self.design.width

    @property
    def limit_squared(self) -> int:
        """The square of the longest vector of a unit."""
        return self.chains * CLIP_STEPS**2

    @property
    def unit(self) -> Fraction:
        """What one integer step stands for."""
        return Fraction(self.gradient.clip_norm) / (CLIP_STEPS * self.weight)


Feature = CountFeature | ValueFeature | TreeFeature | UnitFeature | GradientFeature

BY_UNIT = (UnitFeature, GradientFeature)
"""Of which no number of rows makes a unit add more."""


def features_of(aggregation: Single | Discovery, schema: Schema) -> tuple[Feature, ...]:
    """The features that measure one aggregation.

    Raises
    ------
    PlanError
        Something to be added up is a constant, or its bounds are too close together for their size.
    """
    match aggregation:
        case Count(column):
            return (CountFeature(() if column is None else (column,)),)
        case CountUnits() | Discovery():
            return (UnitFeature(),)
        case Sum(column):
            return (_value(column, schema, "sum"),)
        case Mean(column):
            return (CountFeature((column,)), _centred(column, schema, "mean"))
        case Ratio(numerator, denominator):
            given = (numerator, denominator)
            return (_value(numerator, schema, "ratio", given), _value(denominator, schema, "ratio", given))
        case Moments():
            return _moments(aggregation, schema)
        case QuantileTree(column):
            return (_nodes(column, schema),)
        case Gradient(model):
            return (GradientFeature(aggregation, design(model, schema)),)
        case ModelLoss(model):
            needed = (model.outcome, *model.columns, *model.categories)
            half = 2 ** (grid.BITS - 2)  # of the 2**30 steps from 0 to 1
            missed = ModelLossFeature(
                model.outcome, 0.0, 1.0, half, needed, misfit=aggregation, design=design(model, schema)
            )
            return (CountFeature(needed), missed)


def _value(node: Expression, schema: Schema, verb: str, required: tuple[Expression, ...] = ()) -> ValueFeature:
    number = numeric_dtype_of(node, schema, verb)
    if number.high / 2 - number.low / 2 < NARROWEST_RANGE * number.magnitude / 2 or not number.magnitude:
        raise PlanError(
            f"{verb} of {words(node)}: its bounds {number.low:g} and {number.high:g} must be at least 2**-20 of the "
            "larger one's size apart; subtract a public constant first, or ask for the count if it is a constant"
        )
    return ValueFeature(node, number.low, number.high, required=required or (node,))


def _centred(node: Expression, schema: Schema, verb: str, required: tuple[Expression, ...] = ()) -> ValueFeature:
    """A value less the middle of its bounds: a row adds at most half of their distance."""
    value = _value(node, schema, verb, required)
    middle = (grid.steps(value.low, value) + grid.steps(value.high, value)) // 2
    return ValueFeature(node, value.low, value.high, middle, value.required)


def scaled(node: Expression, schema: Schema) -> tuple[Expression, float, float]:
    """An expression brought to -1 to 1, with the middle and half of the distance of its bounds."""
    number = numeric_dtype_of(node, schema, "moments")
    middle, reach = number.low / 2 + number.high / 2, number.high / 2 - number.low / 2
    _value(node, schema, "moments")
    return Arithmetic("/", Arithmetic("-", node, Literal(middle)), Literal(reach)), middle, reach


def moment_order(columns: int, categories: int) -> list[tuple[str, int, int]]:
    """What is measured of some numbers and categories, in order: a kind, and the places of the two factors."""
    return [
        ("count", 0, 0),
        *(("number", i, i) for i in range(columns)),
        *(("product", i, j) for i in range(columns) for j in range(i, columns)),
        *(("indicators", c, c) for c in range(categories)),
        *(("number by indicators", i, c) for i in range(columns) for c in range(categories)),
        *(("indicators by indicators", c, d) for c in range(categories) for d in range(c + 1, categories)),
    ]


def indicators_of(node: Expression, schema: Schema) -> int:
    """How many indicators stand for a category: one for each value but the first."""
    return len(public_keys_of(node, schema) or ()) - 1


def _moments(aggregation: Moments, schema: Schema) -> tuple[Feature, ...]:
    """Count, sums and products of the columns, each brought to -1 to 1, and of the indicators of categories.

    A square lies between 0 and 1, so it is taken less 1/2 and a row adds at most 1/2 to it.  Of the indicators of one
    category at most one is 1, and they are their own squares.
    """
    columns, categories = aggregation.columns, aggregation.categories
    given = (*columns, *categories)
    z = [scaled(node, schema)[0] for node in columns]

    def split(*places: int) -> SlotLayout:
        by = tuple(categories[place] for place in places)
        return SlotLayout(by, tuple(indicators_of(node, schema) for node in by))

    def feature(kind: str, a: int, b: int) -> Feature:
        match kind:
            case "count":
                return CountFeature(given)
            case "number":
                return _centred(z[a], schema, "moments", given)
            case "product":
                product = Arithmetic("**", z[a], Literal(2)) if a == b else Arithmetic("*", z[a], z[b])
                return _centred(product, schema, "moments", given)
            case "indicators":
                return CountFeature(given, split=split(a))
            case "number by indicators":
                return replace(_centred(z[a], schema, "moments", given), split=split(b))
        return CountFeature(given, split=split(a, b))

    return tuple(feature(*entry) for entry in moment_order(len(columns), len(categories)))


def _nodes(node: Expression, schema: Schema) -> TreeFeature:
    number = numeric_dtype_of(node, schema, "quantiles")
    if number.whole and number.high - number.low < BRANCHING**DEEPEST:
        values = int(number.high - number.low) + 1
        levels = next(level for level in range(1, DEEPEST + 1) if BRANCHING**level >= values)
        return TreeFeature(node, number.low, number.high, 1.0, levels, True)
    _value(node, schema, "quantiles")
    return TreeFeature(node, number.low, number.high, (number.high - number.low) / BRANCHING**DEEPEST, DEEPEST, False)
