"""Groups by their keys; bins of numbers or dates between public edges, their histograms, and `find_bounds`.

A histogram is a query, whose answer can be drawn; other figures would draw rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Set
from itertools import chain, count, pairwise
from typing import TYPE_CHECKING, TypeVar, Unpack, cast

from dpnb._plan.checks import check_plan
from dpnb._plan.constants import bounds_grid, constant, flag, group_key_table, listed, number
from dpnb._plan.expressions.dtypes import (
    OPEN_END,
    Categorical,
    Numeric,
    Timestamp,
    as_constant,
    date_literal,
    utc_literal,
)
from dpnb._plan.expressions.nodes import Cut, Expression, Literal
from dpnb._plan.expressions.periods import date_constant
from dpnb._plan.expressions.rules import dtype_of, numeric_dtype_of, public_keys_of
from dpnb._plan.expressions.text import iso_text, words
from dpnb._plan.measurements import BoundsView, Count, PlainView, Proportions
from dpnb._plan.plan import GroupLevel, Plan
from dpnb.errors import PlanError, UnsupportedError
from dpnb.frame.coerce import as_number
from dpnb.frame.columns.aggregations import Aggregations
from dpnb.frame.columns.column_expr import ColumnExpr, groups_of
from dpnb.frame.compatibility.calls import REMEDIES
from dpnb.frame.compatibility.options import check_options
from dpnb.frame.compatibility.unsupported import UnsupportedOperations
from dpnb.frame.view import TableView
from dpnb.query.batch import MarginsQuery
from dpnb.query.query import Query
from dpnb.results.bounds import BoundsAnswer
from dpnb.results.preview import PreviewTarget
from dpnb.schema import Key, Schema, encodable, plain, whole_number


def with_margins(cells: Query, n_rows: int, name: object, schema: Schema) -> MarginsQuery:
    """A table of groups with its margins, which have the label `name`; its first `n_rows` levels are rows."""
    if not isinstance(name, str) or not name or not encodable(name):
        raise PlanError(f"margins_name: must be a non-empty str; got {name!r}; 'All' is the default")
    return MarginsQuery(cells, n_rows, name, schema)


def shares_within(view: TableView, by: tuple[GroupLevel, ...], leading: int) -> Proportions:
    """The counts as shares that add up to 1 for each combination of the first `leading` levels.

    The groups are all combinations of the levels' public values, the last level fastest.
    """
    size = view.number_of_groups(by[leading:])
    return Proportions(", ".join(level.name for level in by[:leading]), size)


def public_keys(view: TableView, by: tuple[GroupLevel, ...], keys: object) -> tuple[tuple[Key, ...], ...] | None:
    """The keys of groups, checked to be public and among the groups; None for all of them."""
    if isinstance(keys, UnsupportedOperations):
        raise PlanError(
            f"keys: {keys!r} is private, so its values are never shown; give a list of public keys, a public table, or "
            "the answer of .discover()"
        )
    listed = None if keys is None else group_key_table(keys, by, view.schema)
    # Checking the plan of a count checks the columns, and that the groups are public.
    check_plan(Plan(Count(), None, by, listed, source=view.source), view.schema)
    return listed


def counted_groups(column: ColumnExpr, bins: object, options: Mapping[str, object]) -> tuple[GroupLevel, ...]:
    """The groups of ``value_counts`` of a column; with ``dropna=False`` also one of missing values."""
    schema = column._view.schema
    column = column if bins is None else cut(column, bins)
    with_missing = options.get("dropna") is False and isinstance(dtype_of(column._node, schema), Categorical)
    known = {name: value for name, value in options.items() if name != "dropna" or not with_missing}
    check_options("value_counts", known, column._examples(), "sort", "ascending", "dropna", "subset")
    (level,) = groups_of(column._view, column)
    if not with_missing:
        return (level,)
    taken = public_keys_of(level.expression, schema) or ()
    label = next(text for text in chain(["missing"], map("missing {}".format, count(2))) if text not in taken)
    return (GroupLevel(level.name, column.fillna(label)._node),)


# --- bins of columns --------------------------------------------------------------------------------------------------


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
    labels : list or False, optional
        Names of the bins; by default the intervals as strings.  With False the bins are 0, 1, ....
    **options
        Arguments of pandas, with the values that change nothing here, such as ``include_lowest=True``.

    Raises
    ------
    PlanError
        `x` is neither numeric nor a date, the edges do not ascend, or there is not one label for each bin.

    Examples
    --------
    >>> dpnb.cut(df["age"], [0, 18, 65, 100])
    <private column: cut(age, [0, 18, 65, 100])>
    """
    if not isinstance(x, ColumnExpr):
        raise PlanError(f"cut: takes a column of a private table; got {type(x).__name__}; pandas.cut takes public data")
    known = ("retbins", "precision", "include_lowest", "duplicates", "ordered")
    check_options("cut", options, x._examples(), *known)
    node, kind = x._node, dtype_of(x._node, x._view.schema)
    if not isinstance(kind, Timestamp):
        node = as_number(node, x._view.schema)
        kind = numeric_dtype_of(node, x._view.schema, "cut")
    return x._new(_bins(node, kind, bins, labels, right=flag(right, "right")))


