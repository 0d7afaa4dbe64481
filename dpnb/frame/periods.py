"""Groups by calendar periods: ``df.resample("M", on="date")`` and ``pd.Grouper(key="date", freq="M")``."""

from __future__ import annotations

from typing import Any

from dpnb._plan.expressions.dtypes import Timestamp
from dpnb._plan.expressions.rules import dtype_of
from dpnb.errors import PlanError
from dpnb.frame.series import Series
from dpnb.frame.view import TableView


def period_of(view: TableView, on: object, freq: object) -> Series:
    """The calendar periods of a column of dates, as a column whose public values are groups.

    `on` is the name of the column, by default the only one of dates; `freq` a frequency as in
    `dpnb._plan.expressions.periods`.
    """
    dates = [name for name, node in view.columns.items() if isinstance(dtype_of(node, view.schema), Timestamp)]
    if on is None:
        if len(dates) != 1:
            raise PlanError(f"resample: on= must name a column of dates; {_listed(dates)}")
        (on,) = dates
    column = Series(view, view.column(on))
    if on not in dates:
        raise PlanError(f"resample: on={on!r} is not a column of dates; {_listed(dates)}")
    periods: Series = column.dt.to_period(freq)
    return periods


def _listed(dates: list[str]) -> str:
    """What columns of dates there are, or what to use without one."""
    if not dates:
        return (
            "this view has none, since dates must be declared by the curator; group by another column with .groupby()"
        )
    return f"the columns of dates are {', '.join(map(repr, dates))}"


def with_periods(view: TableView, by: Any) -> Any:
    """The levels of groups, with each ``pandas.Grouper`` replaced by the periods of its column."""
    if isinstance(by, list):
        return [with_periods(view, level) for level in by]
    if type(by).__module__.partition(".")[0] == "pandas" and hasattr(by, "freq") and hasattr(by, "key"):
        if by.freq is None:
            return by.key
        return period_of(view, by.key, by.freq)
    return by
