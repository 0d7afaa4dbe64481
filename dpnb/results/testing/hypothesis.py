"""The result of a hypothesis test, and the p-values of the normal and the chi-square distribution."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from dpnb.errors import RequestError
from dpnb.results.display import Displayed

if TYPE_CHECKING:
    import pandas as pd


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
