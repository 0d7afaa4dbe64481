"""The coefficients that a descent has come to, with intervals for what the noise did to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from dpnb._plan.measurements import Family
from dpnb._plan.regression import RegressionDesign
from dpnb._plan.schema import Key, plain
from dpnb.errors import RequestError
from dpnb.results.estimates.noisy import Cells, IntervalArrays
from dpnb.results.table import Estimates

Floats = NDArray[np.float64]

COVERS = (
    "intervals cover the noise, against what the same descent would give without it; not sampling, clipping, or what "
    "more steps would change"
)
NONLINEARITY_LIMIT = 0.3
"""Half-width of an interval, of columns brought to -1 to 1, up to which a regression that is not linear is as good as
straight: simulated in tests/statistical, where intervals three times as wide cover the noise in 7 of 10 fits only."""

NOISY = "the noise is so large that intervals may miss more often than they say: take a larger mu, or fewer chains"
NO_INTERVAL = "one chain alone does not tell what the noise did to it: no intervals; take chains=8"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FitResult(Estimates):
    """Coefficients in the columns' own units, by term; of several classes less their mean over the classes.

    The intervals are Student's t over the chains of the descent.  They cover the noise: what the same descent, so many
    steps from the same start with the same clip, would have given without noise.  That is exact for least squares whose
    gradients are not clipped; otherwise it holds while the noise is small beside the bends of the loss, and where it is
    not, a warning says so.  They do not cover sampling, what clipping changes, or what more steps would change.

    Parameters
    ----------
    notes : tuple of str
        How they came about.
    is_noisy : bool
        Whether the noise is so large that the intervals may not hold.
    """

    notes: tuple[str, ...] = ()
    is_noisy: bool = False


def is_noisy(family: Family, made: RegressionDesign, tails: Floats, confidence: float) -> bool:
    """Whether chains end so far apart that intervals over them may not hold.

    Parameters
    ----------
    family : str
    made : Design
    tails : float64 array, shape (chains, width)
        Of columns brought to -1 to 1.
    confidence : float
    """
    values = tails.reshape(len(tails), -1, made.terms)
    widths = over_chains(values - values.mean(axis=1, keepdims=True) if made.classes else values, confidence).half_width
    return family != "linear" and bool((widths > NONLINEARITY_LIMIT).any())


def over_chains(values: Floats, confidence: float) -> IntervalArrays:
    """The mean over chains, with Student's t intervals.

    Parameters
    ----------
    values : float64 array, shape (chains, groups, outputs)
    confidence : float
        In (0, 1).

    Returns
    -------
    Estimate
        Without intervals (NaN) for one chain.
    """
    chains = len(values)
    mean = values.mean(axis=0)
    if chains == 1:
        nothing = np.full_like(mean, np.nan)
        return IntervalArrays(mean, nothing, nothing, nothing)
    scale = values.std(axis=0, ddof=1) / np.sqrt(chains)
    reach = float(stdtrit(chains - 1, (1 + confidence) / 2)) * scale
    return IntervalArrays(mean, mean - reach, mean + reach, scale)


def in_own_units(family: Family, made: RegressionDesign, coefficients: Cells) -> Cells:
    """Coefficients of columns brought to -1 to 1, as coefficients of the columns themselves.

    Parameters
    ----------
    family : str
    made : Design
    coefficients : float64 array, shape (chains, width)

    Returns
    -------
    float64 array, shape (chains, classes, terms)
        One class for what is no multinomial regression; of several classes less their mean over the classes, since
        adding the same to all of them changes nothing.
    """
    found = coefficients.reshape(len(coefficients), -1, made.terms).copy()
    if made.classes:
        found -= found.mean(axis=1, keepdims=True)
    middles, reaches = np.array(made.middles), np.array(made.reaches)
    numbers = slice(1, 1 + len(middles))
    found[:, :, numbers] /= reaches
    found[:, :, 0] -= (found[:, :, numbers] * middles).sum(axis=2)
    if family == "linear":
        middle, reach = made.outcome
        found *= reach
        found[:, :, 0] += middle
    return found


def from_own_units(family: Family, made: RegressionDesign, coefficients: Cells) -> Cells:
    """The opposite of `in_own_units`, for one chain: shape (classes, terms) to (width,)."""
    found = coefficients.copy()
    if family == "linear":
        middle, reach = made.outcome
        found[:, 0] -= middle
        found /= reach
    middles, reaches = np.array(made.middles), np.array(made.reaches)
    numbers = slice(1, 1 + len(middles))
    found[:, 0] += (found[:, numbers] * middles).sum(axis=1)
    found[:, numbers] *= reaches
    return found.ravel()


def start_from(
    given: object, family: Family, made: RegressionDesign, terms: tuple[str, ...]
) -> tuple[float, ...] | None:
    """Coefficients to start from, as an analyst writes them, for columns brought to -1 to 1; None for none given.

    Parameters
    ----------
    given : Figures or mapping, optional
        The coefficients of another fit with the same terms, or numbers by term (what is not named is 0), in the
        columns' own units.
    family : str
    made : Design
    terms : tuple of str

    Raises
    ------
    RequestError
        They are of other terms, or no finite numbers.
    """
    if given is None:
        return None
    classes = max(1, len(made.classes))
    if isinstance(given, Estimates):
        values = given.arrays.value
        same = given.outputs is not None and given.outputs[1] == terms and values.shape == (classes, len(terms))
        if not same or (made.classes and given.keys != tuple((key,) for key in made.classes)):
            raise RequestError(f"start: must have the terms {', '.join(terms)}; got those of {given.description}")
        found = from_own_units(family, made, np.asarray(values, np.float64))
    elif isinstance(given, Mapping) and not made.classes:
        unknown = [term for term in given if term not in terms]
        if unknown:
            raise RequestError(f"start: {unknown[0]!r} is no term of this regression; it has {', '.join(terms)}")
        numbers = [_number(given.get(term, 0), term) for term in terms]
        found = from_own_units(family, made, np.array([numbers]))
    else:
        raise RequestError(
            "start: must be a mapping of terms to numbers, or the .coefficients of another fit with the same terms "
            f"(of several classes only these); got {type(given).__name__}"
        )
    if not np.isfinite(found).all():
        raise RequestError("start: must be finite numbers; got one that is not; leave start= out for 0")
    return tuple(found.tolist())


def _number(value: object, term: str) -> float:
    number: Key | object = plain(value)
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise RequestError(f"start: {term!r} must be a number; got {value!r}")
    return float(number)
