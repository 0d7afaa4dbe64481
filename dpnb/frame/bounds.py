"""The query of a bounds finder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from dpnb._core.query import Query
from dpnb._plan.bounds_grid import bounds_grid
from dpnb._plan.expressions.nodes import Cut, Expression
from dpnb._plan.expressions.rules import numeric_dtype_of
from dpnb._plan.expressions.text import words
from dpnb._plan.measurements import BoundsView, Count
from dpnb._plan.plan import GroupLevel
from dpnb.errors import PlanError
from dpnb.frame.view import TableView
from dpnb.results.bounds import BoundsAnswer

if TYPE_CHECKING:

    class BoundsQuery(Query):
        """A query whose answer has bounds, for type checkers."""

        def release(self, **target: Any) -> BoundsAnswer:
            """See `Query.release`."""
            ...

        @property
        def best(self) -> BoundsAnswer | None:
            """See `Query.best`."""
            ...
else:
    BoundsQuery = Query


def bounds_query(view: TableView, node: Expression) -> BoundsQuery:
    """The counts of a column by magnitude; the same measurement as `value_counts` of these bins.

    The column must be a number whose declared bounds are further apart than one step of the grid.
    """
    kind = numeric_dtype_of(node, view.schema, "find_bounds")
    grid = bounds_grid(kind.low, kind.high, whole=kind.whole)
    name = words(node)
    if len(grid.ranges) < 2:
        raise PlanError(
            f"find_bounds of {name}: its bounds, {kind.low:g} to {kind.high:g}, lie within one bin (the edges are 1, "
            "2 and 5 times each power of ten); use .histogram() or .quantile([0.01, 0.99]) to find where its values "
            "are"
        )
    bins = GroupLevel(name, Cut(node, grid.edges, grid.labels))
    return cast(BoundsQuery, view.query(Count(), BoundsView(grid.ranges, kind.whole), (bins,)))
