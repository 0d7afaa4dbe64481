"""The results of regressions, of one step or several, with the methods of statsmodels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpnb._plan.measurements import Family
from dpnb._plan.regression import RegressionDesign
from dpnb.accounting.exact import Number, exact
from dpnb.accounting.intervals import fixed_radius
from dpnb.accounting.losses import GDP
from dpnb.errors import RequestError
from dpnb.results.answer import Answer
from dpnb.results.estimates.linear import RegressionNumbers
from dpnb.results.estimates.noisy import Cells, IntervalArrays, SampledAs
from dpnb.results.observations import FIRST_OBSERVATION_ALPHA
from dpnb.results.tables.index import replaced
from dpnb.results.tables.regression_methods import RegressionMethods
from dpnb.results.tables.table import Estimates
from dpnb.schema import Key, plain

Floats = NDArray[np.float64]

NO_INTERVALS = "no intervals: how far a descent ends from the best fit is not known"

MOVING = (
    "not converged: the last {steps} moved the coefficients further than the noise explains; more steps, or a larger "
    "learning rate, would change them"
)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RegressionAnswer(RegressionMethods, Answer):  # type: ignore[misc]  # `test` takes terms
    """A released linear regression: an answer with the methods of a result of statsmodels.

    Parameters
    ----------
    measured : RegressionNumbers, or a callable that returns them
    is_final : bool
        Whether it was released with ``final=True``, so that its intervals use the whole alpha.

    Examples
    --------
    >>> answer = df.regress("cost ~ age", population=True).release(mu=0.2)
    >>> answer.params.index.tolist()
    ['Intercept', 'age']
    """

    measured: RegressionNumbers | Callable[[], RegressionNumbers] = field(repr=False)
    is_final: bool = False

    @property
    def numbers(self) -> RegressionNumbers:
        """The released numbers from which everything else is computed."""
        if callable(self.measured):
            vars(self)["measured"] = self.measured()
        return self.measured  # type: ignore[return-value]  # called above

    @property
    def _share(self) -> Any:
        return 1 if self.is_final else FIRST_OBSERVATION_ALPHA

    def _noting(self, note: str) -> RegressionAnswer:
        """The same answer with a further remark."""
        return replaced(self, measured=replace(self.numbers, notes=(*self.numbers.notes, note)))

    def __getstate__(self) -> dict[str, object]:
        """The state of a copy, which has no session."""
        return {**super().__getstate__(), "measured": self.numbers}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RegressionResult(RegressionMethods, Estimates):  # type: ignore[misc]  # `test` takes terms
    """A regression that was released in several steps: estimates with the methods of a result of statsmodels.

    Parameters
    ----------
    measured : RegressionNumbers
    cost : GDP
        The charges of all steps when they were first made.
    cost_fraction : float
        The cost as a fraction of the whole budget, rounded up; NaN without a budget.

    Examples
    --------
    >>> import numpy as np
    >>> from dpnb.accounting.losses import GDP
    >>> from dpnb.results.estimates.linear import RegressionNumbers, RegressionTerm
    >>> measured = RegressionNumbers(
    ...     family="logistic", outcome="smokes", terms=(RegressionTerm(),), params=np.zeros(1), noise=np.eye(1)
    ... )
    >>> result = RegressionResult.of(measured, description="regression", cost=GDP(0.1), cost_fraction=0.01)
    >>> result.params.index.tolist()
    ['Intercept']
    """

    measured: RegressionNumbers
    cost: GDP
    cost_fraction: float

    @property
    def _population_remedy(self) -> str:
        return "release the regression with more budget"

    @classmethod
    def of(
        cls, measured: RegressionNumbers, confidence: Number = 0.95, *, description: str, cost: GDP,
        cost_fraction: float, simultaneous: bool = False, notice: str | None = None,
    ) -> RegressionResult:  # fmt: skip
        """A result with the intervals of some confidence, by the normal distribution.

        Parameters
        ----------
        measured : RegressionNumbers
        confidence : Number, default 0.95
        description : str
            The regression in words.
        cost : GDP
        cost_fraction : float
        simultaneous : bool, default False
            Whether all intervals hold at once with that confidence.
        notice : str, optional
            Warning that the session is a rehearsal or not private.

        Examples
        --------
        >>> import numpy as np
        >>> from dpnb.accounting.losses import GDP
        >>> from dpnb.results.estimates.linear import RegressionNumbers, RegressionTerm
        >>> measured = RegressionNumbers(
        ...     family="logistic", outcome="smokes", terms=(RegressionTerm(),), params=np.zeros(1), noise=np.eye(1)
        ... )
        >>> RegressionResult.of(measured, description="regression", cost=GDP(0.1), cost_fraction=0.01).confidence
        0.95
        """
        level = exact(confidence, name="regress: confidence")
        z = fixed_radius([1.0], alpha=(1 - level) / (len(measured.terms) if simultaneous else 1))
        known = measured.sampling is not None
        return cls(
            description=description,
            names=(),
            keys=((),),
            outputs=("term", tuple(term.name for term in measured.terms)),
            arrays=measured.arrays(z, population=False),
            population_arrays=measured.arrays(z, population=True) if known else None,
            sampled=SampledAs(z),
            confidence=float(level),
            simultaneous=simultaneous,
            notice=notice,
            measured=measured,
            cost=cost,
            cost_fraction=cost_fraction,
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
