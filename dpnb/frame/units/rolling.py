"""The last rows of each privacy unit up to each of its rows."""

from __future__ import annotations

from collections.abc import Callable

from dpnb._plan.expressions.nodes import WithinFunction
from dpnb.frame.columns.series import Series
from dpnb.frame.compatibility.unsupported import UnsupportedOperations


class Rolling(UnsupportedOperations):
    """The last rows of each privacy unit up to each row: ``df.sort_values(...).groupby(unit)["x"].rolling(3)``.

    Examples
    --------
    >>> people.sort_values("year").groupby("person")["cost"].rolling(2, min_periods=1).sum().dtype
    'number from 0 to 4000'
    """

    __slots__ = ("_of", "_words")

    def __init__(self, words: str, of: Callable[[WithinFunction], Series]) -> None:
        self._words, self._of = words, of

    def _description(self) -> str:
        return self._words

    def sum(self) -> Series:
        """Sum of these rows; missing with fewer values than `min_periods`.

        Examples
        --------
        >>> people.sort_values("year").groupby("person")["cost"].rolling(2).sum().dtype
        'number from 0 to 4000'
        """
        return self._of("rolling_sum")

    def mean(self) -> Series:
        """Mean of these rows; missing with fewer values than `min_periods`.

        Examples
        --------
        >>> people.sort_values("year").groupby("person")["cost"].rolling(2).mean().dtype
        'number from 0 to 2000'
        """
        return self._of("rolling_mean")
