"""Comparisons with numbers: of estimates, and of counts and sums by an above-threshold mechanism.

Of an estimate the outcome is yes, no, or too close to say at the confidence of its interval; a mechanism always says
yes or no, from a noisy comparison.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpnb._protocol.glossary import IN_THE_POPULATION, IN_THIS_TABLE, NOISE_INTERVAL, POPULATION_INTERVAL
from dpnb.accounting.exact import display_down, display_up
from dpnb.errors import RequestError
from dpnb.results.display import Displayed
from dpnb.results.estimates.noisy import Cells, IntervalArrays
from dpnb.results.tables.index import pandas_index
from dpnb.schema import Key

if TYPE_CHECKING:
    import pandas as pd


# --- the result of one query to an above-threshold mechanism ----------------------------------------------------------


@dataclass(frozen=True, repr=False)
class ThresholdResult(Displayed):
    """Whether a count or sum of this table is above a threshold, by noisy comparison.

    Parameters
    ----------
    description : str
        The query in words.
    threshold : float
    above : bool
    value : float or None
        A noisy value, if the mechanism returns one (`return_values`).
    half_width : float or None
        Half-width of the value's noise interval.
    confidence : float
        Confidence of the interval.
    notice : str or None
        Warning that the answer is from a rehearsal or not private.

    Examples
    --------
    >>> scan = session.above_threshold(100, name="many", epsilon=0.2, monotonic=True)
    >>> result = scan.ask(df[df["age"] > 65].count_units())
    >>> result.above in (True, False)
    True
    """

    description: str
    threshold: float
    above: bool
    value: float | None = None
    half_width: float | None = None
    confidence: float = 0.95
    notice: str | None = None

    def __bool__(self) -> bool:
        """Whether the count or sum is above the threshold."""
        return self.above

    @property
    def interval(self) -> tuple[float, float] | None:
        """The noise interval ``(low, high)`` around the value."""
        if self.value is None or self.half_width is None:
            return None
        return self.value - self.half_width, self.value + self.half_width


# --- comparisons of estimates with numbers ----------------------------------------------------------------------------


Booleans = NDArray[np.bool_]

_CERTAIN: dict[str, Callable[[Cells, Cells, float], Booleans]] = {
    ">": lambda low, high, number: low > number,
    ">=": lambda low, high, number: low >= number,
    "<": lambda low, high, number: high < number,
    "<=": lambda low, high, number: high <= number,
    "==": lambda low, high, number: (low == number) & (high == number),
    "!=": lambda low, high, number: (low > number) | (high < number),
}
"""Whether every number between the limits satisfies the comparison; never true where a limit is NaN."""

OPPOSITE = {">": "<=", "<=": ">", ">=": "<", "<": ">=", "==": "!=", "!=": "=="}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Comparison(Displayed):
    """Whether numbers are above or below a number, as far as their intervals show it.

    It is yes where the whole interval satisfies the comparison, no where none of it does, and undecided otherwise.
    ``if`` and ``bool`` work for a single decided comparison and raise for an undecided one.  The confidence is that of
    the intervals.  It is about the population if there are population intervals, and otherwise about this table, as
    `scope` says.  Post-processing, and free.

    Parameters
    ----------
    description : str
        The compared quantity in words.
    operator : str
        One of ``>``, ``>=``, ``<``, ``<=``, ``==``, ``!=``.
    number : float
    names, keys, outputs
        Names and labels of the numbers, as in the answer.
    arrays : IntervalArrays
        The compared numbers with their noise intervals.
    population_arrays : IntervalArrays or None
        The same with population intervals; None if they are not known.
    confidence : float
    simultaneous : bool
        Whether all intervals hold at once with that confidence.
    notice : str or None
        Warning that the answer is from a rehearsal or not private.

    Examples
    --------
    >>> count = df.count().release(mu=0.1)
    >>> bool(count > 10), (count > 10).outcome
    (True, True)
    >>> (count > count.estimate).outcome is None
    True
    """

    description: str
    operator: str
    number: float
    names: tuple[str, ...]
    keys: tuple[tuple[Key, ...], ...]
    outputs: tuple[str, tuple[Key, ...]] | None
    arrays: IntervalArrays
    confidence: float
    population_arrays: IntervalArrays | None = None
    simultaneous: bool = False
    notice: str | None = None

    @property
    def scope(self) -> str:
        """What the outcome is about: "in the population" or "in this table"."""
        return IN_THIS_TABLE if self.population_arrays is None else IN_THE_POPULATION

    @property
    def in_this_table(self) -> Comparison:
        """The same comparison about this table, by the noise intervals.

        Examples
        --------
        >>> share = (df["age"] > 40).mean().release(mu=0.3)
        >>> (share > 0.01).scope, (share > 0.01).in_this_table.scope
        ('in the population', 'in this table')
        """
        return replace(self, population_arrays=None)

    @property
    def deciding_arrays(self) -> IntervalArrays:
        """The numbers with the intervals that decide."""
        return self.arrays if self.population_arrays is None else self.population_arrays

    @property
    def is_scalar(self) -> bool:
        """Whether a single number is compared."""
        return not self.names and self.outputs is None

    @property
    def outcomes(self) -> list[bool | None]:
        """True, False or None (undecided) for each number, group by group."""
        arrays = self.deciding_arrays
        low, high = arrays.low.ravel(), arrays.high.ravel()
        yes = _CERTAIN[self.operator](low, high, self.number)
        no = _CERTAIN[OPPOSITE[self.operator]](low, high, self.number)
        # An interval that clipping reduced to one value shows that the noise missed, not that this value is certain.
        unsure = arrays.is_collapsed.ravel() & (low == self.number)
        return [
            None if unclear else True if certain else False if excluded else None
            for certain, excluded, unclear in zip(yes, no, unsure, strict=True)
        ]

    @property
    def outcome(self) -> bool | pd.Series | None:
        """True, False or None (undecided); of several numbers a pandas Series of type ``boolean``, with NA."""
        return self.outcomes[0] if self.is_scalar else self.to_pandas()

    def to_pandas(self) -> pd.Series:
        """One row for each number: True, False or NA (undecided).

        Examples
        --------
        >>> answer = df.groupby("plan").size().release(mu=0.1)
        >>> (answer > -1000).to_pandas().tolist()
        [True, True]
        """
        import pandas as pd  # imported when first used

        index = pandas_index(self.names, self.keys, self.outputs)
        return pd.Series(self.outcomes, index=index, dtype="boolean", name=f"{self.operator} {self.number:g}")

    def __bool__(self) -> bool:
        """Whether the comparison holds; raises `RequestError` if it is undecided, or several numbers are compared."""
        what = f"{self.description} {self.operator} {self.number:g}"
        if not self.is_scalar:
            raise RequestError(
                f"{what}: compares several numbers, each of which may be undecided; use .to_pandas(), a Series with "
                "NA for the undecided ones, or select one number with [key]"
            )
        (outcome,) = self.outcomes
        if outcome is not None:
            return outcome
        low, high = float(self.deciding_arrays.low[0, 0]), float(self.deciding_arrays.high[0, 0])
        interval = "there is no interval"
        if not np.isnan([low, high]).any():
            kind = NOISE_INTERVAL if self.population_arrays is None else POPULATION_INTERVAL
            interval = f"the {kind} is {_end(low, display_down)} to {_end(high, display_up)}"
        level = f"{display_down(100 * self.confidence)}% confidence"
        raise RequestError(
            f"{what}: too close to say {self.scope} at {level}: {interval}; release a more accurate answer, or "
            "compare its .estimate, which ignores the noise"
        )

    def __invert__(self) -> Comparison:
        return Comparison(**{**vars(self), "operator": OPPOSITE[self.operator]})


def _end(end: float, display: Callable[[float], str]) -> str:
    return display(end) if np.isfinite(end) else "∞" if end > 0 else "-∞"
