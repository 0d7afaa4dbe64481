"""The intervals of estimates: noise intervals, and population intervals where the sampling error is known."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dpnb.errors import RequestError
from dpnb.results.estimates.noisy import IntervalArrays
from dpnb.results.tables.index import OfEstimates

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
