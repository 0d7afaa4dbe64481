"""The intervals of estimates, and comparisons with numbers, also by an above-threshold mechanism.

Of an estimate the outcome of a comparison is yes, no, or too close to say at the confidence of its interval; a
mechanism, which compares counts and sums, always says yes or no, from a noisy comparison.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpnb._browser.glossary import IN_THE_POPULATION, IN_THIS_TABLE, NOISE_INTERVAL, POPULATION_INTERVAL
from dpnb.accounting.exact import display_down, display_up
from dpnb.errors import RequestError
from dpnb.results.display import Displayed
from dpnb.results.estimates.noisy import Cells, IntervalArrays
from dpnb.results.tables.index import OfEstimates, pandas_index
from dpnb.schema import Key

if TYPE_CHECKING:
    import pandas as pd


OTHER_KINDS = ("anytime_arrays", "population_arrays", "anytime_population_arrays", "tested_arrays")
"""The fields of estimates with intervals of other kinds than those of the noise in one observation."""


class Intervals(OfEstimates[Any]):
    """The intervals."""

    @property
    def interval(self) -> tuple[float, float] | pd.DataFrame:
        """The noise interval ``(low, high)`` of a single number, otherwise a DataFrame with these columns."""
        if self.is_scalar:
            return self._shaped("low"), self._shaped("high")
        return self.to_pandas()[["low", "high"]]

    @property
    def population_interval(self) -> tuple[float, float] | pd.DataFrame:
        """The population interval ``(low, high)`` of a single number, otherwise a DataFrame with these columns.

        It contains, with the stated confidence, the value in the population from which the units are a sample; of a
        count or sum, what such a sample has on average.

        Raises
        ------
        RequestError
            The sampling error of no number is known: release with ``population=True``, or use ``.population(...)``.

        Examples
        --------
        >>> shares = df["plan"].value_counts(normalize=True).release(mu=0.1)
        >>> shares.population_interval.columns.tolist()
        ['population_low', 'population_high']
        """
        arrays = self.population_arrays
        if arrays is None:
            raise RequestError(
                f"population_interval: the sampling error of {self.description} is not known; {self._population_remedy}"
            )
        if self.is_scalar:
            return self._shaped("population_low"), self._shaped("population_high")
        return self.to_pandas()[["population_low", "population_high"]]

    @property
    def has_population_intervals(self) -> bool:
        """Whether any number has a population interval."""
        return self.population_arrays is not None

    @property
    def _population_remedy(self) -> str:
        return "compute with answers that have one, as of .release(...).population(share=0.01)"

    @property
    def has_intervals(self) -> bool:
        """Whether any number has an interval; the coefficients of a descent have none."""
        return not bool(np.isnan(self.arrays.low).all())

    def _intervals(self, function: Callable[[IntervalArrays], IntervalArrays]) -> dict[str, Any]:
        """A function of the intervals of each kind."""
        others = {name: getattr(self, name) for name in OTHER_KINDS}
        return {
            "arrays": function(self.arrays),
            **{name: None if arrays is None else function(arrays) for name, arrays in others.items()},
        }


# --- what two answers have in common ----------------------------------------------------------------------------------


ABOUT = ("notice", "excluded", "condition", "uncounted")
"""What is said about an answer, and then also about what is computed from it."""


def said_of_both(one: str | None, other: str | None) -> str | None:
    """What is said about either of two answers."""
    return "; ".join(dict.fromkeys(text for text in (one, other) if text)) or None


def repeated(values: Sequence[Any], count: int) -> Sequence[Any]:
    """A value for each of `count` groups, where there may be one for all."""
    return tuple(values) * count if len(values) == 1 else values


def are_apart(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether no unit is in two groups that are combined: some expression has another value in each."""
    if not one or not other:
        return False
    pairs = zip(one, repeated(other, len(one)), strict=False)
    return all(
        any(by in others and others[by] != value for by, value in mine)
        for mine, others in ((a, dict(b)) for a, b in pairs)
    )


def with_sampling(one: Any, apart: bool, *, anytime: bool, tested: bool = False) -> IntervalArrays | None:
    """The population intervals of an operand, such that the sampling errors may be added in quadrature.

    Errors of the same units may be dependent, but their standard deviations a and b at most add up, and
    ``(a + b)^2 <= 2 a^2 + 2 b^2``.
    """
    noise, sampled = one.arrays, one.population_arrays
    if tested:
        sampled = one.tested_arrays or sampled
    if anytime:
        noise, sampled = one.anytime_arrays or noise, one.anytime_population_arrays or sampled
    if sampled is None or apart:
        return sampled  # type: ignore[no-any-return]
    below, above = (math.sqrt(2.0) * distance for distance in sampled.beyond(noise))
    found: IntervalArrays = noise.widened(below, above)
    unknown = np.isnan(sampled.low)
    low, high = (np.where(unknown, np.nan, end) for end in (found.low, found.high))
    return replace(
        found, low=low, high=high, raw=(found.value, low, high), whole_range=found.has_whole_range & ~unknown
    )


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