def _bins(node: Expression, kind: Numeric | Timestamp, edges: object, labels: object, *, right: bool) -> Cut:
    """The bins of `cut`; of dates, bins of equal width are in whole seconds."""
    is_date = isinstance(kind, Timestamp)
    count, ascending = whole_number(edges), "ascending dates" if is_date else "ascending edges"
    if count is not None:
        if not 1 <= count <= MAX_BINS:
            raise PlanError(f"bins: the number of bins must be from 1 to {MAX_BINS:,}; got {count}")
        first, *others = (kind.low + (kind.high - kind.low) * index / count for index in range(count))
        ends = [first, *(float(math.floor(end)) if is_date else end for end in others), kind.high]
    elif isinstance(edges, str | bytes | Mapping | Set) or not isinstance(edges, Iterable):
        raise PlanError(f"bins: must be a number of bins, or a list of {ascending}; got {edges!r}")
    else:
        ends = [_seconds(node, edge, kind) if isinstance(kind, Timestamp) else _edge(edge) for edge in edges]
    if len(ends) < 2 or any(not a < b for a, b in pairwise(ends)):
        raise PlanError(f"bins: must be at least two {ascending}; got {edges!r}")
    names: tuple[Key, ...]
    if labels is False:
        names = tuple(range(len(ends) - 1))
    elif labels is not None:
        names = listed(labels, "labels")
    else:
        names = _intervals(
            ends, right, _date_writer(node, kind, ends) if isinstance(kind, Timestamp) else "{:g}".format
        )
        if not is_date and len(set(names)) != len(names):
            names = _intervals(ends, right, str)
    if len(names) != len(ends) - 1 or len(set(names)) != len(names):
        raise PlanError(f"labels: must be {len(ends) - 1} different values, one for each bin; got {labels!r}")
    finite = ends if is_date else [min(max(end, -OPEN_END), OPEN_END) for end in ends]
    are_days = labels is None and not any("T" in str(name) for name in names)
    zone = kind.zone_name if isinstance(kind, Timestamp) and kind.zone is not None and are_days else None
    return Cut(node, tuple(finite), names, right, dates=is_date, zone=zone)


def _seconds(node: Expression, edge: object, kind: Timestamp) -> float:
    text = constant(edge, "bins")
    if not isinstance(text, str):
        raise PlanError(f"bins: an edge of dates must be a date such as '2017-06-01'; got {edge!r}")
    return date_literal(node, Literal(date_constant(node, kind, text))).low


def _date_writer(node: Expression, kind: Timestamp, edges: list[float]) -> Callable[[float], str]:
    """How an edge is written: of dates in a zone other than UTC with its distance from UTC, unless all are days."""
    if kind.zone is None:
        return iso_text
    texts = {edge: as_constant(node, kind, str(utc_literal(edge).value)) for edge in edges}
    are_days = all("T00:00:00" in text for text in texts.values())
    return lambda edge: texts[edge].partition("T")[0] if are_days else texts[edge]


def _edge(edge: object) -> float:
    value = plain(edge)
    return float(value) if isinstance(value, float) and math.isinf(value) else number(value, "bins")


def _intervals(ends: list[float], right: bool, written: Callable[[float], str]) -> tuple[Key, ...]:
    """The bins as texts; the outermost edges belong to their bins whichever side is closed."""
    return tuple(
        f"{'(' if right and low != ends[0] else '['}{written(low)}, {written(high)}"
        f"{')' if not right and high != ends[-1] else ']'}"
        for low, high in pairwise(ends)
    )


# --- the histograms of a column ---------------------------------------------------------------------------------------


BOX = (0.05, 0.25, 0.5, 0.75, 0.95)
"""The quantiles of a box plot; the extremes would show single rows."""


if TYPE_CHECKING:

    class BoundsQuery(Query):
        """A query whose answer has bounds, for type checkers."""

        def release(self, **target: Unpack[PreviewTarget]) -> BoundsAnswer:
            """See `Query.release`."""
            ...

        @property
        def best(self) -> BoundsAnswer | None:
            """See `Query.best`."""
            ...
else:
    BoundsQuery = Query


