"""Calendar periods: the hour, day, week, month, quarter or year that contains a point in time, as a category.

The categories are the periods between the declared bounds of the dates, so they are public, whatever the rows are.  A
clamped date falls into the first or the last period.  Periods are numbered by calendar units since the beginning of
1970, so every backend computes the number of a period by arithmetic, and no list of edges is part of a plan.

===========  ======================  =====================  ==========================
period       frequency               label                  starts
===========  ======================  =====================  ==========================
``hour``     ``h``                   ``2017-06-05T14:00``   every hour, in UTC
``day``      ``D``                   ``2017-06-05``         at midnight, in UTC
``week``     ``W``, ``W-SUN``        ``2017-06-05``         on Monday
``month``    ``M``, ``ME``, ``MS``   ``2017-06``            on the first day
``quarter``  ``Q``, ``QE``, ``QS``   ``2017Q2``             January, April, July, October
``year``     ``Y``, ``YE``, ``YS``   ``2017``               on 1 January
===========  ======================  =====================  ==========================
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from dpnb._plan.expressions.calendar import index_of
from dpnb._plan.expressions.dtypes import Categorical, Dtype, Timestamp, described, refuse
from dpnb._plan.expressions.nodes import Expression, Period, PeriodUnit
from dpnb._plan.expressions.text import words
from dpnb.errors import PlanError

MAX_PERIODS = 100_000
"""Largest number of periods between the declared dates."""

ALIASES: dict[str, PeriodUnit] = {
    **dict.fromkeys(["h", "H"], "hour"),
    **dict.fromkeys(["D", "d"], "day"),
    **dict.fromkeys(["W", "w", "W-SUN"], "week"),
    **dict.fromkeys(["M", "ME", "MS"], "month"),
    **dict.fromkeys(["Q", "QE", "QS", "Q-DEC", "QE-DEC", "QS-JAN"], "quarter"),
    **dict.fromkeys(["Y", "YE", "YS", "A", "AS", "Y-DEC", "YE-DEC", "YS-JAN"], "year"),
}
"""The frequencies of pandas, old and new, that are periods of the calendar."""


def period_of(node: Expression, freq: object) -> Period:
    """The periods of a date column, by a frequency as pandas writes it.

    Parameters
    ----------
    node : expression
        Dates.
    freq : str or pandas offset
        One of those in the module docstring.

    Raises
    ------
    PlanError
        The frequency is another one.
    """
    alias = getattr(freq, "freqstr", freq)
    unit = ALIASES.get(alias) if isinstance(alias, str) else None
    if unit is None:
        raise PlanError(
            f"periods of {words(node)}: must be hours 'h', days 'D', weeks 'W' (from Monday), months 'M', quarters 'Q' "
            f"or years 'Y'; got {freq!r}; group by a part such as .dt.hour, or by dpnb.cut() of dates, for others"
        )
    return Period(unit, node)


def period(node: Period, kind: Dtype) -> Categorical:
    """The labels of the periods between the bounds of the dates."""
    if not isinstance(kind, Timestamp):
        refuse(node, f"only dates have periods; this is {described(kind)}; declare it as dpnb.Dates(first, last)")
    first, last = index_range(node.unit, kind)
    if last - first >= MAX_PERIODS:
        refuse(
            node,
            f"the declared dates have {last - first + 1:,} periods, and at most {MAX_PERIODS:,} can be groups; take "
            "longer periods",
        )
    return Categorical(_labels(node.unit, first, last))


def index_range(unit: PeriodUnit, kind: Timestamp) -> tuple[int, int]:
    """The numbers of the first and the last period of dates within bounds."""
    first, last = index_of(unit, np.array([kind.low, kind.high])).tolist()
    return int(first), int(last)


@lru_cache(maxsize=64)
def _labels(unit: PeriodUnit, first: int, last: int) -> tuple[str, ...]:
    indices = np.arange(first, last + 1)
    match unit:
        case "quarter":
            return tuple(f"{1970 + index // 4:04d}Q{index % 4 + 1}" for index in indices.tolist())
        case "week":
            days = indices * 7 - 3  # 1970 began on a Thursday
            return tuple(np.datetime_as_string(days.astype("datetime64[D]")).tolist())
        case "hour":
            return tuple(f"{label}:00" for label in np.datetime_as_string(indices.astype("datetime64[h]")).tolist())
    numpy_unit = {"day": "D", "month": "M", "year": "Y"}[unit]
    return tuple(np.datetime_as_string(indices.astype(f"datetime64[{numpy_unit}]")).tolist())
