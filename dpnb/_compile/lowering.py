"""Lowering: the features that measure each aggregation."""

from __future__ import annotations

from dataclasses import replace

from dpnb._compile import grid
from dpnb._compile.features import (
    BRANCHING,
    TREE_DEPTH,
    CountFeature,
    Feature,
    GradientFeature,
    ModelLossFeature,
    SlotLayout,
    TreeFeature,
    UnitFeature,
    UnitValueFeature,
    ValueFeature,
)
from dpnb._compile.products import deviation_products, once, unit_products
from dpnb._compile.scores import score_features
from dpnb._plan.expressions.dtypes import Numeric
from dpnb._plan.expressions.nodes import Arithmetic, Expression, Literal, Seconds
from dpnb._plan.expressions.rules import numeric_dtype_of, public_keys_of
from dpnb._plan.expressions.text import words
from dpnb._plan.measurements import (
    Count,
    CountUnits,
    CumulativeCount,
    DeviationProducts,
    Discovery,
    Gradient,
    LevelCounts,
    Mean,
    ModelLoss,
    Moments,
    QuantileTree,
    Ratio,
    ScoreSums,
    Single,
    Sum,
    UnitProducts,
    WeightedMean,
)
from dpnb._plan.regression import design
from dpnb.errors import PlanError
from dpnb.schema import MIN_RELATIVE_RANGE, Schema


def features_of(aggregation: Single | Discovery, schema: Schema) -> tuple[Feature, ...]:
    """The features that measure one aggregation.

    A number to be summed is refused if it is constant, or if its bounds are too close together relative to their size.
    """
    match aggregation:
        case Count(column) | CumulativeCount(column):
            return (CountFeature(() if column is None else (column,)),)
        case CountUnits() | Discovery():
            return (UnitFeature(),)
        case Sum(column):
            return (_value(column, schema, "sum"),)
        case Mean(column):
            return (CountFeature((column,)), _centred(column, schema, "mean"))
        case WeightedMean(column, weights):
            deviation, _ = weighted_deviation(aggregation, schema)
            both = (column, weights)
            return (_value(deviation, schema, "mean", both), _value(weights, schema, "mean", both))
        case Ratio(numerator, denominator):
            terms = (numerator, denominator)
            return (_value(numerator, schema, "ratio", terms), _value(denominator, schema, "ratio", terms))
        case LevelCounts(column):
            return (CountFeature((column,), split=SlotLayout((column,), (levels_of(column, schema),), 0)),)
        case Moments():
            return _moments(aggregation, schema)
        case DeviationProducts():
            once_each = [once(node) for node in deviation_products(aggregation, schema)]
            return tuple(_of_unit(node, schema, "regress", aggregation) for node in once_each)
        case UnitProducts(columns):
            if aggregation.max_rows == 1:
                return tuple(_value(node, schema, "population", columns) for node in unit_products(aggregation))
            return tuple(_of_unit(node, schema, "population", aggregation) for node in unit_products(aggregation))
        case ScoreSums():
            return score_features(aggregation, schema)
        case QuantileTree(column, graded):
            return (_nodes(column, schema, graded=graded),)
        case Gradient(model):
            return (GradientFeature(aggregation, design(model, schema)),)
        case ModelLoss(model):
            required = (model.outcome, *model.columns, *model.categories)
            half = 2 ** (grid.BITS - 2)  # 1/2 in the 2**30 steps from 0 to 1
            loss = ModelLossFeature(
                model.outcome, 0.0, 1.0, half, required, misfit=aggregation, design=design(model, schema)
            )
            return (CountFeature(required), loss)


def _value(node: Expression, schema: Schema, verb: str, required: tuple[Expression, ...] = ()) -> ValueFeature:
    number = numeric_dtype_of(node, schema, verb)
    if number.high / 2 - number.low / 2 < MIN_RELATIVE_RANGE * number.magnitude / 2 or not number.magnitude:
        raise PlanError(
            f"{verb} of {words(node)}: its bounds {number.low:g} and {number.high:g} must be at least 2**-20 of the "
            "larger one's size apart; subtract a public constant first, or query the count if it is a constant"
        )
    return ValueFeature(node, number.low, number.high, required=required or (node,))


def _of_unit(
    node: Expression, schema: Schema, verb: str, aggregation: DeviationProducts | UnitProducts
) -> UnitValueFeature:
    value = _value(node, schema, verb)
    return UnitValueFeature(node, value.low, value.high, required=aggregation.columns, max_rows=aggregation.max_rows)


def _centred(node: Expression, schema: Schema, verb: str, required: tuple[Expression, ...] = ()) -> ValueFeature:
    """A value minus the middle of its bounds, so that a row adds at most half of their distance."""
    value = _value(node, schema, verb, required)
    middle = (grid.steps(value.low, value) + grid.steps(value.high, value)) // 2
    return ValueFeature(node, value.low, value.high, middle, value.required)


def weighted_deviation(aggregation: WeightedMean, schema: Schema) -> tuple[Expression, float]:
    """A number minus the middle of its bounds, times its weight, and this middle: a row adds less than without it."""
    number = numeric_dtype_of(aggregation.column, schema, "mean")
    middle = number.low / 2 + number.high / 2
    deviation = Arithmetic("-", aggregation.column, Literal(middle))
    return Arithmetic("*", aggregation.denominator, deviation), middle


