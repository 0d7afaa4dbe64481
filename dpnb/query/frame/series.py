"""One column of a view, or something computed from its columns: the questions that it can be asked."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import numpy as np

from dpnb.errors import PlanError
from dpnb.query.aggregations import (
    AnyView,
    Columns,
    Count,
    FromMoments,
    Joint,
    Measured,
    Moments,
    Named,
    Plain,
    Quantiles,
    Ratio,
    Shares,
    Tree,
    Weighted,
)
from dpnb.query.expressions.kinds import number_of
from dpnb.query.expressions.nodes import Expression
from dpnb.query.expressions.words import words
from dpnb.query.frame.expressed import Expressed
from dpnb.query.frame.spelling import EXTREMES, as_number, bins, flag, measured, quantile_levels
from dpnb.query.plan import Group

Q = TypeVar("Q")


class Series(Expressed, Generic[Q]):
    """One column of a view, or something computed from its columns."""

    __slots__ = ()

    def __getitem__(self, key: object) -> Series[Q]:
        """The column in the rows for which a condition is true."""
        if isinstance(key, Expressed):
            return Series(self._frame[key], self._node)
        raise PlanError(f"{words(self._node)}[...]: takes a condition; got {key!r}; single rows are never shown")

    # --- questions ---------------------------------------------------------------------------------------------

    def _ask(self, aggregation: Measured, view: AnyView | None = None, by: tuple[Group, ...] = ()) -> Q:
        return self._frame._question(aggregation, view or Plain(), by)  # type: ignore[no-any-return]

    def _number(self) -> Expression:
        return as_number(self._node, self._frame._schema)

    def count(self) -> Q:
        """Number of rows that have something in the column."""
        return self._ask(*measured("count", self._node))

    def sum(self) -> Q:
        """Sum of a bounded column; of a condition, the number of rows for which it is true."""
        return self._ask(*measured("sum", self._number()))

    def mean(self) -> Q:
        """Mean of a bounded column: its count and centred sum, asked jointly; of a condition, a proportion."""
        return self._ask(*measured("mean", self._number()))

    def var(self) -> Q:
        """Variance (divided by the count, not by one less): count, sum and sum of squares, asked jointly."""
        return self._ask(*measured("var", self._number()))

    def std(self) -> Q:
        """Standard deviation: the root of `var`."""
        return self._ask(*measured("std", self._number()))

    def min(self) -> Q:
        """The smallest value that stands out of the noise: private minima are quantiles.  Shares its cost with them."""
        return self._ask(*measured("min", self._number()))

    def max(self) -> Q:
        """The largest value that stands out of the noise: private maxima are quantiles.  Shares its cost with them."""
        return self._ask(*measured("max", self._number()))

    def median(self) -> Q:
        """The median; any other quantile is free afterwards."""
        return self._ask(*measured("median", self._number()))

    def quantile(self, q: object = 0.5) -> Q:
        """One quantile or a list of them, in one charge: all are read off one noisy tree."""
        return self._ask(Tree(self._number()), Quantiles(quantile_levels(q), single=np.ndim(q) == 0))  # type: ignore[arg-type]

    def corr(self, other: Series[Any]) -> Q:
        """Pearson's correlation with another column."""
        return self._pair("corr", other)

    def cov(self, other: Series[Any]) -> Q:
        """Covariance with another column (divided by the count)."""
        return self._pair("cov", other)

    def _pair(self, statistic: str, other: object) -> Q:
        second = as_number(self._column(other, statistic), self._frame._schema)
        columns = tuple(sorted((self._number(), second), key=words))  # one question, whichever is named first
        if columns[0] == columns[1]:
            raise PlanError(f"{statistic}: needs two different columns; got {words(second)} twice; ask .var()")
        return self._ask(Moments(columns), FromMoments(statistic, (0, 1)))

    def ratio(self, denominator: Series[Any]) -> Q:
        """Sum of this column over the sum of another, over the rows that have both."""
        other = as_number(self._column(denominator, "ratio"), self._frame._schema)
        return self._ask(Ratio(self._number(), other))

    def value_counts(self, normalize: bool = False, keys: object = None) -> Q:
        """Rows of each public value; with `normalize` as shares.  `keys` gives the public values of a text column."""
        grouped = self._frame.groupby(self, keys=keys)
        return grouped._question(Count(), Shares() if flag(normalize, "normalize") else Plain())  # type: ignore[no-any-return]

    def histogram(self, bins: object = 10) -> Q:
        """Rows in bins of equal width between the bounds, or between given edges; a bin holds its lower edge."""
        edges = cut(self, bins, right=False)
        return self._ask(Count(), by=(Group(words(self._node), edges._node),))

    def describe(self) -> Q:
        """Count, mean, deviation and quartiles in one charge: half for the moments, half for the tree of quantiles."""
        node = self._number()
        columns = [Named(name, 0, FromMoments(name)) for name in ("count", "mean", "std")]
        columns.append(Named("min", 1, Quantiles((EXTREMES["min"],), single=True)))
        columns += [Named(f"{round(100 * q)}%", 1, Quantiles((q,), single=True)) for q in (0.25, 0.5, 0.75)]
        columns.append(Named("max", 1, Quantiles((EXTREMES["max"],), single=True)))
        return self._ask(
            Joint((Weighted(Moments((node,))), Weighted(Tree(node)))),
            Columns(tuple(columns), f"description of {words(node)}"),
        )


def cut(x: Expressed, bins_: object, *, labels: object = None, right: bool = True) -> Any:
    """Sort a number into bins between public edges, like `pandas.cut`; the bins can be groups.

    Parameters
    ----------
    x : column
        A number.
    bins_ : list of float, or int
        Ascending edges, of which the first and last may be infinite; or as many bins of equal width between the
        column's bounds.  What lies outside is in no bin.
    labels : list, optional
        Names of the bins; left out, the intervals as text.
    right : bool
        Whether a bin holds its upper edge (and the first one its lower edge too) or its lower edge.

    Raises
    ------
    PlanError
        `x` is no number, the edges do not ascend, or the labels are not one a bin.
    """
    if not isinstance(x, Expressed):
        raise PlanError(f"cut: takes a column of a private table; got {type(x).__name__}; pandas.cut cuts public ones")
    node = as_number(x._node, x._frame._schema)
    bounds = number_of(node, x._frame._schema, "cut")
    return x._new(bins(node, bins_, labels, flag(right, "right"), bounds.low, bounds.high))
