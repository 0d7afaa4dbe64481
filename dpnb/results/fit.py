"""The coefficients of a regression fitted by gradient descent, with intervals that cover the noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpnb._plan.measurements import Family
from dpnb._plan.regression import RegressionDesign
from dpnb._plan.schema import Key, plain
from dpnb.errors import RequestError
from dpnb.results.estimates.noisy import Cells, IntervalArrays
from dpnb.results.table import Estimates

Floats = NDArray[np.float64]

COVERS = (
    "intervals cover the noise, relative to the same descent without noise; not sampling, clipping, or the effect of "
    "more steps"
)
NONLINEARITY_LIMIT = 0.3
"""Half-width of an interval, for columns scaled to [-1, 1], up to which a non-linear regression is close enough to
linear: simulated in tests/statistical, where intervals three times as wide cover the noise in 7 of 10 fits only."""

NOISY = "the noise is so large that the intervals may miss more often than stated: use a larger mu, or fewer chains"
NO_INTERVAL = "a single chain does not show the effect of the noise: no intervals; use chains=8"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FitResult(Estimates):
    """Coefficients in the columns' original units, by term; for several classes minus their mean over the classes.

    The intervals are Student's t over the chains of the descent.  They cover the noise: the result of the
    same descent (same start, steps and clip_norm) without noise.  That is exact for least squares whose gradients are
    not clipped; otherwise it holds while the noise is small relative to the curvature of the loss, and a warning is
    given where it is not.  They do not cover sampling, what clipping changes, or what more steps would change.

    Parameters
    ----------
    notes : tuple of str
        How the coefficients were computed.
    is_noisy : bool
        Whether the noise is so large that the intervals may not hold.

    Examples
    --------
    >>> fit = df.fit("cost", on=["age"], family="linear", mu=0.05, steps=5, clip_norm=1.0)
    >>> result = fit.run()
    >>> result.estimate.index.tolist()
    ['intercept', 'age']
    """

    notes: tuple[str, ...] = ()
    is_noisy: bool = False


def is_noisy(family: Family, design: RegressionDesign, tails: Floats, confidence: float) -> bool:
    """Whether chains end so far apart that intervals over them may not hold.

    Parameters
    ----------
    family : str
    design : RegressionDesign
    tails : float64 array, shape (chains, width)
        Final coefficients of each chain, for columns scaled to [-1, 1].
    confidence : float
    """
    values = tails.reshape(len(tails), -1, design.terms)
    widths = over_chains(
        values - values.mean(axis=1, keepdims=True) if design.classes else values, confidence
    ).half_width
    return family != "linear" and bool((widths > NONLINEARITY_LIMIT).any())


def over_chains(values: Floats, confidence: float) -> IntervalArrays:
    """The mean over the chains, with Student's t intervals.

    Parameters
    ----------
    values : float64 array, shape (chains, groups, outputs)
    confidence : float
        In (0, 1).

    Returns
    -------
    IntervalArrays
        Without intervals (NaN) for one chain.
    """
    from scipy.special import stdtrit  # imported when first used

    chains = len(values)
    mean = values.mean(axis=0)
    if chains == 1:
        unknown = np.full_like(mean, np.nan)
        return IntervalArrays(mean, unknown, unknown, unknown)
    scale = values.std(axis=0, ddof=1) / np.sqrt(chains)
    reach = float(stdtrit(chains - 1, (1 + confidence) / 2)) * scale
    return IntervalArrays(mean, mean - reach, mean + reach, scale)


def to_original_units(family: Family, design: RegressionDesign, coefficients: Cells) -> Cells:
    """Convert coefficients of columns scaled to [-1, 1] to coefficients of the columns themselves.

    Parameters
    ----------
    family : str
    design : RegressionDesign
    coefficients : float64 array, shape (chains, width)

    Returns
    -------
    float64 array, shape (chains, classes, terms)
        One class unless the regression is multinomial; for several classes minus their mean over the classes, since
        adding a constant to all of them does not change the model.
    """
    converted = coefficients.reshape(len(coefficients), -1, design.terms).copy()
    if design.classes:
        converted -= converted.mean(axis=1, keepdims=True)
    middles, reaches = np.array(design.middles), np.array(design.reaches)
    numbers = slice(1, 1 + len(middles))
    converted[:, :, numbers] /= reaches
    converted[:, :, 0] -= (converted[:, :, numbers] * middles).sum(axis=2)
    if family == "linear":
        middle, reach = design.outcome
        converted *= reach
        converted[:, :, 0] += middle
    return converted


def from_original_units(family: Family, design: RegressionDesign, coefficients: Cells) -> Cells:
    """The inverse of `to_original_units`, for one chain: shape (classes, terms) to (width,)."""
    converted = coefficients.copy()
    if family == "linear":
        middle, reach = design.outcome
        converted[:, 0] -= middle
        converted /= reach
    middles, reaches = np.array(design.middles), np.array(design.reaches)
    numbers = slice(1, 1 + len(middles))
    converted[:, 0] += (converted[:, numbers] * middles).sum(axis=1)
    converted[:, numbers] *= reaches
    return converted.ravel()


def start_from(
    start: object, family: Family, design: RegressionDesign, terms: tuple[str, ...]
) -> tuple[float, ...] | None:
    """Coefficients to start from, as the analyst gives them, converted to columns scaled to [-1, 1]; None for None.

    Parameters
    ----------
    start : Estimates or mapping, optional
        The coefficients of another fit with the same terms, or numbers by term (0 for a missing term), in the
        columns' original units.
    family : str
    design : RegressionDesign
    terms : tuple of str

    Raises
    ------
    RequestError
        They have other terms, or are not finite numbers.
    """
    if start is None:
        return None
    classes = max(1, len(design.classes))
    if isinstance(start, Estimates):
        values = start.arrays.value
        same = start.outputs is not None and start.outputs[1] == terms and values.shape == (classes, len(terms))
        if not same or (design.classes and start.keys != tuple((key,) for key in design.classes)):
            raise RequestError(f"start: must have the terms {', '.join(terms)}; got those of {start.description}")
        converted = from_original_units(family, design, np.asarray(values, np.float64))
    elif isinstance(start, Mapping) and not design.classes:
        unknown = [term for term in start if term not in terms]
        if unknown:
            raise RequestError(f"start: {unknown[0]!r} is not a term of this regression; it has {', '.join(terms)}")
        numbers = [_number(start.get(term, 0), term) for term in terms]
        converted = from_original_units(family, design, np.array([numbers]))
    else:
        raise RequestError(
            "start: must be a mapping of terms to numbers, or the .coefficients of another fit with the same terms "
            f"(with several classes only the latter); got {type(start).__name__}"
        )
    if not np.isfinite(converted).all():
        raise RequestError("start: must be finite numbers; got one that is not; omit start= to start at 0")
    return tuple(converted.tolist())


def _number(value: object, term: str) -> float:
    number: Key | object = plain(value)
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise RequestError(f"start: {term!r} must be a number; got {value!r}")
    return float(number)
