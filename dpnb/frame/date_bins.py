"""`dpnb.cut`: bins of numbers or dates between public edges."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Set
from itertools import pairwise
from typing import TypeVar

from dpnb._plan.constants import constant, flag, listed
from dpnb._plan.expressions.dtypes import Timestamp, date_literal
from dpnb._plan.expressions.nodes import Cut, Expression, Literal
from dpnb._plan.expressions.periods import date_constant
from dpnb._plan.expressions.rules import dtype_of, numeric_dtype_of
from dpnb._plan.expressions.text import iso_text
from dpnb._plan.schema import Key, whole_number
from dpnb.errors import PlanError
from dpnb.frame.coerce import as_number, number_bins
from dpnb.frame.column_expr import ColumnExpr
from dpnb.frame.options import check_options

C = TypeVar("C", bound=ColumnExpr)

MAX_BINS = 100_000


def cut(x: C, bins: object, right: bool = True, labels: object = None, **options: object) -> C:
    """Sort numbers or dates into bins between public edges, like `pandas.cut`; the bins can be groups.

    Parameters
    ----------
    x : column
        A numeric column, or dates.
    bins : list of float or dates, or int
        Ascending edges, of which the first and last may be infinite for numbers; or the number of bins of equal width
        between the column's bounds.  Values outside the edges are in no bin.
    right : bool, default True
        Whether a bin includes its upper edge (and the first bin its lower edge too) rather than its lower edge.
    labels : list, optional
        Names of the bins; by default the intervals as strings.
    **options
        Arguments of pandas, with the values that change nothing here, such as ``include_lowest=True``.

    Raises
    ------
    PlanError
        `x` is neither numeric nor a date, the edges do not ascend, or there is not one label for each bin.

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
    known = ("retbins", "precision", "include_lowest", "duplicates", "ordered")
    check_options("cut", options, x._examples(), *known)
    kind = dtype_of(x._node, x._view.schema)
    if isinstance(kind, Timestamp):
        return x._new(date_bins(x._node, bins, labels, flag(right, "right"), kind))
    node = as_number(x._node, x._view.schema)
    bounds = numeric_dtype_of(node, x._view.schema, "cut")
    return x._new(number_bins(node, bins, labels, flag(right, "right"), bounds.low, bounds.high))


def date_bins(node: Expression, edges: object, labels: object, right: bool, kind: Timestamp) -> Cut:
    """Bins of dates.

    As `dpnb.frame.coerce.number_bins`; edges are dates as for a comparison, and bins of equal width are in whole
    seconds between the declared dates.
    """
    count = whole_number(edges)
    if count is not None:
        if not 1 <= count <= MAX_BINS:
            raise PlanError(f"bins: the number of bins must be from 1 to {MAX_BINS:,}; got {count}")
        inner = [math.floor(kind.low + (kind.high - kind.low) * index / count) for index in range(1, count)]
        ends = [kind.low, *map(float, inner), kind.high]
    elif isinstance(edges, str | bytes | Mapping | Set) or not isinstance(edges, Iterable):
        raise PlanError(f"bins: must be a number of bins, or a list of ascending dates; got {edges!r}")
    else:
        ends = [_seconds(node, edge, kind) for edge in edges]
    if len(ends) < 2 or any(not a < b for a, b in pairwise(ends)):
        raise PlanError(f"bins: must be at least two ascending dates; got {edges!r}")
    if labels is None:
        names: tuple[Key, ...] = tuple(_interval(a, b, ends, right) for a, b in pairwise(ends))
    else:
        names = listed(labels, "labels")
    if len(names) != len(ends) - 1 or len(set(names)) != len(names):
        raise PlanError(f"labels: must be {len(ends) - 1} different values, one for each bin; got {labels!r}")
    return Cut(node, tuple(ends), names, right, dates=True)


def _seconds(node: Expression, edge: object, kind: Timestamp) -> float:
    text = constant(edge, "bins")
    if not isinstance(text, str):
        raise PlanError(f"bins: an edge of dates must be a date such as '2017-06-01'; got {edge!r}")
    return date_literal(node, Literal(date_constant(node, kind, text))).low


def _interval(low: float, high: float, ends: list[float], right: bool) -> str:
    """The bin as a text; the outermost edges belong to their bins whichever side is closed."""
    start = "(" if right and low != ends[0] else "["
    end = ")" if not right and high != ends[-1] else "]"
    return f"{start}{iso_text(low)}, {iso_text(high)}{end}"
