"""Aggregations of all numeric columns of a view at once, in one charge: shared by `Frame` and `GroupBy`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, Unpack

import numpy as np

from dpnb._plan.description import title_of_description
from dpnb._plan.expressions.dtypes import Boolean, Numeric
from dpnb._plan.expressions.nodes import Expression
from dpnb._plan.expressions.rules import dtype_of
from dpnb._plan.expressions.text import words
from dpnb._plan.measurements import (
    AnyView,
    ColumnsView,
    JointAggregation,
    Measured,
    Moments,
    MomentsView,
    NamedColumn,
    WeightedAggregation,
)
from dpnb.errors import PlanError
from dpnb.frame.coerce import Ddof, as_number, checked_ddof, description_of, joint_aggregation, quantile_levels
from dpnb.frame.compatibility.functions import Pipe
from dpnb.frame.compatibility.options import (
    AGGREGATION,
    AxisOptions,
    PandasOptions,
    check_options,
    describe_options,
    with_queries,
)
from dpnb.frame.compatibility.unsupported import NoOperators
from dpnb.frame.view import TableView
from dpnb.query.query import Query


class HasColumns(Protocol):
    """What has numeric columns to aggregate: a frame, or a grouped one."""

    _view: TableView

    def _examples(self) -> Mapping[str, str]: ...
    def _group_nodes(self) -> tuple[Expression, ...]: ...
    def _ask(self, aggregation: Measured, view: AnyView) -> Query: ...


@describe_options
class ColumnwiseAggregations(Pipe, NoOperators):
    """One number for each numeric column, in one charge that is divided equally between the columns.

    A single numeric column is measured exactly like the series: ``df[["a"]].mean()`` is ``df["a"].mean()``.
    """

    __slots__ = ()

    @with_queries(".sum()", "sum of age, sum of cost")
    def sum(self: HasColumns, axis: object = 0, **options: Unpack[PandasOptions]) -> Query:
        """Sum of each numeric column, and number of rows for which each condition is true."""
        return each_column(self, "sum", {"axis": axis, **options})

    @with_queries(".mean()", "mean of age, mean of cost")
    def mean(self: HasColumns, axis: object = 0, **options: Unpack[PandasOptions]) -> Query:
        """Mean of each numeric column, and proportion of each condition."""
        return each_column(self, "mean", {"axis": axis, **options})

    @with_queries(".var()", "sample variance of age, sample variance of cost")
    def var(self: HasColumns, ddof: Ddof = 1, **options: Unpack[AxisOptions]) -> Query:
        """Variance of each numeric column; `ddof` as in `Series.var`.

        Parameters
        ----------
        ddof : {1, 0}, default 1
            As for `dpnb.Series.var`.
        """
        return each_column(self, "var", options, ddof=ddof)

    @with_queries(".std()", "sample standard deviation of age, sample standard deviation of cost")
    def std(self: HasColumns, ddof: Ddof = 1, **options: Unpack[AxisOptions]) -> Query:
        """Standard deviation of each numeric column; `ddof` as in `Series.var`.

        Parameters
        ----------
        ddof : {1, 0}, default 1
            As for `dpnb.Series.var`.
        """
        return each_column(self, "std", options, ddof=ddof)

    @with_queries('[["age"]].min()', "smallest of age")
    def min(self: HasColumns, axis: object = 0, **options: Unpack[PandasOptions]) -> Query:
        """The smallest value of each numeric column that exceeds the noise."""
        return each_column(self, "min", {"axis": axis, **options})

    @with_queries('[["age"]].max()', "largest of age")
    def max(self: HasColumns, axis: object = 0, **options: Unpack[PandasOptions]) -> Query:
        """The largest value of each numeric column that exceeds the noise."""
        return each_column(self, "max", {"axis": axis, **options})

    @with_queries('[["age"]].median()', "median of age")
    def median(self: HasColumns, axis: object = 0, **options: Unpack[PandasOptions]) -> Query:
        """Median of each numeric column."""
        return each_column(self, "median", {"axis": axis, **options})

    @with_queries('[["age"]].quantile(0.9)', "quantile 0.9 of age")
    def quantile(self: HasColumns, q: float = 0.5, **options: Unpack[AxisOptions]) -> Query:
        """One quantile of each numeric column.

        Parameters
        ----------
        q : float, default 0.5
            One level from 0 to 1; several are for a single column.
        """
        if np.ndim(q):
            raise PlanError(
                f"quantile: takes one level for several columns; got {q!r}; a series takes a list, as in "
                f"{self._examples()['number']}.quantile({list(q)!r})"  # type: ignore[call-overload]
            )
        (level,) = quantile_levels(q)
        return each_column(self, level, options)

    @with_queries('[["age"]].describe()', "description of age")
    def describe(self: HasColumns, **options: Any) -> Query:
        """Count, mean, `std` and quartiles of each column of numbers, in one charge; not of conditions, as in pandas.

        The answer has one row for each column; of groups, one row for each group.  Half of the charge is for the
        moments and half for the quantiles, as for a series.
        """
        check_options("describe", options, self._examples(), "percentiles", "include", "exclude")
        numbers = numeric_columns(self, "describe", conditions=False)
        parts: list[WeightedAggregation] = []
        named: list[NamedColumn] = []
        statistics: list[str] = []
        for name, node in numbers.items():
            aggregation, view = description_of(node)
            for column in view.columns:
                named.append(NamedColumn(f"{name} {column.name}", column.part + len(parts), column.view))
            parts += aggregation.parts
            statistics = [column.name for column in view.columns]
        if len(numbers) == 1:
            return self._ask(aggregation, view)
        # With groups the statistics of all columns are side by side, in one row for each group.
        rows = () if self._group_nodes() else tuple(numbers)
        title = title_of_description(tuple(numbers.values()))
        shape = ColumnsView(tuple(named), title, rows, tuple(statistics) if rows else ())
        return self._ask(JointAggregation(tuple(parts)), shape)

    def corr(self: HasColumns, **options: Unpack[AxisOptions]) -> Query:
        """Pearson's correlations of all pairs of numeric columns, from one measurement; the answer is a matrix.

        Examples
        --------
        >>> df.corr().description
        'correlations of age, cost'
        """
        return _pairs(self, "corr", options, 0)

    def cov(self: HasColumns, ddof: Ddof = 1, **options: Unpack[AxisOptions]) -> Query:
        """Covariances of all pairs of numeric columns, from one measurement; the answer is a matrix.

        Parameters
        ----------
        ddof : {1, 0}, default 1
            As for `dpnb.Series.cov`.

        Examples
        --------
        >>> df.cov().description
        'sample covariances of age, cost'
        """
        return _pairs(self, "cov", options, checked_ddof(ddof))


def each_column(view: HasColumns, verb: str | float, options: Mapping[str, object], *, ddof: object = 1) -> Query:
    """The query of one statistic of each numeric column; a number as `verb` is the level of a quantile."""
    name = verb if isinstance(verb, str) else "quantile"
    check_options(name, options, view._examples(), *AGGREGATION)
    numbers = numeric_columns(view, name)
    aggregation, columns = joint_aggregation([(own, node, verb) for own, node in numbers.items()], {}, ddof=ddof)
    if len(numbers) == 1:
        return view._ask(aggregation.parts[0].aggregation, columns.columns[0].view)
    return view._ask(aggregation, columns)


def numeric_columns(view: HasColumns, verb: str, *, conditions: bool = True) -> dict[str, Expression]:
    """The columns that are numbers or conditions, other than those of the groups, by name; at least one.

    Without `conditions` these are left out if there is a number.
    """
    own, groups = view._view, view._group_nodes()
    kinds = {name: dtype_of(node, own.schema) for name, node in own.columns.items() if node not in groups}
    if not conditions and any(isinstance(kind, Numeric) for kind in kinds.values()):
        kinds = {name: kind for name, kind in kinds.items() if isinstance(kind, Numeric)}
    numbers = {
        name: as_number(own.columns[name], own.schema)
        for name, kind in kinds.items()
        if isinstance(kind, Numeric | Boolean)
    }
    if not numbers:
        raise PlanError(
            f"{verb}: none of the columns {', '.join(map(repr, own.columns))} is a number; count the rows of each "
            f"value instead, as in {view._examples()['category']}.value_counts()"
        )
    return numbers


def _pairs(view: HasColumns, statistic: str, options: Mapping[str, object], ddof: int) -> Query:
    check_options(statistic, options, view._examples(), *AGGREGATION)
    numbers = numeric_columns(view, statistic)
    if len(numbers) < 2:
        raise PlanError(f"{statistic}: needs at least two numeric columns; got {', '.join(map(repr, numbers))}")
    if view._group_nodes():
        one, other, *_ = numbers
        raise PlanError(
            f"{statistic}: a matrix is not offered for groups; select one, as in "
            f"df[{view._examples()['mask']}].{statistic}(), "
            f"or use df[{one!r}].{statistic}(df[{other!r}]) for one pair"
        )
    if len(set(numbers.values())) < len(numbers):
        raise PlanError(f"{statistic}: two of the columns {', '.join(map(repr, numbers))} are equal; leave one out")
    # Sorted, so that regressions and correlations of the same columns share the measurement.
    columns = tuple(sorted(numbers.values(), key=words))
    indices = tuple(columns.index(node) for node in numbers.values())
    return view._ask(Moments(columns), MomentsView(f"{statistic} matrix", indices, tuple(numbers), ddof))