def scaled_weights(aggregation: Moments, schema: Schema) -> Expression | None:
    """The weights of rows, scaled to at most 1; None without weights."""
    if aggregation.weights is None:
        return None
    return Arithmetic("/", aggregation.weights, Literal(numeric_dtype_of(aggregation.weights, schema, "weights").high))


def scaled(node: Expression, schema: Schema) -> tuple[Expression, float, float]:
    """An expression scaled to -1 to 1, with the middle and half-width of its bounds."""
    number = numeric_dtype_of(node, schema, "moments")
    middle, reach = number.low / 2 + number.high / 2, number.high / 2 - number.low / 2
    _value(node, schema, "moments")
    return Arithmetic("/", Arithmetic("-", node, Literal(middle)), Literal(reach)), middle, reach


def moment_order(columns: int, categories: int) -> list[tuple[str, int, int]]:
    """The moments of some numbers and categories, in order: a kind, and the indices of the two factors."""
    return [
        ("count", 0, 0),
        *(("number", i, i) for i in range(columns)),
        *(("product", i, j) for i in range(columns) for j in range(i, columns)),
        *(("indicators", c, c) for c in range(categories)),
        *(("number by indicators", i, c) for i in range(columns) for c in range(categories)),
        *(("indicators by indicators", c, d) for c in range(categories) for d in range(c + 1, categories)),
    ]


def levels_of(node: Expression, schema: Schema) -> int:
    """The number of public values of an expression."""
    return len(public_keys_of(node, schema) or ())


def indicators_of(node: Expression, schema: Schema) -> int:
    """The number of indicators of a category: one for each value except the first."""
    return levels_of(node, schema) - 1


def _moments(aggregation: Moments, schema: Schema) -> tuple[Feature, ...]:
    """Count, sums and products of the columns, each scaled to -1 to 1, and of the indicators of categories.

    A square lies between 0 and 1, so 1/2 is subtracted and a row adds at most 1/2 to its sum.  At most one of the
    indicators of a category is 1, and each is equal to its square.  With weights, scaled to at most 1, all are
    multiplied by that of the row, and nothing is subtracted: a number of rows would be needed to add it again.
    """
    columns, categories, weights = aggregation.columns, aggregation.categories, scaled_weights(aggregation, schema)
    required = (*columns, *categories, *(() if aggregation.weights is None else (aggregation.weights,)))
    z = [scaled(node, schema)[0] for node in columns]

    def split(*indices: int) -> SlotLayout:
        by = tuple(categories[index] for index in indices)
        return SlotLayout(by, tuple(indicators_of(node, schema) for node in by))

    def count(layout: SlotLayout) -> Feature:
        if weights is None:
            return CountFeature(required, split=layout)
        return replace(_value(weights, schema, "weights", required), split=layout)

    def number(node: Expression, layout: SlotLayout) -> Feature:
        if weights is None:
            return replace(_centred(node, schema, "moments", required), split=layout)
        return replace(_value(Arithmetic("*", weights, node), schema, "moments", required), split=layout)

    def feature(kind: str, a: int, b: int) -> Feature:
        match kind:
            case "count":
                return count(SlotLayout())
            case "number":
                return number(z[a], SlotLayout())
            case "product":
                product = Arithmetic("**", z[a], Literal(2)) if a == b else Arithmetic("*", z[a], z[b])
                return number(product, SlotLayout())
            case "indicators":
                return count(split(a))
            case "number by indicators":
                return number(z[a], split(b))
        return count(split(a, b))

    return tuple(feature(*entry) for entry in moment_order(len(columns), len(categories)))


def tree_levels(number: Numeric) -> int:
    """Number of levels of the tree of a number; each leaf of fewer than `TREE_DEPTH` levels is one whole number."""
    return next(
        (level for level in range(1, TREE_DEPTH + 1) if _has_leaf_for_each(number, level)),
        TREE_DEPTH,
    )


def _has_leaf_for_each(number: Numeric, levels: int) -> bool:
    return number.whole and number.high - number.low < BRANCHING**levels


def _nodes(node: Expression, schema: Schema, *, graded: bool) -> TreeFeature:
    number, leaves = numeric_dtype_of(node, schema, "quantiles"), BRANCHING**TREE_DEPTH
    if _has_leaf_for_each(number, TREE_DEPTH):
        return TreeFeature(node, number.low, number.high, 1.0, tree_levels(number), True)
    _value(node, schema, "quantiles")
    if graded and not isinstance(node, Seconds):  # the 0 of a date means nothing
        end = number.high + number.whole  # the last leaf of whole numbers ends after the largest of them
        pieces = grid.pieces_of(number.low, end, leaves, whole=number.whole)
        if pieces:
            widest = max(piece.width for piece in pieces)
            return TreeFeature(node, number.low, number.high, widest, TREE_DEPTH, number.whole, pieces=pieces)
    return TreeFeature(node, number.low, number.high, (number.high - number.low) / leaves, TREE_DEPTH, False)
