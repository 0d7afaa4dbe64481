"""The sum over units of their squared influence on a sum, mean or ratio, from products measured beside it."""

from __future__ import annotations

import numpy as np

from dpnb._compile import LinearQuery
from dpnb._compile.features import ValueFeature
from dpnb._plan.measurements import Mean, UnitProducts
from dpnb.results.estimates.noisy import Cells, NoisyArrays, noisy_features


def measured_squares(
    query: LinearQuery, products: UnitProducts, theta: Cells, sums: Cells, sigma: Cells
) -> NoisyArrays:
    """M = sum over units of (s - theta m)^2 at an estimate theta of shape (cells,), with its noise scale.

    The products are the second part of the query; a unit adds s to the numerator, m to the denominator of the first.
    """
    (statistic, first, number), (_, second, many) = query.parts[:2]
    shown = noisy_features(query, sums, sigma, first, number)
    terms = [noisy for _, noisy in noisy_features(query, sums, sigma, second, many)]
    if isinstance(statistic, Mean):
        value = shown[1][0]
        theta = theta - (value.middle if isinstance(value, ValueFeature) else 0.0)
        if products.squares:  # each row is a unit, so m = 1: the other sums are those of the mean
            terms += [shown[1][1], shown[0][1]]
    factors = [np.ones_like(theta), -2 * theta, theta**2]
    pairs = list(zip(factors, terms, strict=False))
    total = sum(factor * term.single for factor, term in pairs)
    variance = sum((factor * term.scale) ** 2 for factor, term in pairs)
    return NoisyArrays(np.asarray(total)[:, None], np.sqrt(variance))
