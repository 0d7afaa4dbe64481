"""The released numbers of any regression; `least_squares` and `dpnb.results.newton` compute its standard errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpnb.errors import RequestError
from dpnb.results.estimates.noisy import Cells, IntervalArrays
from dpnb.schema import Key

if TYPE_CHECKING:
    import pandas as pd

from dpnb.results.estimates.least_squares import Matrix

INTERCEPT = "Intercept"


@dataclass(frozen=True)
class TermFactor:
    """A factor of a term: a column of numbers, or the indicator of one of its values."""

    column: str
    value: Key | None = None  # of an indicator; None for a number
    low: float = 0.0  # the bounds to which a number is clamped; 0 and 1 for an indicator
    high: float = 1.0

    @property
    def name(self) -> str:
        """The factor as statsmodels names it."""
        if self.value is None:
            return self.column
        return f"{self.column}[T.True]" if self.value is True else f"C({self.column})[T.{self.value}]"

    def of(self, frame: pd.DataFrame) -> Cells:
        """The values of the factor in the rows of a table, NaN where they are missing."""
        if self.column not in frame.columns:
            raise RequestError(
                f"predict: the table must have the column {self.column!r}; it has {', '.join(map(str, frame.columns))}"
            )
        column: Any = frame[self.column]
        missing = column.isna().to_numpy(dtype=bool)
        if self.value is None:
            numbers = np.where(missing, np.nan, column.where(~missing, 0).to_numpy(dtype=np.float64))
            return np.asarray(np.clip(numbers, self.low, self.high))
        return np.where(missing, np.nan, (column == self.value).to_numpy(dtype=bool, na_value=False) * 1.0)


@dataclass(frozen=True)
class RegressionTerm:
    """A term of a regression: the product of its factors; the intercept has none."""

    factors: tuple[TermFactor, ...] = ()

    @property
    def name(self) -> str:
        """The term as statsmodels names it."""
        return ":".join(factor.name for factor in self.factors) or INTERCEPT

    @property
    def bounds(self) -> tuple[float, float]:
        """The range of the term."""
        low, high = 1.0, 1.0
        for factor in self.factors:
            ends = [end * other for end in (low, high) for other in (factor.low, factor.high)]
            low, high = min(ends), max(ends)
        return low, high

    def of(self, frame: pd.DataFrame) -> Cells:
        """The values of the term in the rows of a table."""
        values = np.ones(len(frame))
        for factor in self.factors:
            values = values * factor.of(frame)
        return values


def chosen_terms(terms: Sequence[RegressionTerm], wanted: object) -> list[int]:
    """The indices of terms by their names, or by the names of columns, for all terms of the column alone."""
    names = [term.name for term in terms]
    if wanted is None:
        return [index for index, name in enumerate(names) if name != INTERCEPT]
    listed = [wanted] if isinstance(wanted, str) else wanted
    if not isinstance(listed, list | tuple) or not listed:
        raise RequestError(
            f"test: takes the name of a term or a list of names; got {wanted!r}; it has {', '.join(names)}"
        )
    chosen: dict[int, None] = {}
    for name in listed:
        column = name.removeprefix("C(").removesuffix(")") if isinstance(name, str) else name
        own = [
            index
            for index, term in enumerate(terms)
            if term.name == name or (len(term.factors) == 1 and term.factors[0].column == column)
        ]
        if not own:
            raise RequestError(f"test: {name!r} is not a term or column of the regression; it has {', '.join(names)}")
        chosen |= dict.fromkeys(own)
    return list(chosen)


@dataclass(frozen=True, kw_only=True)
class RegressionNumbers:
    """What was released about a regression: public numbers.

    Each single number is an `IntervalArrays` with one cell and one output, with its noise interval.
    """

    family: Literal["linear", "logistic", "poisson"]
    outcome: str
    terms: tuple[RegressionTerm, ...]
    params: Cells  # shape (terms,), NaN where they are unknown
    noise: Matrix  # covariance of the noise of the coefficients
    sampling: Matrix | None = None  # covariance of the coefficients through the sampling of units; None if not known
    errors: str = ""  # how the sampling error was estimated, in words; or why it is not known
    unknown: str | None = None  # why there are no coefficients
    nobs: IntervalArrays | None = None  # number of rows that count
    nobs_words: str = "rows"  # what is counted, and whether the number is released or public
    units: int | None = None  # public number of units in the table, where a unit has several rows
    rsquared: IntervalArrays | None = None
    residual_variance: IntervalArrays | None = None
    notes: tuple[str, ...] = ()  # warnings

    @property
    def standard_errors(self) -> Cells | None:
        """Of noise and sampling together; None if the sampling error is not known."""
        if self.sampling is None:
            return None
        return np.asarray(np.sqrt(np.maximum(np.diag(self.noise + self.sampling), 0.0)))

    def arrays(self, z: float, *, population: bool) -> IntervalArrays:
        """The coefficients with intervals of `z` standard deviations of the noise, or of noise and sampling."""
        scale = np.sqrt(np.maximum(np.diag(self.noise), 0.0))
        error = self.standard_errors if population else scale
        reach = np.full_like(scale, np.nan) if error is None else z * error
        value, low, high, noise = (
            np.asarray(array, np.float64)[None, :]
            for array in (self.params, self.params - reach, self.params + reach, scale)
        )
        unknown = np.isnan(value)
        low, high = np.where(unknown, -np.inf, low), np.where(unknown, np.inf, high)
        return IntervalArrays(value, low, high, noise)
