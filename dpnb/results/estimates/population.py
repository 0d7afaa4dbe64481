"""Population intervals: those of the value in the population from which the privacy units are a sample.

Units are independent draws, each with all that it adds after clamping and contribution limits.  The error of an
estimate has two independent parts: the noise, and the sampling of the units, whose variance is estimated from
released values (linearisation; for rows of persons this is the cluster-robust variance).  With s_u and m_u what unit
u adds to the numerator and denominator of a ratio theta = S/N, and M = sum over units of (s_u - theta m_u)^2::

    Var(theta) = M/N^2

* Shares, where each row is a unit: M = N theta (1 - theta).  The set of all theta within z standard deviations is
  Wilson's interval.  Counts: M is the count (units arrive independently).
* Means with second moments, where each row is a unit: M = N times the variance.
* Quantiles, where each row is a unit, in rows of rank: M = N q (1 - q).
* Coefficients of a regression, where each row is a unit: by one variance of the errors, or from measured sums of
  products (`dpnb.results.estimates.least_squares`).
* Otherwise M is a sum of squares or products of what units add, measured in addition (`dpnb._compile.products`); its
  noise scale is added to it once, since M enters with its root: without that, coverage falls where M is small.
  For tests less is added, what keeps their level at 5% (`dpnb.results.estimates.newton` derives it): with s the noise
  scale of M and V the whole variance, s itself or ``(1 + z^2)/4 s^2/V``, the smaller one.
* Where units have up to k rows and M was not measured: by the inequality of Cauchy and Schwarz it is at most k times
  the M of rows taken as units.
* A sample of a fraction F of the population at random: M is multiplied by 1 - F (Cochran 1977, *Sampling Techniques*,
  section 2.6); a census has no sampling error.

The distances of both parts from the estimate are added in quadrature (the MOVER of Zou and Donner 2008).  A refined
answer was refined because of earlier ones, with the same sample: its half-widths are added in full, at errors that add
up to a fifth of alpha, and the interval is intersected with that of the first observation, at the rest of it.  So a
refinement never widens an interval, and all of them together miss with probability at most alpha, as far as M and the
normality of the sampling error are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dpnb._compile import LinearQuery
from dpnb._compile.features import BRANCHING, TreeFeature, ValueFeature
from dpnb._compile.lowering import scaled
from dpnb._compile.sensitivity import cells_of_unit, max_rows_in_cell, rows_of_unit
from dpnb._plan.expressions.rules import is_zero_or_one, numeric_dtype_of
from dpnb._plan.measurements import (
    AnyView,
    ColumnsView,
    Count,
    CountUnits,
    Discovery,
    LevelCounts,
    LevelShareView,
    Mean,
    MeanCountView,
    Moments,
    MomentsView,
    PlainView,
    Proportions,
    QuantilesView,
    Ratio,
    Single,
    StandardErrorView,
    Sum,
    WeightedMean,
    is_regression,
    products_of,
)
from dpnb.results.estimates.estimate import FeatureSlice, estimate_part, measured_squares, moment_sums
from dpnb.results.estimates.linear import least_squares, sampling_of
from dpnb.results.estimates.noisy import Cells, IntervalArrays, SampledAs, noisy_features, totals
from dpnb.results.estimates.quantiles import Sampling as RankSampling
from dpnb.results.estimates.quantiles import quantiles
from dpnb.schema import Schema

Z_SQUARED = 1.959963984540054**2

Reach = tuple[Cells, Cells]
"""Distances from the estimate to the lower and upper limit, each of shape (cells,)."""


@dataclass(frozen=True)
class SamplingError:
    """What is known of the sampling error of an answer, from declarations and released values.

    `squares` has M for each number, with its noise scale; shape (cells, outputs), NaN where it was not measured.  Of a
    regression it has the products of `LeastSquares.robust` instead.
    """

    z: float  # half-width of an interval, in standard deviations
    remaining: float = 1.0  # 1 - F: the part of the population that was not drawn
    squares: tuple[Cells, Cells] | None = None
    additive: bool = False  # whether half-widths are added
    for_test: bool = False  # whether to allow for the noise of M as much as a test needs it, on average


def population(
    query: LinearQuery, view: AnyView, sums: Cells, sigma: Cells, radius: Cells, schema: Schema, error: SamplingError
) -> IntervalArrays:
    """The estimates with population intervals, NaN where the sampling error is not known; see `estimate`."""
    z, count = radius / sigma, len(view.columns) if isinstance(view, ColumnsView) else 1

    def column(index: int, part: int, view: AnyView) -> IntervalArrays:
        aggregation, first, number = query.parts[part]
        features = noisy_features(query, sums, sigma, first, number)
        noise = estimate_part(aggregation, view, features, z, schema)
        places = slice(index, index + 1) if count > 1 else slice(None)
        known = None if error.squares is None else (error.squares[0][:, places], error.squares[1][:, places])
        return _SampledPart(query, aggregation, view, features, noise, z, schema, error, known).intervals(sums, sigma)

    with np.errstate(all="ignore"):
        if isinstance(view, ColumnsView):
            return IntervalArrays.side_by_side(
                [column(index, named.part, named.view) for index, named in enumerate(view.columns)]
            )
        return column(0, 0, view)


@dataclass(frozen=True)
class _SampledPart:
    """One part of a query, with its estimates."""

    query: LinearQuery
    aggregation: Single | Discovery
    view: AnyView
    features: FeatureSlice
    noise: IntervalArrays
    z: Cells
    schema: Schema
    error: SamplingError
    squares: tuple[Cells, Cells] | None

    def intervals(self, sums: Cells, sigma: Cells) -> IntervalArrays:
        feature, _ = self.features[0]
        if isinstance(feature, TreeFeature):
            return self._quantiles(feature)
        reach = self._of_coefficients(sums, sigma) if is_regression(self.view) else self._reach(sums, sigma)
        if reach is None:
            unknown = np.full_like(self.noise.value, np.nan)
            return IntervalArrays(self.noise.value, unknown, unknown, self.noise.noise_scale)
        below, above = (distance.reshape(len(self.noise.value), -1) for distance in reach)
        widened = self.noise.widened(below, above, additive=self.error.additive)
        return widened.clipped(*self._range, value=False)

    @property
    def _range(self) -> tuple[float, float]:
        """The range of the quantity."""
        match self.aggregation, self.view:
            case (Count() | CountUnits(), PlainView()) | (_, MeanCountView()):
                return 0.0, math.inf
            case Mean(), _:
                value = self.features[1][0]
                return (value.low, value.high) if isinstance(value, ValueFeature) else (-math.inf, math.inf)
            case _, Proportions() | LevelShareView():
                return 0.0, 1.0
            case WeightedMean(column), _:
                bounds = numeric_dtype_of(column, self.schema, "mean")
                return bounds.low, bounds.high
            case Ratio(), _:
                ends = [of.low for of, _ in self.features if isinstance(of, ValueFeature)]
                return (0.0 if min(ends) >= 0 else -math.inf), math.inf
            case Moments(columns), MomentsView("mean", (column,)):
                _, middle, reach = scaled(columns[column], self.schema)
                return middle - reach, middle + reach
            case Moments(), MomentsView("count"):
                return 0.0, math.inf
            case Moments(columns), MomentsView("var" | "std" | "cov" as statistic, at, _, ddof):
                reaches = [scaled(columns[index], self.schema)[2] for index in (at[0], at[-1])]
                most = math.prod(reaches) * (1 + ddof)
                return (-most, most) if statistic == "cov" else (0.0, most if statistic == "var" else math.sqrt(most))
            case Moments(), MomentsView("corr"):
                return -1.0, 1.0
        return -math.inf, math.inf

    def _of_coefficients(self, sums: Cells, sigma: Cells) -> Reach | None:
        """The distances of the coefficients of a regression."""
        model = None if len(sums) > 1 else least_squares(self.query, self.view, sums, sigma, self.schema)
        if model is None or not model.is_definite:
            return None
        covariance = sampling_of(self.query, model, self.error.remaining, self.squares)
        return None if covariance is None else (self.error.z * np.sqrt(np.maximum(np.diag(covariance), 0.0)),) * 2

    # --- M, where it follows from what is released -----------------------------------------------------------------

    def _rows(self, *, of_groups: bool = False) -> float:
        """The largest number of rows of a unit, in one group or in all; infinite if nothing bounds it."""
        bounds = self.query.contribution_bounds
        rows = rows_of_unit(bounds, self.query.cells) if of_groups else max_rows_in_cell(bounds)
        return math.inf if rows is None or self.query.clip_squared is not None else rows

    def _reach(self, sums: Cells, sigma: Cells) -> Reach | None:
        """The distances through sampling alone; None if they are not known."""
        if self.query.clip_squared is not None:
            return None
        own = self._measured(sums, sigma)
        squares = self.squares if own is None else own
        if squares is not None and (own is not None or np.isfinite(squares[0]).any()):
            value, scale = np.maximum(squares[0][:, 0], 0.0), squares[1][:, 0]
            if self.error.for_test:
                whole = np.maximum(value + (self.noise.noise_scale[:, 0] * self._divisor) ** 2, np.finfo(float).tiny)
                scale = np.minimum(scale, (1 + Z_SQUARED) / 4 * scale**2 / whole)
            deviation = np.sqrt((value + scale) * self.error.remaining) / self._divisor
            return (self.error.z * deviation,) * 2
        return self._without_squares()

    def _measured(self, sums: Cells, sigma: Cells) -> tuple[Cells, Cells] | None:
        """M from the products that were measured in the same query, with its noise scale."""
        products = products_of(self.query.plan.aggregation)
        if products is None:
            return None
        squares = measured_squares(self.query, products, self.noise.value[:, 0], sums, sigma, self.schema)
        return squares.value, squares.scale[:, None]

    @property
    def _divisor(self) -> Cells:
        """N: what the sum of influences is divided by."""
        match self.aggregation, self.view:
            case (Count() | CountUnits() | Sum(), _) | (_, MeanCountView() | MomentsView("count")):
                return np.ones(len(self.noise.value))
            case Ratio(), _:
                divisor = np.abs(self.features[1][1].single)
            case _:
                divisor = self.features[0][1].single
        return np.where(divisor > 0, divisor, np.nan)

    def _without_squares(self) -> Reach | None:
        aggregation, view, noisy = self.aggregation, self.view, self.features[0][1]
        of_all = isinstance(view, Proportions)
        of_unit = self._rows(of_groups=of_all)
        if isinstance(aggregation, CountUnits):  # which a unit adds once to each group
            of_unit = cells_of_unit(self.query.contribution_bounds, self.query.cells) if of_all else 1.0
        times = of_unit * self.error.remaining
        if not math.isfinite(times):
            return None
        match aggregation, view:
            case Count() | CountUnits(), PlainView():
                return self._of_count(noisy.single, times)
            case (Mean(), MeanCountView()) | (Moments(), MomentsView("count")):
                return self._of_count(noisy.single, times)
            case Sum(column), PlainView() if is_zero_or_one(column, self.schema):
                return self._of_count(noisy.single, times)
            case Count() | CountUnits(), Proportions(size=size):
                return self._of_share(totals(noisy.single, size), times)
            case Mean(column), PlainView() if is_zero_or_one(column, self.schema):
                return self._of_share(noisy.single, times)
            case LevelCounts(), LevelShareView():
                return self._of_share(noisy.value.sum(axis=1), times)
            case Moments(), MomentsView("mean"):
                sums = moment_sums(aggregation, self.features, self.z, self.schema)
                variance = sums.of_columns(*view.columns).var(0, ddof=0)
                value, scale = np.maximum(variance.value[:, 0], 0.0), variance.noise_scale[:, 0]
                return (self.error.z * np.sqrt(times * (value + scale) / self._divisor),) * 2
        return None

    def _of_count(self, count: Cells, times: float) -> Reach:
        """The means of all counts of which this one is within z standard deviations, the roots of these means."""
        half = self.error.z**2 * times / 2
        root = np.sqrt(2 * half * np.maximum(count, 0.0) + half**2)
        return root - half, root + half

    def _of_share(self, total: Cells, times: float) -> Reach:
        """Wilson's interval of the share of a total."""
        share = np.clip(self.noise.value[:, 0], 0.0, 1.0)
        square = self.error.z**2 * times / np.where(total > 0, total, np.nan)
        middle = (share + square / 2) / (1 + square)
        half = np.sqrt(square * share * (1 - share) + square**2 / 4) / (1 + square)
        return share - middle + half, middle + half - share

    def _quantiles(self, feature: TreeFeature) -> IntervalArrays:
        """By the rank: the number of rows up to the quantile, less q times that of all rows."""
        noisy = self.features[0][1]
        levels = np.array(self.view.at if isinstance(self.view, QuantilesView) else (0.5,))
        total = np.maximum(noisy.value[:, :BRANCHING].sum(axis=1), 0.0)[:, None]
        variance = total * levels * (1 - levels) * self._rows()
        if self.squares is not None:
            measured = np.maximum(self.squares[0], 0.0) + self.squares[1]
            variance = np.where(np.isfinite(measured), measured, variance)
        variance = np.where((levels > 0) & (levels < 1), variance * self.error.remaining, np.nan)
        known = np.isfinite(variance).any(axis=0)  # the extremes of a population are not known from a sample
        rank = RankSampling(np.where(np.isfinite(variance), variance, 0.0), self.error.z, self.error.additive)
        found = quantiles(feature, noisy, tuple(levels.tolist()), self.z, rank)
        # The noise alone may contradict itself, and its interval is then the whole range.
        low, high = np.minimum(found.low, self.noise.low), np.maximum(found.high, self.noise.high)
        whole = found.has_whole_range | self.noise.has_whole_range
        low, high = np.where(known, low, np.nan), np.where(known, high, np.nan)
        return IntervalArrays(found.value, low, high, self.noise.noise_scale, whole_range=whole)


