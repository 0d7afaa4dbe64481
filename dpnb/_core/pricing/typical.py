"""The sums of second moments of typical values, at which errors that depend on the answer itself are forecast.

The noise and the number of rows do not determine the error of a variance, a correlation or a regression: it depends on
how much the columns vary.  Before a first observation the forecast is for typical values: each number about the middle
of its bounds, with a standard deviation of a sixth of their distance, each value of a category in as many rows, and no
column related to another; a weight in the middle of its bounds.  It is computed from the declaration and a number of
rows that is released or public.  It is only shown: no target is priced with it.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpnb._compile import LinearQuery
from dpnb._compile.features import Feature, ValueFeature
from dpnb._compile.lowering import levels_of, moment_order, scaled
from dpnb._plan.measurements import (
    DeviationProducts,
    Mean,
    Measured,
    Moments,
    ScoreSums,
    UnitProducts,
    products_of,
)
from dpnb._plan.regression import design
from dpnb.schema import Schema

TYPICAL = "the values are typical"
"""The assumption in a clause."""

TYPICAL_VALUES = (
    "typical values, whose standard deviation is a sixth of the distance of the declared bounds, and no column is "
    "related to another; the error is larger, or unknown, if they vary less or columns are related"
)
"""The assumption in words."""

HALF_WITHIN = "; half of the variance of a number is within a unit, which has the largest number of rows"

SQUARE = 1 / 9
"""Mean square of a typical number that is scaled to -1 ... 1: a sixth of the distance of its bounds is a third."""

WITHIN = 1 / 2
"""The part of a typical number's variance that is within units, where a unit has several rows."""

Floats = NDArray[np.float64]


def typical_words(aggregation: Measured) -> str:
    """The assumption in words, for what is measured."""
    return TYPICAL_VALUES + (HALF_WITHIN if isinstance(aggregation, DeviationProducts) else "")


def typical_sums(query: LinearQuery, rows: Floats, schema: Schema) -> Floats | None:
    """The sums of typical values, shape (cells, slots), in integer steps, for a number of rows in each cell.

    NaN for sums that are neither second moments nor beside them; None if all are.
    """
    sums = np.full((len(rows), sum(feature.slots for feature in query.features)), np.nan)
    at = 0
    for aggregation, first, count in query.parts:
        features = query.features[first : first + count]
        means = _means(aggregation, features, query, schema)
        for feature, mean in zip(features, means or [None] * count, strict=True):
            if mean is not None:
                sums[:, at : at + feature.slots] = rows[:, None] * mean / float(feature.unit)
            at += feature.slots
    return None if np.isnan(sums).all() else sums


def _means(
    aggregation: Measured, features: tuple[Feature, ...], query: LinearQuery, schema: Schema
) -> list[float] | list[Floats] | None:
    """What one row adds to each feature, on average; None for features of other aggregations."""
    match aggregation:
        case Moments():
            return _of_moments(aggregation, features, schema)
        case DeviationProducts(columns, max_rows):
            squares = [SQUARE * WITHIN * (1 - 1 / max_rows) * scaled(node, schema)[2] ** 2 for node in columns]
            size = len(columns)
            return [squares[i] if i == j else 0.0 for i in range(size) for j in range(i, size)]
        case ScoreSums():
            return _of_scores(aggregation, features, schema)
        case Mean(column) if products_of(query.plan.aggregation) is not None:
            return [1.0, scaled(column, schema)[1] - _middle(features[1])]
        case UnitProducts(max_rows=max_rows) if isinstance(query.parts[0][0], Mean):
            # of a sum of deviations from the middle with itself; a mean of 0 leaves nothing of the other products
            reach = scaled(query.parts[0][0].column, schema)[2]
            return [SQUARE * reach**2 * (1 + (max_rows - 1) * (1 - WITHIN)), *[0.0] * (len(features) - 1)]
    return None


def _middle(feature: Feature) -> float:
    return feature.middle if isinstance(feature, ValueFeature) else 0.0


def _of_moments(aggregation: Moments, features: tuple[Feature, ...], schema: Schema) -> list[float]:
    shares, found = [1 / levels_of(node, schema) for node in aggregation.categories], []
    weight = 1.0 if aggregation.weights is None else _weight(features[0])
    for feature, (kind, a, b) in zip(features, moment_order(len(aggregation.columns), len(shares)), strict=True):
        share = 1.0
        match kind:
            case "indicators":
                share = shares[a]
            case "number by indicators":
                share = shares[b]
            case "indicators by indicators":
                share = shares[a] * shares[b]
        mean = SQUARE if kind == "product" and a == b else 0.0 if kind.startswith(("product", "number")) else 1.0
        found.append(share * (weight * mean - _middle(feature)))
    return found


def _weight(count: Feature) -> float:
    """A weight in the middle of its bounds, as part of the largest."""
    return (count.low + count.high) / 2 if isinstance(count, ValueFeature) else 1.0


def _of_scores(aggregation: ScoreSums, features: tuple[Feature, ...], schema: Schema) -> list[Floats]:
    """Of a step at the maximum of the likelihood: the score is 0, and its products are the information."""
    layout = design(aggregation.model, schema)
    if aggregation.part == "score":
        return [np.zeros(feature.slots) for feature in features]
    intercept = aggregation.at[0]
    slope = math.exp(intercept) if aggregation.model.family == "poisson" else 1 / (2 + 2 * math.cosh(intercept))
    means = np.concatenate([[1.0], np.zeros(len(layout.middles)), *(np.full(n, 1 / (n + 1)) for n in layout.sizes)])
    products = np.outer(means, means)
    for index, block in enumerate(layout.blocks):
        own = slice(block.start, block.stop)
        squares = means[own] if layout.is_category(index) else np.array([SQUARE if index else 1.0])
        products[own, own] = np.diag(squares)
    if aggregation.part == "products" and aggregation.max_rows > 1:
        of_unit = 1 + (aggregation.max_rows - 1) * (1 - WITHIN)
        return [np.array([slope * of_unit * number]) for number in products[np.triu_indices(layout.terms)]]
    found = []
    for a, b in layout.pairs_of_blocks:
        part = products[layout.blocks[a].start : layout.blocks[a].stop, layout.blocks[b].start : layout.blocks[b].stop]
        found.append(slope * (np.diag(part) if a == b else part.ravel()))
    return found
