"""Frames by groups: of public values, of calendar periods, and of texts that many units have."""

from __future__ import annotations

from typing import Any, Literal, Self, Unpack, overload

from dpnb._plan.constants import flag
from dpnb._plan.expressions.dtypes import Timestamp
from dpnb._plan.expressions.rules import dtype_of
from dpnb._plan.measurements import Discovery, PlainView, Proportions
from dpnb.errors import PlanError, UnsupportedError
from dpnb.frame.columns.aggregations import counted
from dpnb.frame.columns.bins import public_keys, with_margins
from dpnb.frame.columns.column_expr import groups_of
from dpnb.frame.columns.series import Series
from dpnb.frame.compatibility.options import GROUPING, GroupOptions, check_options, describe_options
from dpnb.frame.groupby import AggregationSpec, GroupBy
from dpnb.frame.layout import ColumnLayout
from dpnb.frame.units.groups import UnitGroupBy, unit_levels, without_repetitions
from dpnb.frame.view import TableView
from dpnb.query.batch import MarginsQuery
from dpnb.query.query import Query

# --- groups by calendar periods ---------------------------------------------------------------------------------------


def period_of(view: TableView, on: object, freq: object) -> Series:
    """The calendar periods of a column of dates, by default the only one, as a column of public values."""
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


# --- frames by groups -------------------------------------------------------------------------------------------------


