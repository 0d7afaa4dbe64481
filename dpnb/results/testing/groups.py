"""Tests of numbers with population intervals: of one or several and a value, of several groups, and of a trend.

One number
----------
Let the interval of z standard deviations reach from l to u around the estimate x.  The statistic for the value v is
``z (x - v)/(x - l)`` for x above v, and ``z (x - v)/(u - x)`` below: at the level of the interval the test rejects v
exactly if the interval excludes it.  So the p-value has what the interval has: Fieller's set for quotients of noisy
sums, Wilson's for shares, and for a difference the square-and-add of both (Zou and Donner 2008).

Several numbers
---------------
The test of coefficients of a regression is Wald's.  With b the chosen coefficients, V their covariance through sampling
and noise and v their values under the null hypothesis, ``(b - v)' V^-1 (b - v)`` has as many degrees of freedom as
coefficients; of one coefficient its root is compared with the normal distribution.

Several groups
--------------
With x_i the independent estimates of k groups, of variance v_i, which covers sampling and noise, and m their mean with
weights 1/v_i, the sum of ``(x_i - m)^2 / v_i`` has k - 1 degrees of freedom (Wald; Cochran 1954, *The combination of
estimates from different experiments*).  Of counts and shares v_i is that of the null hypothesis, at their common value,
as in Pearson's test: an own estimate of each is small where the estimate is, and the test would reject too often.  If a
unit may be in several groups, the sampling errors may be dependent: by the inequality of Cauchy and Schwarz, the
variance of any contrast through sampling is then at most k times as large.

Trend
-----
With s the mean of the scores s_i with the same weights, ``b = sum (s_i - s) x_i / v_i  /  sum (s_i - s)^2 / v_i`` is
the slope of the weighted least squares line; of shares it is the test of Cochran and Armitage, with noise.  Where a
unit may be in several groups, its standard deviation through sampling is at most the sum of those of its terms.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpnb.results.estimates.noisy import Cells, SampledAs
from dpnb.results.testing.hypothesis import UNKNOWN, ReferredStatistic
from dpnb.results.testing.independence import quadratic_form


def of_value(value: float, low: float, high: float, z: float, null: float) -> ReferredStatistic:
    """The test that a number is `null`; `low` and `high` are the limits of its interval of `z` standard deviations."""
    reach = value - low if value > null else high - value
    if not (math.isfinite(value) and math.isfinite(reach) and reach > 0):
        return UNKNOWN
    return _finite(z * (value - null) / reach)


def wald(params: Cells, covariance: Cells, null: float) -> ReferredStatistic:
    """The test that all of these coefficients are `null`."""
    if len(params) == 1:
        variance = float(covariance[0, 0])
        known = math.isfinite(float(params[0])) and math.isfinite(variance) and variance > 0
        found = (float(params[0]) - null) / math.sqrt(variance) if known else math.nan
        return ReferredStatistic(found) if math.isfinite(found) else UNKNOWN
    return ReferredStatistic(quadratic_form(np.asarray(params - null), covariance), len(params))


class GroupErrors(NamedTuple):
    """Estimates of several groups, with their variances through noise and through sampling; shape (groups,)."""

    value: Cells
    noise: Cells
    sampling: Cells
    apart: bool  # whether no unit is in two groups

    @property
    def variance(self) -> Cells:
        """The variance of each group, such that those of contrasts are at most what they are for independent groups."""
        with np.errstate(all="ignore"):
            return np.asarray(self.noise + self.sampling * (1 if self.apart else len(self.value)))

    @property
    def are_known(self) -> bool:
        """Whether all groups have an estimate and a variance."""
        known = np.isfinite(self.value) & np.isfinite(self.variance) & (self.variance > 0)
        return bool(known.all())


def equality(groups: GroupErrors) -> ReferredStatistic:
    """The test that all groups have the same value."""
    df = len(groups.value) - 1
    if not groups.are_known:
        return UNKNOWN._replace(df=df)
    with np.errstate(all="ignore"):
        weights = 1 / groups.variance
        mean = (weights * groups.value).sum() / weights.sum()
        return _finite(float((weights * (groups.value - mean) ** 2).sum()), df)


def under_equality(value: Cells, sampling: Cells, z: float, sampled: SampledAs) -> Cells:
    """The variances of counts or shares through sampling if all groups have one value.

    `sampling` are those by the population intervals, z^-2 times the squares of their mean half-widths h.  Wilson's
    interval has ``h^2 (1 + c)^2 = c p (1 - p) + c^2 / 4`` with c = z^2 ratio / N, a quadratic equation for c.
    """
    if not sampled.ratio:  # of a census
        return sampling
    if sampled.statistic == "count":
        return np.full_like(value, sampled.ratio * max(float(value.mean()), 0.0))
    share = np.clip(value, 0.0, 1.0)
    squared = sampling * z**2
    linear = share * (1 - share) - 2 * squared
    root = np.sqrt(np.maximum(linear**2 + squared * (1 - 4 * squared), 0.0))
    each = 2 * squared / (linear + root) / z**2  # ratio / N
    common = float((share / each).sum() / (1 / each).sum())
    return each * common * (1 - common)


class Slope(NamedTuple):
    """The slope of a trend, with its variances; NaN where the noise decides nothing."""

    value: float
    noise: float
    sampling: float

    @property
    def statistic(self) -> ReferredStatistic:
        """The test that there is no trend."""
        variance = self.noise + self.sampling
        return _finite(self.value / math.sqrt(variance)) if 0 < variance < math.inf else UNKNOWN


def trend(groups: GroupErrors, scores: Cells) -> Slope:
    """The slope of the values over the scores, with at least two different ones."""
    if not groups.are_known:
        return Slope(math.nan, math.nan, math.nan)
    with np.errstate(all="ignore"):
        weights = 1 / (groups.noise + groups.sampling)
        centred = scores - (weights * scores).sum() / weights.sum()
        factors = weights * centred / (weights * centred**2).sum()
        each = np.abs(factors) * np.sqrt(groups.sampling)
        sampling = (each**2).sum() if groups.apart else each.sum() ** 2
        return Slope(float((factors * groups.value).sum()), float((factors**2 * groups.noise).sum()), float(sampling))


def _finite(value: float, df: int | None = None) -> ReferredStatistic:
    """A statistic, unknown beyond the range of doubles."""
    return ReferredStatistic(float(value) if math.isfinite(value) else math.nan, df)
