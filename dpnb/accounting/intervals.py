"""Estimates that are refined repeatedly, and intervals that remain valid.

Observation j of one query is y_j = q + s_j Z_j with fresh noise.  The inverse-variance mean of the observations
contains all their information about q, I = sum of 1/s_j^2; so refining is lossless: mu squared adds, and
I = sum of mu_j^2 / sensitivity^2.

The width of a valid interval depends on the stopping rule.  If the observations are fixed beforehand, the mean is
normal and :func:`fixed_radius` is exact.  If their number, or their noise scales, were chosen after seeing answers,
only :func:`confidence_sequence_radius` covers: it holds for all observations at once.

Every radius is per cell, is about the noise alone, and is rounded up.

The confidence sequence has a parameter tau, and so has the mixture odometer (gamma), which is best at one V.  Both
boundaries are sqrt(V + g) sqrt(2 log(r^(1/2)/delta)) with r = (V + g)/g.  Setting the derivative in g to zero at a
given V leaves r - 1 - log r = 2 log(1/delta), that is r = -W(-delta^2/e) on the lower branch of Lambert's W, and
g = V/(r - 1).  It is solved here for s = r - 1 from log(1/delta), so that delta^2 cannot underflow.  Any positive
parameter gives a valid boundary, so nothing about it needs directed rounding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpnb.accounting.exact import MARGIN, Number, binary_down, binary_up, failure_probability, positive, shown
from dpnb.errors import InvalidValueError

__all__ = ["combine", "confidence_sequence_radius", "fixed_radius", "tuned_tau"]


@overload
def combine(values: Sequence[float], sigmas: ArrayLike) -> tuple[float, float]: ...
@overload
def combine(values: NDArray[Any], sigmas: ArrayLike) -> tuple[NDArray[np.float64], float]: ...
def combine(values: Sequence[float] | NDArray[Any], sigmas: ArrayLike) -> tuple[float | NDArray[np.float64], float]:
    """The inverse-variance mean of several observations of one query, and its standard deviation.

    Parameters
    ----------
    values : sequence of float, length (observations,); or ndarray, shape (observations, cells, ...)
        The observed values, finite.  An array gives an array of the shape of the cells.
    sigmas : array_like, shape (observations,)
        Noise scales, > 0 and finite; all cells of an observation have the same noise scale.

    Returns
    -------
    value : float or ndarray, of the shape of the cells
        sum(y/s^2) / sum(1/s^2), to a few units in the last place; a single observation is returned unchanged.
    sigma : float
        sum(1/s^2)^(-1/2), not below the exact value; the sigma of a single observation is returned unchanged.

    Raises
    ------
    InvalidValueError
        No observation, `values` and `sigmas` of different lengths, or a number that is not finite or not positive.

    Notes
    -----
    The likelihood of all observations depends on q through this mean alone (sufficiency), which is why releasing every
    observation costs what one answer of that sigma costs.

    Examples
    --------
    >>> from dpnb.accounting import combine
    >>> estimate, sigma = combine([10.0, 13.0], [1.0, 2.0])
    >>> round(estimate, 6), round(sigma, 6)
    (10.6, 0.894427)
    """
    scales = _scales(sigmas)
    observed = np.asarray(values, dtype=np.float64)
    if observed.ndim == 0 or len(observed) != len(scales) or not np.all(np.isfinite(observed)):
        raise InvalidValueError(
            f"values must be finite and have one row for each of the {len(scales)} sigmas, got shape {observed.shape};"
            " give each observation with its noise scale"
        )
    # Relative to the most precise observation, so that a large common offset loses no digits.
    mean = observed[int(scales.argmin())].copy()
    if len(scales) > 1:
        weights = (scales.min() / scales) ** 2
        mean += np.tensordot(weights / weights.sum(), observed - mean, axes=1)
    return (np.asarray(mean) if isinstance(values, np.ndarray) else float(mean)), _combined(scales)


def fixed_radius(sigmas: ArrayLike, *, alpha: Number) -> float:
    """Half-width of the interval that misses with probability alpha, for observations fixed beforehand.

    Parameters
    ----------
    sigmas : array_like, shape (observations,)
        Noise scales, > 0 and finite.
    alpha : Number
        In (0, 1).

    Returns
    -------
    float
        z / sqrt(I), z the normal quantile at 1 - alpha/2; rounded up.

    Raises
    ------
    InvalidValueError
        A number is out of range.

    Notes
    -----
    Exact for normal noise; not valid if the number of observations or their noise scales depend on the answers.

    Examples
    --------
    >>> from dpnb.accounting import fixed_radius
    >>> round(fixed_radius([1.0, 2.0], alpha=0.05), 4)
    1.753
    """
    # ndtri is within 8 units of 2^-53 wherever tests/test_assumptions.py compares it; the margin has room for them.
    return _quantile_above(_level(alpha)) * _combined(_scales(sigmas)) * MARGIN


def confidence_sequence_radius(sigmas: ArrayLike, *, tau: Number, alpha: Number) -> float:
    """Half-width of an interval such that, over all observations, any interval misses with probability at most alpha.

    Parameters
    ----------
    sigmas : array_like, shape (observations,)
        Noise scales so far, > 0 and finite; each may depend on earlier answers.
    tau : Number
        Greater than 0, in the scale of the information I; fixed before the first answer (see :func:`tuned_tau`).
    alpha : Number
        In (0, 1).

    Returns
    -------
    float
        sqrt((I + tau) log((I + tau) / (alpha^2 tau))) / I, rounded up.

    Raises
    ------
    InvalidValueError
        A number is out of range.

    References
    ----------
    .. [1] Robbins 1970, *Statistical methods related to the law of the iterated logarithm*: the normal mixture of
       exp(lambda S - lambda^2 I/2), S = sum((y - q)/s^2), with Ville's inequality.

    Examples
    --------
    >>> from dpnb.accounting import confidence_sequence_radius
    >>> round(confidence_sequence_radius([1.0, 2.0], tau=1, alpha=0.05), 4)
    3.1298
    """
    sigma = _combined(_scales(sigmas))
    log_ratio = -math.log(_double(tau, "tau")) - 2 * math.log(sigma)  # log(I/tau)
    log_r = float(np.logaddexp(0.0, log_ratio))
    factor = log_r - 2 * math.log(_level(alpha))
    return sigma * math.exp((log_r - log_ratio) / 2) * math.sqrt(factor) * MARGIN


def tuned_tau(information: Number, *, alpha: Number) -> float:
    """The tau whose confidence sequence is narrowest once the information reaches a target.

    Parameters
    ----------
    information : Number
        Target I > 0: one over the variance at which refining is expected to stop.
    alpha : Number
        In (0, 1).

    Returns
    -------
    float
        I / (-W(-alpha^2/e) - 1) on the lower branch of Lambert's W.  Any tau > 0 is valid; this one is best at I.

    Raises
    ------
    InvalidValueError
        A number is out of range.

    Examples
    --------
    >>> from dpnb.accounting import tuned_tau
    >>> round(tuned_tau(1, alpha=0.05), 4)
    0.1218
    """
    return _double(information, "information") / optimal_ratio(-math.log(_level(alpha)))


def _scales(sigmas: ArrayLike) -> NDArray[np.float64]:
    scales = np.asarray(sigmas, dtype=np.float64)
    if scales.ndim != 1 or not len(scales) or not np.all((scales > 0) & (scales < np.inf)):
        raise InvalidValueError(
            f"sigmas must be a list of at least one finite number greater than 0, got {shown(sigmas)};"
            " give one noise scale for each observation"
        )
    return scales


def _combined(scales: NDArray[np.float64]) -> float:
    """sum(1/s^2)^(-1/2), rounded up; relative to the smallest scale, so that no square overflows or underflows."""
    smallest = float(scales.min())
    if len(scales) == 1:
        return smallest
    return smallest / math.sqrt(math.fsum((smallest / scales) ** 2)) * (1 + 2.0**-50)


def _level(alpha: Number) -> float:
    """The double below alpha: a smaller alpha gives a wider interval."""
    return _below(failure_probability(alpha, name="alpha", example="0.05"))


_below = lru_cache(maxsize=256)(binary_down)


@lru_cache(maxsize=256)
def _quantile_above(level: float) -> float:
    """The normal quantile at 1 - level/2, or slightly more."""
    from scipy.special import ndtri  # imported when first used

    # The absolute term is for alpha close to 1, where the quantile is a small difference.
    return -float(ndtri(level / 2)) + 2.0**-50


def _double(value: Number, name: str) -> float:
    """The double above a number; the direction of rounding does not matter."""
    number = binary_up(positive(value, name=name))
    if number == math.inf:
        raise InvalidValueError(
            f"{name} must be a number that a double can hold, got {shown(value)}; rescale the query"
        )
    return number


# --- the best parameter of a mixture ----------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def optimal_ratio(log_inverse_delta: float) -> float:
    """The s = V/g that is best for the two-sided boundary: s - log(1 + s) = 2 log(1/delta), with log(1/delta) > 0.

    The left side is convex and at least s^2/(2 + 2s), so the positive root of that bound lies to the right, and
    Newton's method descends from it without overshooting.
    """
    target = log_inverse_delta
    s = 2 * (target + math.sqrt(target) * math.sqrt(target + 1))
    while True:
        lower = s - (s - math.log1p(s) - 2 * target) * (1 + s) / s
        if not 0 < lower < s:
            return s
        s = lower


def optimal_ratio_onesided(log_inverse_delta: float) -> float:
    """The s = V/g that is best for the one-sided boundary sqrt(V + g) sqrt(2 log((1 + q)/2)), q = (1 + s)^(1/2)/delta.

    The derivative vanishes where s q/(2 (1 + q)) = log((1 + q)/2); found by bisection, for log(1/delta) > 0.
    """

    def falls(s: float) -> bool:
        log_q = log_inverse_delta + math.log1p(s) / 2
        return s / (1 + math.exp(-log_q)) / 2 < log_half_of_one_plus_exp(log_q)

    low, high = 0.0, 1.0
    while falls(high):
        low, high = high, 2 * high
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if falls(middle) else (low, middle)
    return high


def log_half_of_one_plus_exp(x: float) -> float:
    """log((1 + e^x)/2) for x >= 0, without overflow and without cancellation near 0."""
    if x > 30:
        return x - math.log(2) + math.log1p(math.exp(-x))
    return math.log1p(math.expm1(x) / 2)
