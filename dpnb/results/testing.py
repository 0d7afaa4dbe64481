"""Hypothesis tests of released numbers: post-processing, which covers the sampling of the units and the noise.

Independence of rows and columns
--------------------------------
With y the noisy counts, R and C their sums by row and by column, and N their total, the residuals are ``r_ij = y_ij -
R_i C_j / N``.  Their covariance is ``J (V + W) J'``: W the known variances of the noise, V the variances of the counts
through sampling, and J the Jacobian of the residuals, ``(I - p 1') (x) (I - q 1')`` with p = R/N and q = C/N.  The
statistic ``r' (J (V + W) J')^- r`` has (R - 1)(C - 1) degrees of freedom (Gaboardi, Lim, Rogers and Vadhan 2016,
*Differentially private chi-squared hypothesis testing*; Kifer and Rogers 2017, *A new class of private chi-square
hypothesis tests*, theorem 4.2).  The residuals of each row and column add up to 0, so those without the last row and
column have all of it, and an ordinary inverse.

For a fixed number of units the covariance of the counts is multinomial, ``V - t t' / n`` with t the expected counts.
Independent t have residuals 0, and the residuals are homogeneous of degree 1 in the counts, so J t = 0: the term
vanishes, and the diagonal V is enough.  Where each row is a unit, V are the expected counts; where a unit has several
rows in one cell, the sums of their squares, or what bounds them.

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

Every test is total: whatever the released numbers are, it gives a p-value, or NaN where the noise decides nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpnb.errors import RequestError
from dpnb.results.display import Displayed
from dpnb.results.estimates.noisy import Cells, SampledAs

if TYPE_CHECKING:
    import pandas as pd

MAX_CELLS = 1_000
"""The most cells of a table: the covariance has their square."""

CLEAR = 3.0
"""A total of a row or column is clear of its noise if it is this many times its noise scale."""

SINGULAR = 1e-10
"""A smaller ratio of the eigenvalues of a correlation matrix is that of a singular one."""


class ReferredStatistic(NamedTuple):
    """A test statistic with the degrees of freedom of its chi-square distribution; normal if these are None."""

    value: float  # NaN where the noise decides nothing
    df: int | None = None

    @property
    def pvalue(self) -> float:
        """The two-sided p-value, or that of the upper tail of the chi-square distribution; NaN if unknown."""
        if not math.isfinite(self.value):
            return math.nan
        if self.df is None:
            return math.erfc(abs(self.value) / math.sqrt(2))
        from scipy.special import chdtrc  # imported when first used

        return float(chdtrc(self.df, max(self.value, 0.0)))


UNKNOWN = ReferredStatistic(math.nan)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class HypothesisTest(Displayed):
    """A hypothesis test of released numbers, which covers the sampling of the privacy units and the noise.

    It is about the population from which the units are a sample, and computed from the released numbers alone: it reads
    no rows and costs nothing.  It holds for a hypothesis that was fixed before the numbers were seen.  If the noise is
    not small enough to decide anything, the statistic and the p-value are NaN, and the outcome is None.

    Parameters
    ----------
    null : str
        The null hypothesis in words.
    method : str
        The test in words.
    statistic : float
    df : int or None
        The degrees of freedom of the chi-square distribution; None for a statistic that is compared with the normal
        distribution.
    pvalue : float
    alpha : float
        The level of the test.
    estimate : Estimates or None
        What the hypothesis is about, with its population interval, if it is a single number.
    remarks : tuple of str
        What else is to be known of this test.
    notice : str or None
        Warning that the answer is from a rehearsal or not private.

    Examples
    --------
    >>> share = (df["age"] > 40).mean().release(mu=0.3)
    >>> test = share.test(0.01)
    >>> test.null
    'in the population, share of rows with age > 40 is 0.01'
    >>> test.outcome
    True
    """

    null: str
    method: str
    statistic: float
    df: int | None
    pvalue: float
    alpha: float
    estimate: Any = None
    remarks: tuple[str, ...] = ()
    notice: str | None = None

    @property
    def outcome(self) -> bool | None:
        """Whether the null hypothesis is rejected at level `alpha`; None if that is unknown."""
        return None if math.isnan(self.pvalue) else self.pvalue <= self.alpha

    @property
    def decision(self) -> str:
        """The outcome in words."""
        level = f"at level {self.alpha:g}"
        return {True: f"rejected {level}", False: f"not rejected {level}", None: "unknown: the noise is too large"}[
            self.outcome
        ]

    def __bool__(self) -> bool:
        """Whether the null hypothesis is rejected; raises `RequestError` if that is unknown."""
        if self.outcome is None:
            raise RequestError(
                f"test: whether {self.null} is unknown, since the noise is too large; release a more accurate answer"
            )
        return self.outcome

    def to_pandas(self) -> pd.DataFrame:
        """One row: statistic, df, pvalue, alpha, outcome, null, method, and the estimate with its population interval.

        Examples
        --------
        >>> share = (df["age"] > 40).mean().release(mu=0.3)
        >>> share.test(0.5).to_pandas().columns.tolist()[:3]
        ['statistic', 'df', 'pvalue']
        """
        import pandas as pd  # imported when first used

        columns: dict[str, Any] = {
            "statistic": [self.statistic],
            "df": pd.array([self.df], dtype="Int64"),
            "pvalue": [self.pvalue],
            "alpha": [self.alpha],
            "outcome": pd.array([self.outcome], dtype="boolean"),
            "null": [self.null],
            "method": [self.method],
        }
        if self.estimate is not None:
            table = self.estimate.to_pandas().reindex(columns=["estimate", "population_low", "population_high"])
            columns |= {name: table[name].to_numpy() for name in table.columns}
        return pd.DataFrame(columns)


def independence(counts: Cells, noise: Cells, sampling: Cells, ratio: float | None) -> ReferredStatistic:
    """The test that rows and columns are independent; all tables have shape (rows, columns).

    `noise` and `sampling` are variances.  Where `ratio` is given, that through sampling is this multiple of the
    expected count instead.
    """
    rows, columns = counts.shape
    unknown = ReferredStatistic(math.nan, (rows - 1) * (columns - 1))
    with np.errstate(all="ignore"):
        clear = [
            bool((counts.sum(axis=axis) > CLEAR * np.sqrt(noise.sum(axis=axis))).all()) for axis in (0, 1)
        ]  # false for NaN
        if not all(clear):
            return unknown
        total = counts.sum()
        of_row, of_column = counts.sum(axis=1) / total, counts.sum(axis=0) / total
        expected = total * np.outer(of_row, of_column)
        variance = noise + (sampling if ratio is None else ratio * expected)
        by_row = (np.eye(rows) - of_row[:, None])[:-1]
        by_column = (np.eye(columns) - of_column[:, None])[:-1]
        jacobian = np.kron(by_row, by_column)
        covariance = (jacobian * variance.ravel()) @ jacobian.T
        residuals = (counts - expected)[:-1, :-1].ravel()
        if not (np.isfinite(covariance).all() and np.isfinite(residuals).all()):
            return unknown
        return unknown._replace(value=quadratic_form(residuals, covariance))


def quadratic_form(values: Cells, covariance: Cells) -> float:
    """``values' covariance^-1 values``; NaN unless the covariance is clearly positive definite."""
    with np.errstate(all="ignore"):
        scale = np.sqrt(np.diag(covariance))
        correlation = covariance / scale[:, None] / scale
        standard = values / scale
    if not (np.isfinite(correlation).all() and np.isfinite(standard).all()):
        return math.nan
    roots, vectors = np.linalg.eigh((correlation + correlation.T) / 2)
    if roots[0] <= SINGULAR * roots[-1]:
        return math.nan
    with np.errstate(all="ignore"):
        found = float(((vectors.T @ standard) ** 2 / roots).sum())
    return found if math.isfinite(found) else math.nan


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