@describe_options
class Grouping(ColumnLayout):
    """The methods of a frame that split it into groups."""

    __slots__ = ()

    def value_counts(
        self,
        subset: str | list[str] | None = None,
        normalize: bool = False,
        *,
        weights: object = None,
        **options: object,
    ) -> Query:
        """Number of rows for each combination of public values; see `Series.value_counts`.

        Parameters
        ----------
        subset : str or list of str, optional
            The columns; by default all.
        normalize : bool, default False
            Shares of the rows instead of counts.
        weights : str or column, optional
            A number of at least 0 as which each row counts, instead of 1.

        Raises
        ------
        PlanError
            A column has no public values, or an argument is not offered.

        Examples
        --------
        >>> df.value_counts("plan").description
        'count of rows by plan'
        """
        check_options("value_counts", options, self._examples(), "sort", "ascending", "dropna")
        groups = self._groups(self.columns if subset is None else subset)
        view = Proportions() if flag(normalize, "normalize") else PlainView()
        return groups._ask(counted(self._view, weights), view)

    def groupby(self, by: Any = None, keys: object = None, **options: Unpack[GroupOptions]) -> GroupBy:
        """Split the view into groups, to aggregate each; groups without rows are included.

        Parameters
        ----------
        by : str, column, or list of them
            Columns of public values: declared categories, conditions, bins of `dpnb.cut`, parts of dates, rounded
            numbers; string columns with `keys`.  Or the privacy unit, alone or with such columns: the rows of each unit
            are computed together, and the result is a `UnitGroupBy`.  Required.
        keys : list, data frame or answer, optional
            The public groups; by default every combination of the public values.  A list of keys (tuples for several
            columns), a table with the columns of `by`, or the answer of `discover`.

        Raises
        ------
        PlanError
            There is no such column, or its values are not public.

        Examples
        --------
        >>> df.groupby(["plan", df["age"] > 65]).size().description
        'count of rows by plan, age > 65'
        >>> people.groupby("person").agg(total=("cost", "sum"), years="size")
        <private table: total, years>
        """
        own = unit_levels(self._view, by)
        if own is not None:
            check_options("groupby", {**options, "observed": False}, self._examples(), *GROUPING)
            return self._by_unit(own, keys)  # type: ignore[return-value]  # a type checker knows no privacy unit
        check_options("groupby", options, self._examples(), *GROUPING)
        return self._groups(by, keys)

    def _groups(self, by: Any, keys: object = None) -> GroupBy:
        groups = groups_of(self._view, with_periods(self._view, by))
        return GroupBy(self._view, groups, public_keys(self._view, groups, keys))

    def _by_unit(self, own: list[object], keys: object) -> UnitGroupBy[Self]:
        if keys is not None:
            raise PlanError("groupby: keys= names public groups, and units are private; leave it out, and select rows")
        by = groups_of(self._view, with_periods(self._view, own)) if own else ()
        return UnitGroupBy(self._view, by, type(self))

    def drop_duplicates(self, subset: object = None, *, keep: object = "first", **options: object) -> Self:
        """One row of each privacy unit, or of each unit and values of further columns.

        Parameters
        ----------
        subset : str or list of str
            The privacy unit, and further columns of public values.
        keep : {"first", "last"}, default "first"
            Which row, in the order of ``sort_values``; without an order the first is a fixed one.

        Raises
        ------
        UnsupportedError
            `subset` lacks the privacy unit, so rows of different units would be compared.

        Examples
        --------
        >>> people.sort_values("year").drop_duplicates("person", keep="last")["cost"].mean().description
        'mean of cost in one row for each unit ordered by year descending'
        """
        check_options("drop_duplicates", options, self._examples(), "inplace", "ignore_index")
        own = unit_levels(self._view, subset)
        if own is None:
            unit = self._view.unit
            raise UnsupportedError(
                "drop_duplicates: would compare rows of different privacy units; "
                + (f"write df.drop_duplicates({unit!r}) for one row of each" if unit else "here each row is a unit")
            )
        return without_repetitions(self._by_unit(own, None), keep)

    def resample(self, rule: object, *, on: str | None = None, **options: object) -> GroupBy:
        """Split the view into calendar periods of a column of dates; periods without rows are included.

        Parameters
        ----------
        rule : str
            ``"h"``, ``"D"``, ``"W"``, ``"M"``, ``"Q"`` or ``"Y"``, or an equivalent frequency of pandas.
        on : str, optional
            The column of dates; may be left out if there is only one.
        **options
            None of the other arguments of pandas is accepted.

        Raises
        ------
        PlanError
            There is no such column of dates, or no such period.

        Examples
        --------
        >>> df.resample("M", on="admitted")["cost"].sum().description
        "sum of cost by admitted.dt.to_period('M') (UTC)"
        """
        check_options("resample", options, self._examples())
        return self._groups(period_of(self._view, on, rule))

    @overload
    def pivot_table(
        self,
        values: str | list[str] | None = None,
        index: Any = None,
        columns: Any = None,
        aggfunc: AggregationSpec = "mean",
        *,
        margins: Literal[False] = False,
        margins_name: str = "All",
        **options: object,
    ) -> Query: ...
    @overload
    def pivot_table(
        self,
        values: str | list[str] | None = None,
        index: Any = None,
        columns: Any = None,
        aggfunc: AggregationSpec = "mean",
        *,
        margins: Literal[True],
        margins_name: str = "All",
        **options: object,
    ) -> MarginsQuery: ...
    def pivot_table(
        self,
        values: str | list[str] | None = None,
        index: Any = None,
        columns: Any = None,
        aggfunc: AggregationSpec = "mean",
        *,
        margins: bool = False,
        margins_name: str = "All",
        **options: object,
    ) -> Query | MarginsQuery:
        """Aggregate columns for each combination of public values; of one column by two, the answer is a two-way table.

        Parameters
        ----------
        values : str or list of str, optional
            The columns to aggregate; by default all numeric columns.
        index, columns : str, column, or list of them, optional
            The groups, as for `groupby`; at least one of the two is required.  With both, one column
            of `values` and one aggregation, the answer has the last level of the groups as columns.
        aggfunc : str, list or dict, default "mean"
            Aggregations, as for `agg`.
        margins : bool, default False
            Whether the answer also has the statistic for each row and each column of the table, and for all of its
            rows; measured in one batch, see :meth:`dpnb.Session.plan`.
        margins_name : str, default "All"
            Name of the margins.

        Raises
        ------
        PlanError
            There is neither an index nor columns, or they have no public values.

        Examples
        --------
        >>> df.pivot_table(values="cost", index="plan", aggfunc="mean").description
        'mean of cost by plan'
        """
        check_options("pivot_table", options, self._examples(), "fill_value", "observed", "dropna", "sort")
        rows, across = (
            [level for level in (levels if isinstance(levels, list) else [levels]) if level is not None]
            for levels in (index, columns)
        )
        groups = self._groups(rows + across)
        query = (groups if values is None else groups[values]).agg(aggfunc)
        if flag(margins, "margins"):
            return with_margins(query, len(rows), margins_name, self._view.schema)
        is_two_way = rows and across and isinstance(values, str) and isinstance(aggfunc, str)
        return query.unstack() if is_two_way else query

    def discover(self, by: Any, *, discovery_delta: object = None) -> Query:
        """Find the groups that contain enough privacy units: their keys, and the number of units in each.

        This is differentially private partition selection.  A group with a single unit is found with probability at
        most delta, which is taken from the budget's ``discovery_delta`` (a tenth of it by default).

        The interval of a group's number of units is valid conditionally on the group being found, however small it is,
        and the estimate is median-unbiased.  With ``simultaneous=True`` the intervals of all groups found hold at once.

        Parameters
        ----------
        by : str, column, or list of them
            The groups: texts, or other discrete values.
        discovery_delta : Number, optional
            The largest probability with which a group with a single unit is found, at most the budget's
            ``discovery_delta``; by default a tenth of that.  Without a budget, a tenth of ``odometer_delta`` takes its
            place.  It belongs to the query: other values are other queries.

        Raises
        ------
        PlanError
            The budget has no ``discovery_delta``, or a column has no discrete values.

        Examples
        --------
        >>> df.discover("note").description
        'groups that enough privacy units have, by note'
        """
        return self._view.query(
            Discovery(self._view.discovery(discovery_delta)), PlainView(), groups_of(self._view, by)
        )