class Plot(UnsupportedOperations):
    """What ``.plot`` of a column returns.

    Parameters
    ----------
    column : column
        What is drawn.

    Examples
    --------
    >>> df["age"].plot.hist(bins=5).description
    'count of rows by cut(age, [0, 20, 40, 60, 80, 100])'
    """

    __slots__ = ("_column",)

    def __init__(self, column: Histograms) -> None:
        self._column = column

    def _description(self) -> str:
        return f"{self._column._description()}.plot"

    def _examples(self) -> Mapping[str, str]:
        return self._column._examples()

    def hist(self, bins: object = 10, **drawing: object) -> Query:
        """As `dpnb.Series.histogram`; its answer has a `plot`.  Arguments for the drawing have no effect.

        Parameters
        ----------
        bins : int, or list of float or dates, default 10
            Number of bins of equal width between the column's bounds; or ascending edges.
        **drawing
            Arguments of pandas for the drawing, which have no effect.

        Examples
        --------
        >>> df["age"].plot.hist(bins=5).description
        'count of rows by cut(age, [0, 20, 40, 60, 80, 100])'
        """
        del drawing
        return self._column.histogram(bins)

    def box(self, **drawing: object) -> Query:
        """Quantiles, as of `dpnb.Frame.boxplot`.

        Parameters
        ----------
        **drawing
            Arguments of pandas for the drawing, which have no effect.

        Examples
        --------
        >>> df["age"].plot.box().description
        'quantiles 0.05, 0.25, 0.5, 0.75, 0.95 of age'
        """
        del drawing
        return self._column.quantile(list(BOX))

    def __call__(self, kind: str = "line", **drawing: object) -> Query:
        """``plot(kind="hist")`` is `hist`, and ``plot(kind="box")`` is `box`."""
        if kind in ("hist", "box"):
            return self.box() if kind == "box" else self._column.histogram(drawing.get("bins", 10))
        raise UnsupportedError(f"{self._description()}: {self._example(REMEDIES['plot'])}")


class Histograms(Aggregations):
    """The methods of a column that count its values in bins."""

    __slots__ = ()

    def histogram(self, bins: object = 10) -> Query:
        """Rows in bins of equal width between the bounds, or between given edges; a bin includes its lower edge.

        Parameters
        ----------
        bins : int, or list of float or dates, default 10
            Number of bins of equal width between the column's bounds; or ascending edges.

        Examples
        --------
        >>> df["age"].histogram(bins=[0, 18, 65, 100]).description
        'count of rows by cut(age, [0, 18, 65, 100])'
        """
        edges = cut(self, bins, right=False)
        return self._view.query(Count(), PlainView(), (GroupLevel(words(self._node), edges._node),))

    def find_bounds(self) -> BoundsQuery:
        """Narrow bounds for a column whose declared bounds are wide, from one noisy histogram.

        The rows are counted in public bins of 1, 2 and 5 times each power of ten inside the column's bounds.  The
        answer has the smallest range of bins that are above the noise as its `bounds`, and displays it as
        ``dpnb.Bounded(low, high)`` and as ``.clip(low, high)``, to copy into a schema or a query.  With the request's
        ``confidence``, two statements hold together: every bin that is above the noise has rows, and at most the
        displayed number of rows lie outside the bounds.  At any usual mu the outliers of a single unit are not above
        the noise, so by design the range does not extend to them.

        Raises
        ------
        PlanError
            The column is not a number, or its bounds lie within one bin.

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
        kind = numeric_dtype_of(self._node, self._view.schema, "find_bounds")
        grid = bounds_grid(kind.low, kind.high, whole=kind.whole)
        name = words(self._node)
        if len(grid.ranges) < 2:
            raise PlanError(
                f"find_bounds of {name}: its bounds, {kind.low:g} to {kind.high:g}, lie within one bin (the edges are "
                "1, 2 and 5 times each power of ten); use .histogram() or .quantile([0.01, 0.99]) to find where its "
                "values are"
            )
        bins = GroupLevel(name, Cut(self._node, grid.edges, grid.labels))
        return cast(BoundsQuery, self._view.query(Count(), BoundsView(grid.ranges, kind.whole), (bins,)))

    def hist(self, bins: object = 10, **drawing: object) -> Query:
        """The same as `histogram`; its answer has a `plot`.  Arguments of pandas for the drawing have no effect.

        Parameters
        ----------
        bins : int, or list of float or dates, default 10
            Number of bins of equal width between the column's bounds; or ascending edges.
        **drawing
            Arguments of pandas for the drawing, which have no effect.

        Examples
        --------
        >>> df["age"].hist(bins=5).description
        'count of rows by cut(age, [0, 20, 40, 60, 80, 100])'
        """
        del drawing
        return self.histogram(bins)

    @property
    def plot(self) -> Plot:
        """``plot.hist(bins=20)`` is `histogram`; anything else is drawn from a released answer."""
        return Plot(self)
