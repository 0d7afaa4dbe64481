"""The results of regressions: an answer, and a result of several steps, with the methods of statsmodels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from dpnb.accounting.exact import Number, exact
from dpnb.accounting.intervals import fixed_radius
from dpnb.accounting.losses import GDP
from dpnb.results.answer import Answer
from dpnb.results.estimates.noisy import SampledAs
from dpnb.results.estimates.regression import RegressionNumbers
from dpnb.results.observations import FIRST_OBSERVATION_ALPHA
from dpnb.results.tables.regression_methods import RegressionMethods, RegressionSummary
from dpnb.results.tables.table import Estimates

__all__ = ["RegressionAnswer", "RegressionResult", "RegressionSummary"]


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
        return replace(self, measured=replace(self.numbers, notes=(*self.numbers.notes, note)))

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
    >>> from dpnb.results.estimates.regression import RegressionNumbers, RegressionTerm
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
        >>> from dpnb.results.estimates.regression import RegressionNumbers, RegressionTerm
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
