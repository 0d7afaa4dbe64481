"""One column of a view, or an expression of its columns, with its aggregations."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from dpnb._core.query import Query
from dpnb._plan.constants import flag
from dpnb._plan.expressions.nodes import Expression
from dpnb._plan.expressions.rules import numeric_dtype_of
from dpnb._plan.expressions.text import words
from dpnb._plan.measurements import (
    AnyView,
    ColumnsView,
    Count,
    JointAggregation,
    Measured,
    Moments,
    MomentsView,
    NamedColumn,
    PlainView,
    Proportions,
    QuantilesView,
    QuantileTree,
    Ratio,
    WeightedAggregation,
)
from dpnb._plan.plan import GroupLevel
from dpnb._plan.schema import Key
from dpnb.errors import PlanError
from dpnb.frame.bounds import BoundsQuery, bounds_query
from dpnb.frame.coerce import EXTREMES, Ddof, aggregation_for, as_number, bins, checked_ddof, quantile_levels
from dpnb.frame.column_expr import ColumnExpr, filtered, groups_of, listed_keys

C = TypeVar("C", bound=ColumnExpr)


class Series(ColumnExpr):
    """One column of a view, or an expression of its columns.

    Examples
    --------
    >>> import dpnb
    >>> session = dpnb.Session.rehearse(
    ...     name="people",
    ...     budget=dpnb.Budget(epsilon=1, delta=1e-6),
    ...     schema={"age": dpnb.Bounded(0, 100)},
    ... )
    >>> session.frame["age"].mean().description
    'mean of age'
    """

    __slots__ = ()

    def __getitem__(self, key: object) -> Series:
        """Select the rows for which a condition is true."""
        if isinstance(key, ColumnExpr):
            return Series(filtered(self._view, key), self._node)
        raise PlanError(f"{words(self._node)}[...]: takes a condition; got {key!r}; single rows are never shown")

    # --- aggregations ------------------------------------------------------------------------------------------

    def _query(
        self,
        aggregation: Measured,
        view: AnyView | None = None,
        by: tuple[GroupLevel, ...] = (),
        keys: tuple[tuple[Key, ...], ...] | None = None,
    ) -> Query:
        return self._view.query(aggregation, view or PlainView(), by, keys)

    def _number(self) -> Expression:
        return as_number(self._node, self._view.schema)

    def count(self) -> Query:
        """Number of rows with a value in the column, as in pandas.

        What the schema cannot use counts as null: an undeclared category, or a number out of bounds with
        ``outside="drop"``.  There is no ``size``: `Frame.count` is the number of rows, nulls included.
        """
        return self._query(*aggregation_for("count", self._node))

    def sum(self) -> Query:
        """Sum of a bounded column; of a condition, the number of rows for which it is true."""
        return self._query(*aggregation_for("sum", self._number()))

    def mean(self) -> Query:
        """Mean of a bounded column: its count and centred sum, measured jointly; of a condition, a proportion."""
        return self._query(*aggregation_for("mean", self._number()))

    def var(self, ddof: Ddof = 1) -> Query:
        """Variance: count, sum and sum of squares, measured jointly.

        Parameters
        ----------
        ddof : {1, 0}
            The sum of squares about the mean is divided by the noisy count less `ddof`.  As in pandas 1 is the
            default, and 0 gives the population variance.  Both are read from one measurement: once one is released,
            the other costs nothing at the same ``mu=``; ``share=`` and ``within=`` are resolved again.

        Raises
        ------
        PlanError
            The column is no number, or `ddof` is neither 0 nor 1.
        """
        return self._query(*aggregation_for("var", self._number(), ddof=ddof))

    def std(self, ddof: Ddof = 1) -> Query:
        """Standard deviation: the square root of `var`."""
        return self._query(*aggregation_for("std", self._number(), ddof=ddof))

    def min(self) -> Query:
        """The smallest value that exceeds the noise: a quantile, measured with the other quantiles at no extra cost."""
        return self._query(*aggregation_for("min", self._number()))

    def max(self) -> Query:
        """The largest value that exceeds the noise: a quantile, measured with the other quantiles at no extra cost."""
        return self._query(*aggregation_for("max", self._number()))

    def median(self) -> Query:
        """The median; any other quantile is free afterwards."""
        return self._query(*aggregation_for("median", self._number()))

    def quantile(self, q: object = 0.5) -> Query:
        """One quantile or a list of them, in one charge: all are read from one noisy tree."""
        return self._query(QuantileTree(self._number()), QuantilesView(quantile_levels(q), single=np.ndim(q) == 0))  # type: ignore[arg-type]

    def corr(self, other: Series) -> Query:
        """Pearson's correlation with another column."""
        return self._pair("corr", other)

    def cov(self, other: Series, *, ddof: Ddof = 1) -> Query:
        """Covariance with another column; `ddof` as in `var`, of the rows that have both."""
        return self._pair("cov", other, checked_ddof(ddof))

    def _pair(self, statistic: str, other: object, ddof: int = 0) -> Query:
        second = as_number(self._column(other, statistic), self._view.schema)
        columns = tuple(sorted((self._number(), second), key=words))  # the same query in either order
        if columns[0] == columns[1]:
            raise PlanError(f"{statistic}: needs two different columns; got {words(second)} twice; use .var()")
        return self._query(Moments(columns), MomentsView(statistic, (0, 1), ddof=ddof))

    def ratio(self, denominator: Series) -> Query:
        """Sum of this column divided by the sum of another, over the rows that have a value in both."""
        other = as_number(self._column(denominator, "ratio"), self._view.schema)
        return self._query(Ratio(self._number(), other))

    def value_counts(self, normalize: bool = False, keys: object = None) -> Query:
        """Rows of each public value; with `normalize` as shares.  `keys` gives the public values of a string column."""
        by = groups_of(self._view, self)
        listed = listed_keys(self._view, by, keys)
        return self._query(Count(), Proportions() if flag(normalize, "normalize") else PlainView(), by, listed)

    def histogram(self, bins: object = 10) -> Query:
        """Rows in bins of equal width between the bounds, or between given edges; a bin includes its lower edge."""
        edges = cut(self, bins, right=False)
        return self._query(Count(), by=(GroupLevel(words(self._node), edges._node),))

    def find_bounds(self) -> BoundsQuery:
        """Narrow bounds for a column whose declared bounds are wide, from one noisy histogram.

        The rows are counted in public bins of 1, 2 and 5 times each power of ten inside the column's bounds.  The
        answer has the smallest range of bins that are above the noise as its `bounds`, and displays it as
        ``dpnb.Bounded(low, high)`` and as ``.clip(low, high)``, to copy into a schema or a query.  No bin without rows
        is above the noise, and at most as many rows as it states lie outside, together with the request's
        ``confidence``.  A single unit's outlier is within the noise at any usual mu: it is not in the range, by design.

        Raises
        ------
        PlanError
            The column is no number, or its bounds lie within one bin.

        Examples
        --------
        >>> import dpnb
        >>> session = dpnb.Session.rehearse(
        ...     name="people",
        ...     budget=dpnb.Budget(epsilon=1, delta=1e-6),
        ...     schema={"wage": dpnb.Bounded(-1e9, 1e9)},
        ... )
        >>> query = session.frame["wage"].find_bounds()
        >>> query.description
        'bounds of wage'
        >>> answer = query.release(share=0.1)
        >>> bounds = answer.bounds or dpnb.Bounded(-1e9, 1e9)
        >>> session.frame["wage"].clip(bounds.low, bounds.high).mean().preview(share=0.1).fits
        True
        """
        return bounds_query(self._view, self._node)

    def describe(self) -> Query:
        """Count, mean, `std` and quartiles in one charge: half for the moments, half for the quantiles."""
        node = self._number()
        columns = [NamedColumn(name, 0, MomentsView(name)) for name in ("count", "mean")]
        columns.append(NamedColumn("std", 0, MomentsView("std", ddof=1)))
        columns.append(NamedColumn("min", 1, QuantilesView((EXTREMES["min"],), single=True)))
        columns += [NamedColumn(f"{round(100 * q)}%", 1, QuantilesView((q,), single=True)) for q in (0.25, 0.5, 0.75)]
        columns.append(NamedColumn("max", 1, QuantilesView((EXTREMES["max"],), single=True)))
        return self._query(
            JointAggregation((WeightedAggregation(Moments((node,))), WeightedAggregation(QuantileTree(node)))),
            ColumnsView(tuple(columns), f"description of {words(node)}"),
        )


