"""The view of a query: the statistics computed from its noisy sums, also the sizes of discovered groups.

A group is discovered because its noisy number of units reached a threshold, so the noise of discovered groups is not
normal: it is truncated at the threshold (`dpnb.accounting.truncated_normal`).  Intervals cover conditional on the
discovery of the group, however far below the threshold its true number is, and so on average over the discovered groups
too; estimates are as often too high as too low.

A noisy number is rounded to a multiple j of the output grid h, and the group is discovered if j is at least k.  So the
number of units plus real noise was at least (k - 1/2) h, which is the threshold here, and lay between (j - 1/2) h and
(j + 1/2) h, each of which gives one end of the interval.

A discovered group has at least one unit: noise is added only to groups with a unit.  The ends are whole numbers,
rounded outward.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dpnb._compile import LinearQuery
from dpnb._compile.features import Feature, TreeFeature, ValueFeature
from dpnb._compile.lowering import indicators_of, scaled, weighted_deviation
from dpnb._plan.expressions.dtypes import Numeric
from dpnb._plan.expressions.rules import numeric_dtype_of
from dpnb._plan.measurements import (
    AnyView,
    CoefficientsView,
    ColumnsView,
    Count,
    CountUnits,
    CumulativeCount,
    DeviationProducts,
    Discovery,
    Gradient,
    LevelCounts,
    LevelShareView,
    Mean,
    MeanCountView,
    ModelLoss,
    Moments,
    MomentsView,
    PlainView,
    Proportions,
    QuantilesView,
    Ratio,
    ScoreSums,
    Single,
    StandardErrorView,
    StepView,
    UnitProducts,
    WeightedMean,
    products_of,
)
from dpnb._plan.regression import RegressionDesign, design
from dpnb.accounting.prefix_sums import prefix_sum_scales, prefix_sums_of
from dpnb.accounting.truncated_normal import truncated_mean
from dpnb.mechanisms.measurement import Measurement
from dpnb.results.estimates.moments import DeviationSums, MomentSums, root_of
from dpnb.results.estimates.noisy import Cells, IntervalArrays, NoisyArrays, noisy_features, quotient, totals
from dpnb.results.estimates.outputs import pairs_of
from dpnb.results.estimates.quantiles import quantiles
from dpnb.schema import Schema

GIVEN = "conditional on the discovery of the groups"
"""The condition of the intervals of discovered groups, and of estimates computed from them."""

REACH = 8.0
"""How far below one unit the lower limits that arithmetic uses may lie, in standard deviations.

