"""Two-way tables and indicators: ``dpnb.crosstab``, ``dpnb.get_dummies``, and ``Frame.pivot_table``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypedDict, Unpack, overload
from typing import Literal as OneOf

from dpnb._plan.constants import flag
from dpnb._plan.expressions.dtypes import Boolean
from dpnb._plan.expressions.nodes import Compare, Expression, Literal, Not
from dpnb._plan.expressions.rules import dtype_of, public_keys_of
from dpnb._plan.expressions.text import words
from dpnb._plan.measurements import Count, PlainView, Proportions
from dpnb.errors import PlanError
from dpnb.frame.columns.bins import public_keys, shares_within, with_margins
from dpnb.frame.columns.column_expr import ColumnExpr, groups_of
from dpnb.frame.columns.series import Series
from dpnb.frame.compatibility.options import check_options
from dpnb.frame.frame import Frame
from dpnb.query.batch import MarginsQuery
from dpnb.query.query import Query

MAX_INDICATORS = 1_000
"""Largest number of columns of `get_dummies`."""


class CrosstabOptions(TypedDict, total=False):
    """The keyword arguments of `crosstab`, for its overloads."""

    values: Series | None
    aggfunc: str | None
    normalize: bool | str
    margins_name: str
    dropna: bool
    rownames: None
    colnames: None


@overload
def crosstab(
    index: Series | list[Series],
    columns: Series | list[Series],
    *,
    margins: OneOf[False] = False,
    **options: Unpack[CrosstabOptions],
) -> Query: ...
@overload
def crosstab(
    index: Series | list[Series],
    columns: Series | list[Series],
    *,
    margins: OneOf[True],
    **options: Unpack[CrosstabOptions],
) -> MarginsQuery: ...
def crosstab(
    index: Series | list[Series],
    columns: Series | list[Series],
    *,
    values: Series | None = None,
    aggfunc: str | None = None,
    normalize: bool | str = False,
    margins: bool = False,
    margins_name: str = "All",
    **options: object,
) -> Query | MarginsQuery:
    """Number of rows for each pair of public values of two columns, like `pandas.crosstab`.

    The query is that of ``df.groupby([index, columns]).count().unstack()``: its answer is a two-way table.  With
    ``margins=True`` it also has the totals of rows and columns, which are measured in one batch (see
    :meth:`dpnb.Session.plan`) and add up; as in pandas, they count the rows that have a value in both columns.

    Parameters
    ----------
    index, columns : column, or list of columns
        Columns of one view, with public values.
    values : column, optional
        A column to aggregate for each pair, instead of the number of rows.
    aggfunc : str, optional
        How `values` are aggregated, for example ``"mean"``.
    normalize : bool, "all" or "index", default False
        Shares of all rows instead of counts; with ``"index"`` shares of the rows of each value of `index`.
    margins : bool, default False
        Whether the answer has the totals of rows and columns.  Not for shares.
    margins_name : str, default "All"
        Name of the totals.
    **options
        Arguments of pandas, with the values that change nothing here.

    Raises
    ------
    PlanError
        The columns have different rows or no public values, or `normalize` is another value.

    Examples
    --------
    >>> dpnb.crosstab(df["plan"], df["age"] > 65).description
    'count of rows by plan, age > 65'
    """
    levels = [*_listed(index, "index"), *_listed(columns, "columns")]
    view = levels[0]._view
    check_options("crosstab", options, levels[0]._examples(), "dropna", "rownames", "colnames")
    groups = groups_of(view, levels)
    public_keys(view, groups, None)
    if isinstance(normalize, str) and normalize == "columns":
        raise PlanError(
            "crosstab: normalize='columns' is not offered; exchange the two columns, and write normalize='index'"
        )
    by_row = isinstance(normalize, str) and normalize == "index"
    if (values is None) != (aggfunc is None):
        raise PlanError("crosstab: values= and aggfunc= belong together, as in values=df['x'], aggfunc='mean'")
    share = by_row or normalize == "all" or flag(normalize, "normalize")
    n_rows, totals = len(_listed(index, "index")), flag(margins, "margins")
    if totals and share:
        raise PlanError(
            "crosstab: margins=True is not offered with normalize=, since the errors of a group and of the total are "
            "not independent; use the counts"
        )
    if values is None:
        shares = shares_within(view, groups, n_rows) if by_row else Proportions()
        cells = view.query(Count(), shares if share else PlainView(), groups)
    elif share or not isinstance(values, Series):
        raise PlanError(f"crosstab: values must be a column, without normalize=; got {values!r}")
    else:
        view.refuse_other_rows(values._view, values, "crosstab")
        cells = values.groupby(levels).agg(aggfunc)
    return with_margins(cells, n_rows, margins_name, view.schema) if totals else cells.unstack()


def get_dummies(data: Series, *, prefix: str | None = None, drop_first: bool = False, **options: object) -> Frame:
    """A view with one condition for each public value of a column, like `pandas.get_dummies`.

    Parameters
    ----------
    data : column
        A column with public values.
    prefix : str, optional
        The names are ``prefix_value``; by default the values.
    drop_first : bool, default False
        Leave out the first value.
    **options
        Arguments of pandas, with the values that change nothing here.

    Raises
    ------
    PlanError
        The values are not public, or there are too many.

    Examples
    --------
    >>> dpnb.get_dummies(df["plan"]).mean().description
    "share of rows with plan == 'free', share of rows with plan == 'paid'"
    """
    if not isinstance(data, ColumnExpr):
        raise PlanError(
            f"get_dummies: takes a column of a private table; got {type(data).__name__}; df.regress(..., on=[...]) "
            "makes the indicators of categories itself"
        )
    data._refuse_groups("get_dummies")
    check_options("get_dummies", options, data._examples(), "prefix_sep", "dummy_na", "columns", "sparse", "dtype")
    view, node = data._view, data._node
    values = public_keys_of(node, view.schema)
    if values is None:
        raise PlanError(
            f"get_dummies: the values of {words(node)} are texts, and the set of texts is private; compare with known "
            f"ones, as in df.assign(new={data._examples()['self']} == 'a')"
        )
    if len(values) > MAX_INDICATORS:
        raise PlanError(
            f"get_dummies: {words(node)} has {len(values):,} values; at most {MAX_INDICATORS:,} are allowed; "
            "use dpnb.cut first"
        )
    condition = isinstance(dtype_of(node, view.schema), Boolean)
    assigned: dict[str, Expression] = {}
    for value in values[1:] if flag(drop_first, "drop_first") else values:
        name = str(value) if prefix is None else f"{prefix}_{value}"
        if name in assigned:
            raise PlanError(f"get_dummies: two values of {words(node)} are written as {name!r}; rename the categories")
        assigned[name] = (node if value else Not(node)) if condition else Compare("==", node, Literal(value))
    return Frame(replace(view, assigned=assigned))


def _listed(columns: Any, name: str) -> list[Series]:
    listed = columns if isinstance(columns, list) else [columns]
    if not listed or not all(isinstance(column, Series) for column in listed):
        raise PlanError(f"crosstab: {name} must be a column of a private table, such as df['x']; got {columns!r}")
    return listed
