"""The sums of second moments of typical values, at which errors that depend on the answer itself are forecast.

The noise and the number of rows do not determine the error of a variance, a correlation or a regression: it depends on
how much the columns vary.  Before a first observation the forecast is for typical values: each number about the middle
of its bounds, with a standard deviation of a sixth of their distance, each value of a category in as many rows, and no
column related to another.  It is computed from the declaration and a number of rows that is released or public.  It is
only shown: no target is priced with it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpnb._compile import LinearQuery
from dpnb._compile.features import Feature, ValueFeature
from dpnb._compile.lowering import levels_of, moment_order
from dpnb._plan.measurements import Moments
from dpnb.schema import Schema

TYPICAL = "the values are typical"
"""The assumption in a clause."""

TYPICAL_VALUES = (
    "typical values, whose standard deviation is a sixth of the distance of the declared bounds, and no column is "
    "related to another; the error is larger, or unknown, if they vary less or columns are related"
)
"""The assumption in words."""

SQUARE = 1 / 9
"""Mean square of a typical number that is scaled to -1 ... 1: a sixth of the distance of its bounds is a third."""

Floats = NDArray[np.float64]


def typical_sums(query: LinearQuery, rows: Floats, schema: Schema) -> Floats | None:
    """The sums of typical values, shape (cells, slots), in integer steps, for a number of rows in each cell.

    NaN for sums that are not second moments; None if none is, or if rows have weights.
    """
    sums = np.full((len(rows), sum(feature.slots for feature in query.features)), np.nan)
    for aggregation, first, count in query.parts:
        if isinstance(aggregation, Moments) and aggregation.weights is None:
            at = sum(feature.slots for feature in query.features[:first])
            features = query.features[first : first + count]
            for feature, mean in zip(features, _means(aggregation, features, schema), strict=True):
                steps = mean / float(feature.unit)
                sums[:, at : at + feature.slots] = rows[:, None] * steps
                at += feature.slots
    return None if np.isnan(sums).all() else sums


def _means(aggregation: Moments, features: tuple[Feature, ...], schema: Schema) -> list[float]:
    """What one row adds to each feature, on average."""
    shares, found = [1 / levels_of(node, schema) for node in aggregation.categories], []
    for feature, (kind, a, b) in zip(features, moment_order(len(aggregation.columns), len(shares)), strict=True):
        share = 1.0
        match kind:
            case "indicators":
                share = shares[a]
            case "number by indicators":
                share = shares[b]
            case "indicators by indicators":
                share = shares[a] * shares[b]
        middle = feature.middle if isinstance(feature, ValueFeature) else -1.0  # of a count: each row adds 1
        found.append(share * ((SQUARE if kind == "product" and a == b else 0.0) - middle))
    return found
