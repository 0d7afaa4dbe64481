"""The parts and periods of a date column: what ``.dt`` returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from dpnb._plan.expressions.nodes import DatePart, Expression, ExtractDatePart, Lookup
from dpnb._plan.expressions.periods import period_of
from dpnb._plan.expressions.text import as_operand, operand, words
from dpnb.errors import PlanError
from dpnb.frame.compatibility.options import check_options, describe_options
from dpnb.frame.compatibility.unsupported import UnsupportedOperations

C = TypeVar("C")
"""The column that a part is."""


DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
FORMATS = {"%Y-%m-%d": "D", "%F": "D", "%Y-%m": "M", "%Y": "Y", "%A": "%A", "%B": "%B"}
"""What a format of a date means as a frequency, or as a name."""


@describe_options
class DateParts(UnsupportedOperations, Generic[C]):
    """Parts of a date column as whole numbers, their names and periods as categories, in its declared zone.

    Parameters
    ----------
    new : callable
        Makes a column of an expression.
    node : expression
        The dates.
    zone : str
        The zone in whose local time the parts are.

    Examples
    --------
    >>> df.groupby(df["admitted"].dt.quarter).size().description
    'count of rows by admitted.dt.quarter (UTC)'
    >>> df[df["admitted"].dt.month == 3]
    <private table: age, cost, plan, admitted, note where admitted.dt.month == 3>
    """

    __slots__ = ("_date", "_new", "_zone")

    def __init__(self, new: Callable[[Expression], C], node: Expression, zone: str) -> None:
        self._new, self._date, self._zone = new, node, zone

    def _description(self) -> str:
        return f"{words(self._date)}.dt"

    def _part(self, part: DatePart) -> C:
        return self._new(ExtractDatePart(part, self._date, self._zone))

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
    def minute(self) -> C:
        """0 to 59."""
        return self._part("minute")

    @property
    def second(self) -> C:
        """0 to 59."""
        return self._part("second")

    def day_name(self, **options: object) -> C:
        """The English name of the day of the week: a category, from Monday to Sunday.

        Examples
        --------
        >>> df["admitted"].dt.day_name().unique()
        ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday']
        """
        check_options("day_name", options, self._examples(), "locale")
        return self._named("dayofweek", "day_name", 0, DAYS)

    def month_name(self, **options: object) -> C:
        """The English name of the month: a category, from January to December.

        Examples
        --------
        >>> df["admitted"].dt.month_name()
        <private column: admitted.dt.month_name()>
        """
        check_options("month_name", options, self._examples(), "locale")
        return self._named("month", "month_name", 1, MONTHS)

    def _named(self, part: DatePart, call: str, first: int, names: tuple[str, ...]) -> C:
        keys = tuple((first + place,) for place in range(len(names)))
        name = f"{operand(self._date)}.dt.{call}()"
        return self._new(Lookup(name, (ExtractDatePart(part, self._date, self._zone),), keys, names))

    # --- periods -----------------------------------------------------------------------------------------------

    @property
    def date(self) -> C:
        """The day as a category such as ``2017-06-05``; see `to_period`."""
        return self.to_period("D")

    def normalize(self) -> C:
        """The day as a category; the same as `date`.

        Examples
        --------
        >>> df["admitted"].dt.normalize()
        <private column: admitted.dt.to_period('D')>
        """
        return self.to_period("D")

    def to_period(self, freq: object = None) -> C:
        """The hour, day, week, month, quarter or year as a category, between the declared dates.

        A clamped date is in the first or the last period.

        Parameters
        ----------
        freq : str
            ``"h"``, ``"D"``, ``"W"`` (from Monday), ``"M"``, ``"Q"`` or ``"Y"``, or another name that pandas gives to
            one of these.

        Raises
        ------
        PlanError
            Another frequency, or more than 100,000 periods between the declared dates.

        Examples
        --------
        >>> df["admitted"].dt.to_period("M").value_counts().description
        "count of rows by admitted.dt.to_period('M') (UTC)"
        """
        return self._new(period_of(self._date, freq, self._zone))

    def floor(self, freq: object, **options: object) -> C:
        """The same as `to_period`.

        Parameters
        ----------
        freq : str
            As for `to_period`.

        Examples
        --------
        >>> df["admitted"].dt.floor("D")
        <private column: admitted.dt.to_period('D')>
        """
        check_options("floor", options, self._examples(), "ambiguous", "nonexistent")
        return self.to_period(freq)

    def strftime(self, date_format: str) -> C:
        """Days, months or years, ``"%Y-%m-%d"``, ``"%Y-%m"`` or ``"%Y"``, as by `to_period`; ``"%A"`` and ``"%B"``.

        Parameters
        ----------
        date_format : str
            One of ``"%Y-%m-%d"``, ``"%F"``, ``"%Y-%m"``, ``"%Y"``, ``"%A"`` and ``"%B"``.

        Examples
        --------
        >>> df["admitted"].dt.strftime("%Y-%m")
        <private column: admitted.dt.to_period('M')>
        """
        given: object = date_format
        freq = FORMATS.get(given) if isinstance(given, str) else None
        if freq is None:
            raise PlanError(
                f"strftime of {words(self._date)}: the formats are '%Y-%m-%d', '%Y-%m', '%Y', '%A' and '%B'; got "
                f"{date_format!r}; use a part such as {as_operand(self._date)}.dt.month, or .dt.to_period('M')"
            )
        return self.day_name() if freq == "%A" else self.month_name() if freq == "%B" else self.to_period(freq)

    # --- durations ---------------------------------------------------------------------------------------------

    @property
    def days(self) -> C:
        """Whole days of a difference of dates, rounded down."""
        return self._part("days")

    def total_seconds(self) -> C:
        """Whole seconds of a difference of dates, rounded down.

        Examples
        --------
        >>> (df["admitted"] - "2024-01-01").dt.total_seconds()
        <private column: (admitted - '2024-01-01 UTC').dt.seconds>
        """
        return self._part("seconds")
