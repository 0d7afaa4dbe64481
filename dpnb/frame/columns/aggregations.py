"""Aggregations of a column: count, sum, mean, median, quantile, std and others, also with weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack

import numpy as np

from dpnb._plan.checks import check_weights
from dpnb._plan.expressions.dtypes import Categorical, Timestamp, described
from dpnb._plan.expressions.nodes import Expression, Seconds
from dpnb._plan.expressions.rules import dtype_of
from dpnb._plan.expressions.text import words
from dpnb._plan.measurements import (
    AnyView,
    Count,
    Measured,
    Moments,
    MomentsView,
    PlainView,
    QuantilesView,
    QuantileTree,
    Ratio,
    Sum,
    WeightedMean,
)
from dpnb.errors import PlanError
from dpnb.frame.coerce import EXTREMES, Ddof, aggregation_for, as_number, checked_ddof, description_of, quantile_levels
from dpnb.frame.columns.column_expr import ColumnExpr, node_of
from dpnb.frame.columns.column_methods import ColumnMethods, NamedOperators
from dpnb.frame.compatibility.functions import NumpyFunctions
from dpnb.frame.compatibility.options import (
    AGGREGATION,
    AxisOptions,
    PandasOptions,
    check_options,
    describe_options,
    with_queries,
)
from dpnb.frame.formula import regression_of
from dpnb.frame.view import TableView
from dpnb.query.query import Query, standard_error, with_population

MAX_DEGREE = 10
"""Of a fitted polynomial: the powers of a column are almost collinear."""


def weights_of(view: TableView, weights: object, verb: str) -> Expression:
    """The expression of a column of weights, given by name or as a column of the same rows."""
    node = as_number(node_of(view, weights, f"{verb}: weights"), view.schema)
    check_weights(node, view.schema)
    return node


def counted(view: TableView, weights: object) -> Count | Sum:
    """What counts rows: each as 1, or as its weight."""
    return Count() if weights is None else Sum(weights_of(view, weights, "value_counts"))


@describe_options
class Aggregations(NamedOperators, NumpyFunctions, ColumnMethods):
    """A column with its aggregations."""

    __slots__ = ()

    def _query(self, aggregation: Measured, view: AnyView) -> Query:
        return self._view.query(aggregation, view)

    def _number(self) -> Expression:
        """The column as a number: conditions count as 1 or 0, and categories that are numbers as themselves."""
        node = as_number(self._node, self._view.schema)
        kind = dtype_of(node, self._view.schema)
        if isinstance(kind, Categorical):
            groups = self._grouping()
            raise PlanError(
                f"{words(self._node)}: needs a number, and this is {described(kind)}; count its values with "
                + self._example("{self}")
                + f"{groups}.value_counts(), or release the share of one with "
                + self._example("{condition}")
                + f"{groups}.mean()"
            )
        if isinstance(kind, Timestamp):
            raise PlanError(
                f"{words(self._node)}: needs a number, and this is {described(kind)}; use "
                + self._example(
                    "{self}.min(), {self}.median() or {self}.max(), or a part of it, as in {self}.dt.month.mean(), or "
                    "count rows by period, as in df.groupby({self}.dt.year).count()"
                )
            )
        return node

    def _ordered(self) -> Expression:
        """The column as the argument of a quantile: a number, or a date, whose quantiles are dates."""
        kind = dtype_of(self._node, self._view.schema)
        return Seconds(self._node, kind.zone_name) if isinstance(kind, Timestamp) else self._number()

    def _checked(self, verb: str, options: Mapping[str, object], axis: object = 0) -> None:
        if options or axis != 0:
            check_options(verb, {"axis": axis, **options}, self._examples(), *AGGREGATION)

    @with_queries('["age"].count()', "count of age")
    def count(self) -> Query:
        """Number of rows with a value in the column, as in pandas.

        What the schema cannot use counts as null: an undeclared category, or a number out of bounds with
        ``outside="drop"``.  There is no ``size``: `Frame.count` is the number of rows, nulls included.
        """
        return self._query(*aggregation_for("count", self._node))

    @with_queries('["cost"].sum()', "sum of cost")
    def sum(self, axis: object = 0, *, population: bool = False, **options: Unpack[PandasOptions]) -> Query:
        """Sum of a bounded column; of a condition, the number of rows for which it is true.

        Parameters
        ----------
        axis : {0, "index", "rows"}, default 0
            Values are aggregated over rows.
        population : bool, default False
            As for `mean`.
        """
        self._checked("sum", options, axis)
        return with_population(self._query(*aggregation_for("sum", self._number())), population)

    @with_queries('["age"].mean()', "mean of age")
    def mean(
        self, axis: object = 0, *, population: bool = False, weights: object = None, **options: Unpack[PandasOptions]
    ) -> Query:
        """Mean of a bounded column: its count and centred sum, measured jointly; of a condition, a proportion.

        Parameters
        ----------
        axis : {0, "index", "rows"}, default 0
            Values are aggregated over rows.
        population : bool, default False
            Whether a tenth of the charge measures the sampling error, so that the answer has a population interval.
            That of a proportion needs no measurement where each row is a unit.
        weights : str or column, optional
            A number of at least 0 by which each row is weighted, as in ``numpy.average``: the mean is the sum of
            weighted values over the sum of weights, over the rows that have both.  It must be declared to be at least
            0.  The noise is that of rows with the largest weight, so clip weights that may be far above most.

        Raises
        ------
        PlanError
            The column is not a number, or `weights` may be negative.
        """
        self._checked("mean", options, axis)
        if weights is not None:
            weighted = WeightedMean(self._number(), weights_of(self._view, weights, "mean"))
            return with_population(self._query(weighted, PlainView()), population)
        query = self._query(*aggregation_for("mean", self._number()))
        return query if population is False else with_population(query, population)

    def sem(self, ddof: Ddof = 1, **options: Unpack[AxisOptions]) -> Query:
        """Standard error of the mean: the standard deviation of its sampling error, clustered by the privacy unit.

        It is measured together with the mean, as `mean` with ``population=True`` measures it.

        Parameters
        ----------
        ddof : {1, 0}, default 1
            Without effect: the sum of squares is divided by the noisy count.

        Examples
        --------
        >>> df["age"].sem().description
        'standard error of the mean of age'
        """
        self._checked("sem", options)
        checked_ddof(ddof)
        return standard_error(self._query(*aggregation_for("mean", self._number())))

    @with_queries('["age"].var()', "sample variance of age")
    def var(self, ddof: Ddof = 1, **options: Unpack[AxisOptions]) -> Query:
        """Variance: count, sum and sum of squares, measured jointly.

        Parameters
        ----------
        ddof : {1, 0}, default 1
            The sum of squares about the mean is divided by the noisy count less `ddof`.  As in pandas 1 is the
            default, and 0 gives the population variance.  Both are read from one measurement: once one is released,
            the other costs nothing at the same ``mu=``; ``share=`` and ``within=`` are resolved again.

        Raises
        ------
        PlanError
            The column is not a number, or `ddof` is neither 0 nor 1.
        """
        self._checked("var", options)
        return self._query(*aggregation_for("var", self._number(), ddof=ddof))

    @with_queries('["age"].std()', "sample standard deviation of age")
    def std(self, ddof: Ddof = 1, **options: Unpack[AxisOptions]) -> Query:
        """Standard deviation: the square root of `var`.

        Parameters
        ----------
        ddof : {1, 0}, default 1
            As for `var`.
        """
        self._checked("std", options)
        return self._query(*aggregation_for("std", self._number(), ddof=ddof))

    @with_queries('["age"].min()', "smallest of age")
    def min(self, axis: object = 0, **options: Unpack[PandasOptions]) -> Query:
        """The smallest value that exceeds the noise: a quantile, measured with the other quantiles at no extra cost.

        Of dates it is a date, as are the other quantiles.
        """
        self._checked("min", options, axis)
        return self._query(*aggregation_for("min", self._ordered()))

    @with_queries('["age"].max()', "largest of age")
    def max(self, axis: object = 0, **options: Unpack[PandasOptions]) -> Query:
        """The largest value that exceeds the noise: a quantile, measured with the other quantiles at no extra cost."""
        self._checked("max", options, axis)
        return self._query(*aggregation_for("max", self._ordered()))

    @with_queries('["age"].median()', "median of age")
    def median(self, axis: object = 0, **options: Unpack[PandasOptions]) -> Query:
        """The median; any other quantile is free afterwards."""
        self._checked("median", options, axis)
        return self._query(*aggregation_for("median", self._ordered()))

    @with_queries('["age"].quantile([0.25, 0.75])', "quantiles 0.25, 0.75 of age")
    def quantile(self, q: object = 0.5, **options: Unpack[AxisOptions]) -> Query:
        """One quantile or a list of them, in one charge: all are read from one noisy tree.

        Parameters
        ----------
        q : float or list of float, default 0.5
            Levels from 0 to 1; 0.5 is the median.  One level gives one number, a list one for each level.
        """
        self._checked("quantile", options)
        levels = QuantilesView(quantile_levels(q), single=np.ndim(q) == 0)  # type: ignore[arg-type]
        return self._query(QuantileTree(self._ordered(), graded=True), levels)

    @with_queries('["age"].corr(df["cost"])', "correlation of age and cost")
    def corr(self, other: ColumnExpr, **options: Unpack[AxisOptions]) -> Query:
        """Pearson's correlation with another column.

        Parameters
        ----------
        other : column
            Another numeric column of the same rows.
        """
        self._checked("corr", options)
        return self._pair("corr", other)

    @with_queries('["age"].cov(df["cost"])', "sample covariance of age and cost")
    def cov(self, other: ColumnExpr, *, ddof: Ddof = 1, **options: object) -> Query:
        """Covariance with another column; `ddof` as in `var`, of the rows that have both.

        Parameters
        ----------
        other : column
            Another numeric column of the same rows.
        ddof : {1, 0}, default 1
            The sum of products is divided by the noisy count less `ddof`.
        """
        check_options("cov", options, self._examples(), "min_periods")
        return self._pair("cov", other, checked_ddof(ddof))

    def _pair(self, statistic: str, other: object, ddof: int = 0) -> Query:
        columns, _ = self._both(other, statistic)
        return self._query(Moments(columns), MomentsView(statistic, (0, 1), ddof=ddof))

    def _matrix(self, statistic: str, other: object, ddof: int = 0) -> Query:
        """The matrix of numpy's `corrcoef` and `cov` of two columns."""
        columns, places = self._both(other, statistic)
        names = tuple(self._view.name_of(columns[place]) for place in places)
        return self._query(Moments(columns), MomentsView(f"{statistic} matrix", places, names, ddof))

    def _both(self, other: object, statistic: str) -> tuple[tuple[Expression, ...], tuple[int, ...]]:
        """Two columns in the order of a measurement, which is the same in either order, and where each of them is."""
        first, second = self._number(), as_number(self._column(other, statistic), self._view.schema)
        if first == second:
            raise PlanError(f"{statistic}: needs two different columns; got {words(second)} twice; use .var()")
        columns = tuple(sorted((first, second), key=words))
        return columns, (columns.index(first), columns.index(second))

    def _polynomial(self, outcome: object, degree: object) -> Query:
        """The regression on the powers of the column, the highest first as in `numpy.polyfit`."""
        if isinstance(degree, bool) or not isinstance(degree, int) or not 1 <= degree <= MAX_DEGREE:
            raise PlanError(f"numpy.polyfit: the degree must be a whole number from 1 to {MAX_DEGREE}; got {degree!r}")
        powers = [(self if power == 1 else self**power)._node for power in range(degree, 0, -1)]
        return self._query(*regression_of([self._column(outcome, "numpy.polyfit"), *powers], self._view))

    def dot(self, other: ColumnExpr) -> Query:
        """Sum of the products with another column; also ``column @ other``.

        Parameters
        ----------
        other : column
            Another numeric column of the same rows.

        Examples
        --------
        >>> df["age"].dot(df["cost"]).description
        'sum of age * cost'
        """
        self._column(other, "dot")
        return self._query(*aggregation_for("sum", (self * other)._node))

    __matmul__ = dot

    @with_queries('["cost"].ratio(df["age"])', "ratio of cost to age")
    def ratio(self, denominator: ColumnExpr, *, population: bool = False) -> Query:
        """Sum of this column divided by the sum of another, over the rows that have a value in both.

        Parameters
        ----------
        denominator : column
            Another numeric column of the same rows.
        population : bool, default False
            As for `mean`.
        """
        other = as_number(self._column(denominator, "ratio"), self._view.schema)
        return with_population(self._query(Ratio(self._number(), other), PlainView()), population)

    def describe(self, **options: object) -> Query:
        """Count, mean, `std` and quartiles in one charge: half for the moments, half for the quantiles.

        Examples
        --------
        >>> df["age"].describe().description
        'description of age'
        """
        check_options("describe", options, self._examples(), "percentiles", "include", "exclude")
        return self._query(*description_of(self._number()))

    def _agg_node(self, verb: object) -> Expression:
        """The column as the argument of an aggregation: a count takes any column, a quantile also dates."""
        if verb == "count":
            return self._node
        return self._ordered() if verb in EXTREMES else self._number()