def sampled_as(query: LinearQuery, view: AnyView, schema: Schema, error: SamplingError) -> SampledAs:
    """What the population intervals of a first observation are computed with."""
    aggregation, _, _ = query.parts[0]
    statistic: Literal["count", "share"] | None = None
    if isinstance(view, PlainView):
        if isinstance(aggregation, Count | CountUnits):
            statistic = "count"
        elif isinstance(aggregation, Mean) and is_zero_or_one(aggregation.column, schema):
            statistic = "share"
    is_measured = error.squares is not None or products_of(query.plan.aggregation) is not None
    if statistic is None or is_measured or query.clip_squared is not None:
        return SampledAs(error.z, statistic)
    rows = 1.0 if isinstance(aggregation, CountUnits) else max_rows_in_cell(query.contribution_bounds)
    return SampledAs(error.z, statistic, None if rows is None else rows * error.remaining)


SAMPLED_MOMENTS = ("count", "mean", "var", "std", "cov", "corr")
"""Statistics of moments whose sampling error can be measured."""


MEASURE_IT = (
    "measure it by .population(share=0.01); population=True is for a first release, since another one refines the "
    "answer, and refined answers have no tests"
)


def population_remedy(view: AnyView) -> str:
    """How the population interval of an answer without one is obtained, in words."""
    if isinstance(view, StandardErrorView):
        return "release the mean by .mean(population=True), which is the same measurement"
    is_moment = isinstance(view, MomentsView) and view.statistic in SAMPLED_MOMENTS
    if is_moment or isinstance(view, PlainView | QuantilesView | ColumnsView):
        return MEASURE_IT
    return "population intervals are not offered for this statistic"
