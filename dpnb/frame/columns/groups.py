"""Groups: their keys as an analyst gives them, shares within them, and tables with margins."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, count

from dpnb._plan.checks import check_plan
from dpnb._plan.constants import group_key_table
from dpnb._plan.expressions.dtypes import Categorical
from dpnb._plan.expressions.rules import dtype_of, public_keys_of
from dpnb._plan.measurements import Count, Proportions
from dpnb._plan.plan import GroupLevel, Plan
from dpnb.errors import PlanError
from dpnb.frame.columns.bins import cut
from dpnb.frame.columns.column_expr import ColumnExpr, groups_of
from dpnb.frame.compatibility.options import check_options
from dpnb.frame.compatibility.unsupported import UnsupportedOperations
from dpnb.frame.view import TableView
from dpnb.query.batch import MarginsQuery
from dpnb.query.query import Query
from dpnb.schema import Key, Schema, encodable


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
