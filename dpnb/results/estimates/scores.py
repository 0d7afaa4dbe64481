"""The noisy sums of a step of a regression, in the order of their names: by term, then by pair of terms."""

from __future__ import annotations

import numpy as np

from dpnb._compile import LinearQuery
from dpnb._plan.measurements import ScoreSums
from dpnb._plan.regression import RegressionDesign, design
from dpnb.results.estimates.noisy import Cells, IntervalArrays, noisy_features
from dpnb.schema import Schema


def step_sums(query: LinearQuery, sums: Cells, sigma: Cells, z: Cells, schema: Schema) -> IntervalArrays:
    """The score of each term, then for each other part the sum of each pair of terms; see `dpnb._compile.scores`.

    Two indicators of one category are never 1 in the same row, so where a row is a unit their sum is 0 without noise.
    """
    return IntervalArrays.side_by_side(
        [_part(query, index, sums, sigma, z, schema) for index in range(len(query.parts))]
    )


def _part(query: LinearQuery, index: int, sums: Cells, sigma: Cells, z: Cells, schema: Schema) -> IntervalArrays:
    aggregation, first, count = query.parts[index]
    if not isinstance(aggregation, ScoreSums):  # never: the view does not fit
        raise TypeError(type(aggregation).__name__)
    terms = design(aggregation.model, schema)
    places = [term for block in terms.blocks for term in block]
    if aggregation.part != "score":
        pairs = [(i, j) for i in range(terms.terms) for j in range(i, terms.terms)]
        order = {pair: at for at, pair in enumerate(pairs)}
        by_unit = aggregation.part == "products" and aggregation.max_rows > 1
        places = [order[pair] for pair in (pairs if by_unit else _pairs_of_slots(terms))]
    value, scale = np.zeros((2, len(sums), max(places) + 1))
    start = 0
    for feature, noisy in noisy_features(query, sums, sigma, first, count):
        own = places[start : start + feature.slots]
        value[:, own], scale[:, own] = noisy.value, noisy.scale[:, None]
        start += feature.slots
    reach = z[:, None] * scale
    return IntervalArrays(value, value - reach, value + reach, scale)


def _pairs_of_slots(terms: RegressionDesign) -> list[tuple[int, int]]:
    """The pair of terms of each slot of the features of the pairs of blocks."""
    found: list[tuple[int, int]] = []
    for a, b in terms.pairs_of_blocks:
        if a == b:
            found += [(term, term) for term in terms.blocks[a]]
        else:
            found += [(i, j) for i in terms.blocks[a] for j in terms.blocks[b]]
    return found
