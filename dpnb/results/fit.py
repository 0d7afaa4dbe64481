"""The coefficients of a regression fitted by gradient descent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpnb._plan.measurements import Family
from dpnb._plan.regression import RegressionDesign
from dpnb.errors import RequestError
from dpnb.results.estimates.noisy import Cells, IntervalArrays
from dpnb.results.tables.table import Estimates
from dpnb.schema import Key, plain

Floats = NDArray[np.float64]

NO_INTERVALS = "no intervals: how far a descent ends from the best fit is not known"
MOVING = (
    "not converged: the last {steps} moved the coefficients further than the noise explains; more steps, or a larger "
    "learning rate, would change them"
)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FitResult(Estimates):
    """Coefficients in the columns' original units, by term; for several classes minus their mean over the classes.

    They have no intervals.  The noise of a descent is known, but not how far it would end from the best fit without
    noise: that depends on the steps, on clipping and on the rows.  An interval for the noise alone would be narrow and
    would often exclude the best fit.

    Parameters
    ----------
    notes : tuple of str
        How the coefficients were computed.
    is_moving : bool
        Whether the descent has not converged: the last steps moved the coefficients further than the noise explains.
        That it is False does not show that it has converged.

    Examples
    --------
    >>> fit = df.fit("cost", on=["age"], family="linear", mu=0.05, steps=5, clip_norm=1.0)
    >>> result = fit.run()
    >>> result.estimate.index.tolist()
    ['intercept', 'age']
    """

    notes: tuple[str, ...] = ()
    is_moving: bool = False


def without_intervals(values: Floats) -> IntervalArrays:
    """The mean over the chains, shape (groups, outputs), of coefficients of shape (chains, groups, outputs)."""
    mean = values.mean(axis=0)
    unknown = np.full_like(mean, np.nan)
    return IntervalArrays(mean, unknown, unknown, unknown)


def to_original_units(family: Family, design: RegressionDesign, coefficients: Cells) -> Cells:
    """Convert coefficients of columns scaled to [-1, 1] to coefficients of the columns themselves.

    From shape (chains, width) to (chains, classes, terms), with one class unless the regression is multinomial.  For
    several classes their mean over the classes is subtracted, since adding a constant to all of them does not change
    the model.
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

    Either those of another fit with the same terms, or numbers by term (0 for a missing term), in the columns' original
    units.
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