def cut(x: C, bins_: object, *, labels: object = None, right: bool = True) -> C:
    """Sort numbers into bins between public edges, like `pandas.cut`; the bins can be groups.

    Parameters
    ----------
    x : column
        A numeric column.
    bins_ : list of float, or int
        Ascending edges, of which the first and last may be infinite; or the number of bins of equal width between the
        column's bounds.  Values outside the edges are in no bin.
    labels : list, optional
        Names of the bins; by default the intervals as strings.
    right : bool
        Whether a bin includes its upper edge (and the first bin its lower edge too) rather than its lower edge.

    Raises
    ------
    PlanError
        `x` is not numeric, the edges do not ascend, or there is not one label for each bin.

    Examples
    --------
    >>> import dpnb
    >>> session = dpnb.Session.rehearse(
    ...     name="people",
    ...     budget=dpnb.Budget(epsilon=1, delta=1e-6),
    ...     schema={"age": dpnb.Bounded(0, 100)},
    ... )
    >>> dpnb.cut(session.frame["age"], [0, 18, 65, 100])
    <private column: cut(age, [0, 18, 65, 100])>
    """
    if not isinstance(x, ColumnExpr):
        raise PlanError(f"cut: takes a column of a private table; got {type(x).__name__}; pandas.cut takes public data")
    node = as_number(x._node, x._view.schema)
    bounds = numeric_dtype_of(node, x._view.schema, "cut")
    return x._new(bins(node, bins_, labels, flag(right, "right"), bounds.low, bounds.high))