A limit that is clipped at one unit does not show the noise, and an unclipped limit is unbounded if a noisy number has
only just reached the threshold.
"""

FeatureSlice = list[tuple[Feature, NoisyArrays]]


def named_groups(measurement: Measurement, least: int, alpha: float) -> IntervalArrays:
    """The numbers of units of discovered groups with their intervals, each of which may miss with `alpha`.

    `least` is the smallest multiple of the output grid at which a group is discovered; see
    `dpnb.mechanisms.selection.least_named`.
    """
    sigma = measurement.sigma
    threshold = float(Fraction(2 * least - 1, 2) * Fraction(2) ** measurement.exponent)
    above = np.array([value - least for value in measurement.values], np.float64)
    # The grid in standard deviations, through the mantissa: neither needs to be in the range of normal doubles.
    mantissa, power = math.frexp(sigma)
    step = math.ldexp(1.0, measurement.exponent - power) / mantissa
    one = (1 - threshold) / sigma

    def units(grid_steps: float, log_tail: float, end: int, *, reach: float = 0.0) -> np.ndarray:
        excess = np.maximum(above + grid_steps, 0.0) * step
        return threshold + sigma * truncated_mean(excess, log_tail, least=one - reach)[end]

    with np.errstate(all="ignore"):
        low = np.floor(units(0.0, math.log(alpha / 2), 0, reach=REACH))
        high = np.maximum(np.ceil(units(1.0, math.log1p(-alpha / 2), 1)), 1.0)
        value = np.clip(units(0.5, -math.log(2), 0), 1.0, high)
        unclipped = IntervalArrays.of(value, low, high, np.full(len(value), sigma))
        return unclipped.clipped(1.0, math.inf)


@lru_cache(maxsize=1024)  # a search for a precision asks at many noise scales, each time it is made
def widest(sigma: float, threshold: float, alpha: float) -> float:
    """The largest half-width, in units, that the interval of a discovered group can have, for previews."""
    excess = np.linspace(0.0, 6.0, 301)
    one = (1 - threshold) / sigma
    low = truncated_mean(excess, math.log(alpha / 2), least=one)[0]
    high = truncated_mean(excess, math.log1p(-alpha / 2), least=one)[1]
    # Both ends rise with the excess, so between two points the width is at most the later high minus the earlier low.
    return sigma * float((high[1:] - low[:-1]).max()) / 2 + 1


def estimate(
    query: LinearQuery, view: AnyView, sums: Cells, sigma: Cells, radius: Cells, schema: Schema
) -> IntervalArrays:
    """Turn noisy sums into estimates.

    `sums`, of shape (cells, slots), are in integer steps of the grid.  `sigma` is the noise scale of the sums, and
    `radius` the half-width of the interval of one sum, both of shape (cells,).
    """
    z = radius / sigma

    def of_part(index: int, view: AnyView) -> IntervalArrays:
        aggregation, first, count = query.parts[index]
        return estimate_part(aggregation, view, noisy_features(query, sums, sigma, first, count), z, schema)

    # Beyond the range of doubles a result is infinite or unknown, never a warning.
    with np.errstate(all="ignore"):
        if isinstance(view, StandardErrorView):
            return _standard_error(query, of_part(0, PlainView()), sums, sigma, z, schema)
        if isinstance(view, StepView):
            return step_sums(query, sums, sigma, z, schema)
        if isinstance(view, ColumnsView):
            return IntervalArrays.side_by_side([of_part(named.part, named.view) for named in view.columns])
        return of_part(0, view)


def estimate_part(
    aggregation: Single | Discovery, view: AnyView, part: FeatureSlice, z: Cells, schema: Schema
) -> IntervalArrays:
    """The statistic of one part of a query."""
    features, noisy = [feature for feature, _ in part], [sums for _, sums in part]
    match aggregation:
        case Discovery():
            raise TypeError("the noise of discovered groups is not normal: see `partitions`")
        case Gradient():
            return _gradient(noisy[0], z)
        case UnitProducts() if isinstance(view, CoefficientsView):
            return IntervalArrays.side_by_side([_gradient(product, z) for product in noisy])
        case Mean() | ModelLoss() if not isinstance(view, MeanCountView):
            return _mean(features, noisy, z)
        case WeightedMean(column):
            return _weighted_mean(numeric_dtype_of(column, schema, "mean"), noisy, z)
        case Ratio():
            return _ratio(features, noisy, z)
        case LevelCounts() if isinstance(view, LevelShareView):
            return _level_share(noisy[0], view.level, z)
        case DeviationProducts():
            return deviation_sums(aggregation, part, schema).slopes(z)
        case Moments():
            return _from_moments(view, moment_sums(aggregation, part, z, schema))
    first = features[0]
    if isinstance(first, TreeFeature):
        return quantiles(first, noisy[0], view.at if isinstance(view, QuantilesView) else (0.5,), z)
    if isinstance(aggregation, CumulativeCount):
        return _cumulative(noisy[0], z)
    if isinstance(view, Proportions):
        return _proportions(first, noisy[0], z, view.size)
    return _linear(aggregation, first, noisy[0], z)


def _linear(aggregation: Single | Discovery, feature: Feature, sums: NoisyArrays, z: Cells) -> IntervalArrays:
    low, high = -math.inf, math.inf
    if isinstance(aggregation, Count | CountUnits | Mean):
        low = 0.0
    elif isinstance(feature, ValueFeature):
        low, high = (0.0 if feature.low >= 0 else low), (0.0 if feature.high <= 0 else high)
    value, reach = sums.single, z * sums.scale
    return IntervalArrays.of(value, value - reach, value + reach, sums.scale).clipped(low, high, value=False)


def _cumulative(measured: NoisyArrays, z: Cells) -> IntervalArrays:
    """The prefix sums of the cells, whose noise is correlated."""
    value, scale = prefix_sums_of(measured.single), measured.scale * prefix_sum_scales(len(measured.scale))
    return IntervalArrays.of(value, value - z * scale, value + z * scale, scale).clipped(0.0, math.inf, value=False)


def _gradient(sums: NoisyArrays, z: Cells) -> IntervalArrays:
    """The components of a gradient as outputs."""
    scale = np.broadcast_to(sums.scale[:, None], sums.value.shape)
    reach = z[:, None] * scale
    return IntervalArrays(sums.value, sums.value - reach, sums.value + reach, scale)


def _mean(features: list[Feature], sums: list[NoisyArrays], z: Cells) -> IntervalArrays:
    """The ratio of noisy centred sum and noisy count, shifted back by the middle of the bounds."""
    value = _value(features[1])
    bounds = value.low - value.middle, value.high - value.middle
    count, total = sums
    centred = quotient(total.single, count.single, (total.scale**2, count.scale**2), 0.0, z, bounds)
    return centred.rescaled(shift=value.middle).clipped(value.low, value.high)


def _weighted_mean(bounds: Numeric, sums: list[NoisyArrays], z: Cells) -> IntervalArrays:
    """The ratio of the noisy sum of weighted deviations to that of the weights, shifted back."""
    middle = bounds.low / 2 + bounds.high / 2
    total, weights = sums
    variances, ends = (total.scale**2, weights.scale**2), (bounds.low - middle, bounds.high - middle)
    return quotient(total.single, weights.single, variances, 0.0, z, ends).rescaled(shift=middle)


def _ratio(features: list[Feature], sums: list[NoisyArrays], z: Cells) -> IntervalArrays:
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


def _level_share(counts: NoisyArrays, level: int, z: Cells) -> IntervalArrays:
    """The count of one value divided by that of all, with which it shares noise."""
    variance = counts.scale**2
    total = counts.value.sum(axis=1)
    variances = variance, counts.value.shape[1] * variance
    return quotient(counts.value[:, level], total, variances, variance, z, (0.0, 1.0))


def _proportions(feature: Feature, sums: NoisyArrays, z: Cells, size: int) -> IntervalArrays:
    """Each group divided by the total of its `size` groups (0 for all), with which it shares noise."""
    sign = -1.0 if isinstance(feature, ValueFeature) and feature.high <= 0 else 1.0
    signed = isinstance(feature, ValueFeature) and feature.low < 0 < feature.high
    variance = sums.scale**2
    return quotient(
        sign * sums.single,
        sign * totals(sums.single, size),
        (variance, totals(variance, size)),
        variance,
        z,
        (-math.inf, math.inf) if signed else (0.0, 1.0),
        positive=not signed,
    )


def _standard_error(
    query: LinearQuery, mean: IntervalArrays, sums: Cells, sigma: Cells, z: Cells, schema: Schema
) -> IntervalArrays:
    """The root of the sum of squared influences, over the number of rows."""
    products = products_of(query.plan.aggregation)
    if products is None:
        raise TypeError(type(query.plan.aggregation).__name__)
    squares = measured_squares(query, products, mean.value[:, 0], sums, sigma, schema)
    count = noisy_features(query, sums, sigma, 0, 1)[0][1]
    variance = quotient(
        squares.single,
        np.where(count.single > 0, count.single, np.nan) ** 2,
        (squares.scale**2, (2 * count.single * count.scale) ** 2),
        0.0,
        z,
        (0.0, math.inf),
    )
    return root_of(variance)


def measured_squares(
    query: LinearQuery, products: UnitProducts, theta: Cells, sums: Cells, sigma: Cells, schema: Schema
) -> NoisyArrays:
    """M = sum over units of (s - theta m)^2 at an estimate theta of shape (cells,), with its noise scale.

    The products are the second part of the query; a unit adds s to the numerator, m to the denominator of the first.
    """
    (statistic, first, number), (_, second, many) = query.parts[:2]
    shown = noisy_features(query, sums, sigma, first, number)
    terms = [noisy for _, noisy in noisy_features(query, sums, sigma, second, many)]
    if isinstance(statistic, WeightedMean):
        theta = theta - weighted_deviation(statistic, schema)[1]
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


def moment_sums(aggregation: Moments, part: FeatureSlice, z: Cells, schema: Schema) -> MomentSums:
    """The noisy moments that one part of a query measured."""
    features, noisy = [feature for feature, _ in part], [sums for _, sums in part]
    scales = np.array([scaled(node, schema)[1:] for node in aggregation.columns])
    sizes = [indicators_of(node, schema) for node in aggregation.categories]
    return MomentSums(features, noisy, scales[:, 0], scales[:, 1], sizes, z)


def deviation_sums(aggregation: DeviationProducts, part: FeatureSlice, schema: Schema) -> DeviationSums:
    """The noisy products of deviations that one part of a query measured."""
    reaches = np.array([scaled(node, schema)[2] for node in aggregation.columns])
    return DeviationSums(reaches, [sums for _, sums in part])


def _from_moments(view: AnyView, sums: MomentSums) -> IntervalArrays:
    if not isinstance(view, MomentsView):
        raise TypeError(type(view).__name__)
    match view.statistic:
        case "count":
            return sums.count()
        case "mean":
            return sums.mean(*view.columns)
        case "var":
            return sums.of_columns(*view.columns).var(0, ddof=view.ddof)
        case "std":
            return sums.of_columns(*view.columns).var(0, ddof=view.ddof, root=True)
        case "cov" | "corr":
            return _of_pair(sums, view, *view.columns)
        case "cov matrix" | "corr matrix":
            return IntervalArrays.side_by_side([_of_pair(sums, view, i, j) for i, j in pairs_of(view)])
    return sums.regression(*view.columns)


def _of_pair(sums: MomentSums, view: MomentsView, i: int, j: int) -> IntervalArrays:
    """The covariance or the correlation of two columns."""
    pair, other = sums.of_columns(*sorted({i, j})), int(i != j)
    return pair.cov(0, other, ddof=view.ddof) if view.statistic.startswith("cov") else pair.corr(0, other)


def _value(feature: Feature) -> ValueFeature:
    if not isinstance(feature, ValueFeature):  # never true: for the type checker
        raise TypeError(type(feature).__name__)
    return feature


def step_sums(query: LinearQuery, sums: Cells, sigma: Cells, z: Cells, schema: Schema) -> IntervalArrays:
    """The score of each term, then for each other part the sum of each pair of terms; see `dpnb._compile.scores`.

    Two indicators of one category are never 1 in the same row, so where a row is a unit their sum is 0 without noise.
    """
    return IntervalArrays.side_by_side(
        [_sums_of_step(query, index, sums, sigma, z, schema) for index in range(len(query.parts))]
    )


def _sums_of_step(
    query: LinearQuery, index: int, sums: Cells, sigma: Cells, z: Cells, schema: Schema
) -> IntervalArrays:
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
