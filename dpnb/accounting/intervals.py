"""Estimates that are refined again and again, and intervals that stay honest about the noise.

Look j at one question is y_j = q + s_j Z_j with fresh noise.  Everything the looks say about q is in their
inverse-variance mean, whose information is I = sum of 1/s_j^2; so refining is lossless: mu squared adds, and
I = sum of mu_j^2 / sensitivity^2.

How wide an interval must be depends on who chose to stop.  With looks fixed beforehand the mean is normal and
:func:`fixed_radius` is exact.  If the number of looks, or their sizes, were chosen after seeing answers, only
:func:`confidence_sequence_radius` covers: it holds for all looks at once.

Every radius is per cell, is about the noise alone, and is rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from dpnb.accounting.doubles import MARGIN, failure_probability
from dpnb.accounting.exact import Number, binary_down, binary_up, positive, shown
from dpnb.accounting.mixture import optimal_ratio
from dpnb.errors import InvalidValueError

__all__ = ["combine", "confidence_sequence_radius", "fixed_radius", "tuned_tau"]


@overload
def combine(values: Sequence[float], sigmas: ArrayLike) -> tuple[float, float]: ...
@overload
def combine(values: NDArray[Any], sigmas: ArrayLike) -> tuple[NDArray[np.float64], float]: ...
def combine(values: Sequence[float] | NDArray[Any], sigmas: ArrayLike) -> tuple[float | NDArray[np.float64], float]:
    """The inverse-variance mean of several looks at one question, and its standard deviation.

    Parameters
    ----------
    values : sequence of float, length (looks,); or ndarray, shape (looks, *cells)
        The answers, finite.  An array gives an array of shape cells.
    sigmas : array_like, shape (looks,)
        Noise scales, > 0 and finite; one look's noise is the same in all of its cells.

    Returns
    -------
    value : float or ndarray, shape cells
        sum(y/s^2) / sum(1/s^2), to the nearest few units in the last place; a single look as it is.
    sigma : float
        sum(1/s^2)^(-1/2), not below the exact figure; a single look's as it is.

    Raises
    ------
    InvalidValueError
        No look, numbers of looks that differ, or a number that is not finite, or not positive.

    Notes
    -----
    The likelihood of all looks depends on q through this mean alone (sufficiency), which is why releasing every look
    costs what one answer of that sigma costs.

    Examples
    --------
    >>> from dpnb.accounting import combine
    >>> estimate, sigma = combine([10.0, 13.0], [1.0, 2.0])
    >>> round(estimate, 6), round(sigma, 6)
    (10.6, 0.894427)
    """
    scales = _scales(sigmas)
    looks = np.asarray(values, dtype=np.float64)
    if looks.ndim == 0 or len(looks) != len(scales) or not np.all(np.isfinite(looks)):
        raise InvalidValueError(
            f"values must be finite and have one row for each of the {len(scales)} sigmas, got shape {looks.shape};"
            " give each look's answer with its noise scale"
        )
    # Around the best look, so that a large common offset loses no digits.
    mean = looks[int(scales.argmin())].copy()
    if len(scales) > 1:
        weights = (scales.min() / scales) ** 2
        mean += np.tensordot(weights / weights.sum(), looks - mean, axes=1)
    return (np.asarray(mean) if isinstance(values, np.ndarray) else float(mean)), _combined(scales)


def fixed_radius(sigmas: ArrayLike, *, alpha: Number) -> float:
    """Half-width of the interval that misses with probability alpha, for looks that were fixed beforehand.

    Parameters
    ----------
    sigmas : array_like, shape (looks,)
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
        A number is out of its range.

    Notes
    -----
    Exact for normal noise; not to be used when the answers had a say in how many looks there are or how large.

    Examples
    --------
    >>> from dpnb.accounting import fixed_radius
    >>> round(fixed_radius([1.0, 2.0], alpha=0.05), 4)
    1.753
    """
    # The absolute term is for alpha next to 1, where the quantile is a small difference.
    quantile = -float(ndtri(_level(alpha) / 2)) + 2.0**-50
    # ndtri is within 8 units of 2^-53 wherever tests/test_assumptions.py compares it; the margin has room for them.
    return quantile * _combined(_scales(sigmas)) * MARGIN


def confidence_sequence_radius(sigmas: ArrayLike, *, tau: Number, alpha: Number) -> float:
    """Half-width of the interval that, over all looks there will ever be, misses even once with probability alpha.

    Parameters
    ----------
    sigmas : array_like, shape (looks,)
        Noise scales so far, > 0 and finite; each may depend on earlier answers.
    tau : Number
        Greater than 0, in the scale of information; fixed before the first answer (see :func:`tuned_tau`).
    alpha : Number
        In (0, 1).

    Returns
    -------
    float
        sqrt((I + tau) log((I + tau) / (alpha^2 tau))) / I, rounded up.

    Raises
    ------
    InvalidValueError
        A number is out of its range.

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
        Target I > 0: one over the variance at which looking is expected to stop.
    alpha : Number
        In (0, 1).

    Returns
    -------
    float
        I / (-W(-alpha^2/e) - 1) on the lower branch of Lambert's W.  Any tau > 0 is valid; this one is best at I.

    Raises
    ------
    InvalidValueError
        A number is out of its range.

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
            " give one noise scale for each look"
        )
    return scales


def _combined(scales: NDArray[np.float64]) -> float:
    """sum(1/s^2)^(-1/2), rounded up; through the smallest scale, so that no square over- or underflows."""
    least = float(scales.min())
    if len(scales) == 1:
        return least
    return least / math.sqrt(math.fsum((least / scales) ** 2)) * (1 + 2.0**-50)


def _level(alpha: Number) -> float:
    """The double below alpha: a smaller alpha is a wider interval."""
    return _below(failure_probability(alpha, name="alpha", example="0.05"))


_below = lru_cache(maxsize=256)(binary_down)


def _double(value: Number, name: str) -> float:
    """The double above a number that needs no direction."""
    number = binary_up(positive(value, name=name))
    if number == math.inf:
        raise InvalidValueError(
            f"{name} must be a number that a double can hold, got {shown(value)}; rescale the question"
        )
    return number
