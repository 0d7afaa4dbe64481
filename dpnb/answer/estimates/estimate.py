"""The view of a question: what is read off its noisy sums."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dpnb.answer.estimates.moments import MomentSums
from dpnb.answer.estimates.noisy import Cells, Estimate, Noisy, noisy_features
from dpnb.answer.estimates.quantiles import quantiles
from dpnb.answer.estimates.ratios import quotient
from dpnb.query.aggregations import (
    AnyView,
    Columns,
    Count,
    Discovery,
    FromMean,
    FromMoments,
    Gradient,
    Mean,
    Misfit,
    Moments,
    Quantiles,
    Ratio,
    Shares,
    Single,
    Units,
)
from dpnb.query.linear import LinearQuery
from dpnb.query.linear.features import Feature, Nodes, Value, indicators_of, scaled
from dpnb.query.schema import Schema

Part = list[tuple[Feature, Noisy]]


def estimate(query: LinearQuery, view: AnyView, sums: Cells, sigma: Cells, radius: Cells, schema: Schema) -> Estimate:
    """Turn noisy sums into estimates.

    Parameters
    ----------
    query : LinearQuery
    view : View
    sums : float64 array, shape (cells, slots)
        In integer steps.
    sigma : float64 array, shape (cells,)
        Their noise scale.
    radius : float64 array, shape (cells,)
        Half-width of the interval of one sum.
    schema : dict
    """
    z = radius / sigma

    def of_part(place: int, view: AnyView) -> Estimate:
        aggregation, first, count = query.parts[place]
        return _estimate(aggregation, view, noisy_features(query, sums, sigma, first, count), z, schema)

    # Beyond the range of doubles a result is infinite or unknown, never a warning.
    with np.errstate(all="ignore"):
        return _shown(view, of_part)


def _shown(view: AnyView, of_part: Callable[[int, AnyView], Estimate]) -> Estimate:
    if isinstance(view, Columns):
        return Estimate.side_by_side([of_part(named.part, named.view) for named in view.columns])
    return of_part(0, view)


def _estimate(aggregation: Single | Discovery, view: AnyView, part: Part, z: Cells, schema: Schema) -> Estimate:
    features, noisy = [feature for feature, _ in part], [sums for _, sums in part]
    match aggregation:
        case Discovery():
            raise TypeError("the noise of named groups is not normal: see `discovered`")
        case Gradient():
            return _slopes(noisy[0], z)
        case Mean() | Misfit() if not isinstance(view, FromMean):
            return _mean(features, noisy, z)
        case Ratio():
            return _ratio(features, noisy, z)
        case Moments():
            return _from_moments(aggregation, view, features, noisy, z, schema)
    first = features[0]
    if isinstance(first, Nodes):
        return quantiles(first, noisy[0], view.at if isinstance(view, Quantiles) else (0.5,), z)
    if isinstance(view, Shares):
        return _shares(first, noisy[0], z)
    return _linear(aggregation, first, noisy[0], z)


def _linear(aggregation: Single | Discovery, feature: Feature, sums: Noisy, z: Cells) -> Estimate:
    low, high = -math.inf, math.inf
    if isinstance(aggregation, Count | Units | Mean):
        low = 0.0
    elif isinstance(feature, Value):
        low, high = (0.0 if feature.low >= 0 else low), (0.0 if feature.high <= 0 else high)
    value, reach = sums.single, z * sums.scale
    return Estimate.of(value, value - reach, value + reach, sums.scale).cut(low, high, value=False)


def _slopes(sums: Noisy, z: Cells) -> Estimate:
    """The numbers of a gradient side by side."""
    scale = np.broadcast_to(sums.scale[:, None], sums.value.shape)
    reach = z[:, None] * scale
    return Estimate(sums.value, sums.value - reach, sums.value + reach, scale)


def _mean(features: list[Feature], sums: list[Noisy], z: Cells) -> Estimate:
    """The ratio of noisy centred sum and noisy count, put back to the column's own place."""
    value = _value(features[1])
    bounds = value.low - value.middle, value.high - value.middle
    count, total = sums
    found = quotient(total.single, count.single, (total.scale**2, count.scale**2), 0.0, z, bounds)
    return found.moved(shift=value.middle).cut(value.low, value.high)


def _ratio(features: list[Feature], sums: list[Noisy], z: Cells) -> Estimate:
    top, bottom = _value(features[0]), _value(features[1])
    low = 0.0 if top.low >= 0 and bottom.low >= 0 else -math.inf
    return quotient(
        sums[0].single,
        sums[1].single,
        (sums[0].scale ** 2, sums[1].scale ** 2),
        0.0,
        z,
        (low, math.inf),
        positive=bottom.low >= 0,
    )


def _shares(feature: Feature, sums: Noisy, z: Cells) -> Estimate:
    """Each group over the total of all, whose noise it shares in."""
    sign = -1.0 if isinstance(feature, Value) and feature.high <= 0 else 1.0
    signed = isinstance(feature, Value) and feature.low < 0 < feature.high
    variance = sums.scale**2
    return quotient(
        sign * sums.single,
        np.full_like(sums.single, sign * sums.single.sum()),
        (variance, np.full_like(variance, variance.sum())),
        variance,
        z,
        (-math.inf, math.inf) if signed else (0.0, 1.0),
        positive=not signed,
    )


def _from_moments(
    aggregation: Moments, view: AnyView, features: list[Feature], noisy: list[Noisy], z: Cells, schema: Schema
) -> Estimate:
    scales = np.array([scaled(node, schema)[1:] for node in aggregation.columns])
    sizes = [indicators_of(node, schema) for node in aggregation.categories]
    sums = MomentSums(features, noisy, scales[:, 0], scales[:, 1], sizes, z)
    if not isinstance(view, FromMoments):
        raise TypeError(type(view).__name__)
    match view.statistic:
        case "count":
            return sums.count()
        case "mean":
            return sums.mean(*view.columns)
        case "var":
            return sums.var(*view.columns)
        case "std":
            return sums.var(*view.columns, root=True)
        case "cov":
            return sums.cov(*view.columns)
        case "corr":
            return sums.corr(*view.columns)
    return sums.regression(*view.columns)


def _value(feature: Feature) -> Value:
    if not isinstance(feature, Value):  # a compiled query has one here; the type checker does not know
        raise TypeError(type(feature).__name__)
    return feature
