"""The parts of a date column: what ``.dt`` returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from dpnb._plan.expressions.nodes import DatePart, Expression, ExtractDatePart
from dpnb._plan.expressions.text import words
from dpnb.frame.unsupported import UnsupportedOperations

C = TypeVar("C")
"""The column that a part is."""


class DateParts(UnsupportedOperations, Generic[C]):
    """Parts of a date column, as whole numbers.

    Parameters
    ----------
    new : callable
        Makes a column of an expression.
    node : expression
        The dates.
    """

    __slots__ = ("_date", "_new")

    def __init__(self, new: Callable[[Expression], C], node: Expression) -> None:
        self._new, self._date = new, node

    def _description(self) -> str:
        return f"{words(self._date)}.dt"

    def _part(self, part: DatePart) -> C:
        return self._new(ExtractDatePart(part, self._date))

    @property
    def year(self) -> C:
        """The calendar year."""
        return self._part("year")

    @property
    def quarter(self) -> C:
        """1 to 4."""
        return self._part("quarter")

    @property
    def month(self) -> C:
        """1 to 12."""
        return self._part("month")

    @property
    def day(self) -> C:
        """Day of the month, 1 to 31."""
        return self._part("day")

    @property
    def dayofyear(self) -> C:
        """Day of the year, 1 to 366."""
        return self._part("dayofyear")

    day_of_year = dayofyear

    @property
    def dayofweek(self) -> C:
        """0 for Monday to 6 for Sunday."""
        return self._part("dayofweek")

    weekday = day_of_week = dayofweek

    @property
    def hour(self) -> C:
        """0 to 23."""
        return self._part("hour")

    @property
    def days(self) -> C:
        """Whole days of a difference of dates, rounded down."""
        return self._part("days")

    def total_seconds(self) -> C:
        """Whole seconds of a difference of dates, rounded down."""
        return self._part("seconds")
