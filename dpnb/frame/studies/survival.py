"""Survival of groups by period: the plan of one table of cumulative counts.

Each row counts in one cell.  With the ends e_1 < ... < e_K of the periods, these are for each group, in this order::

    event up to e_1, ..., event up to e_K, at risk after e_K, censored before e_K, ..., censored before e_1

A row with its event at e_k counts in period k, and one that is censored at e_k is at risk in the whole of period k, as
in the estimator of Kaplan and Meier.  In this order the numbers of events up to a period, and of rows at risk in it,
are differences of two cumulative counts, whose noise hardly grows with the number of periods.

Where each period has one time only, all rows that are censored in it are censored at its end: they count up to it, and
leave after its events.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Set
from itertools import pairwise
from typing import Any

from dpnb._plan.constants import number
from dpnb._plan.expressions.dtypes import OPEN_END, Boolean, Categorical, Numeric
from dpnb._plan.expressions.nodes import Compare, Cut, Expression, Literal, Lookup, Where, negative
from dpnb._plan.expressions.rules import dtype_of, is_zero_or_one, numeric_dtype_of
from dpnb._plan.expressions.text import words
from dpnb._plan.measurements import Count, CumulativeCount, PlainView
from dpnb._plan.plan import GroupLevel, group_keys
from dpnb.accounting.prefix_sums import MAX_STEPS
from dpnb.errors import PlanError
from dpnb.frame.coerce import as_number
from dpnb.frame.columns.column_expr import groups_of, node_of
from dpnb.frame.layout import ColumnLayout
from dpnb.frame.view import TableView
from dpnb.query.survival import SurvivalLayout, SurvivalQuery
from dpnb.schema import Key, whole_number

MAX_PERIODS = 100


class Survivals(ColumnLayout):
    """The survival of a frame's rows."""

    __slots__ = ()

    def survival(
        self, time: Any, event: Any, by: Any = None, *, periods: int = 10, edges: Iterable[float] | None = None
    ) -> SurvivalQuery:
        """Survival curves by group, from one release of cumulative counts of events and censorings by period.

        Parameters
        ----------
        time : str or column
            The time from the start to the event or to the censoring: a number with declared bounds.
        event : str or column
            Whether the time is that of the event: a condition, or a number that is 0 or 1.  Rows without a time or an
            event do not count.
        by : str, column, or list of them, optional
            The groups: columns of public values, as for `groupby`.
        periods : int, default 10
            Number of periods of equal width between the declared bounds of `time`, from 1 to 100.
        edges : list of float, optional
            The start and the ends of the periods instead, ascending.  Events before the start count in the first
            period; rows with a later time than the last end are at risk there.

        Returns
        -------
        SurvivalQuery
            Its release has the curve, its median, restricted means, and the log-rank test of the groups.

        Raises
        ------
        PlanError
            A column has another type, the edges do not ascend, or there are too many periods and groups.

        Examples
        --------
        >>> query = df.survival("cost", df["age"] > 40, by="plan", periods=4)
        >>> query.description
        'survival in cost until age > 40, by plan'
        >>> query.release(mu=0.2).estimate.shape
        (2, 4)
        """
        view = self._view
        nodes = as_number(node_of(view, time, "survival"), view.schema), node_of(view, event, "survival")
        ends = _ends(nodes[0], periods, edges, view)
        happened = _event(nodes[1], view, self._example("df.survival({number_name}, {condition})"))
        levels = () if by is None else groups_of(view, by)
        names, whole = tuple(level.name for level in levels), _is_whole(nodes[0], ends, view)
        layout = SurvivalLayout(words(nodes[0]), words(happened), names, _keys(levels, view), ends, whole)
        cells = 2 * len(ends) - 1
        if cells * len(layout.keys) > MAX_STEPS:
            raise PlanError(
                f"survival: {len(ends) - 1} periods of {len(layout.keys):,} groups take {cells * len(layout.keys):,} "
                f"counts, and at most {MAX_STEPS:,} are offered; take fewer periods, as in periods=5, or wider groups"
            )
        level = GroupLevel(layout.outcome, _cells(nodes[0], happened, levels, layout))
        return SurvivalQuery(view.query(CumulativeCount(), PlainView(), (level,)), layout)


def _ends(time: Expression, periods: object, edges: object, view: TableView) -> tuple[float, ...]:
    """The start and the ends of the periods."""
    kind = numeric_dtype_of(time, view.schema, "survival")
    if edges is None:
        count = whole_number(periods)
        if count is None or not 1 <= count <= MAX_PERIODS:
            raise PlanError(f"periods: must be a whole number from 1 to {MAX_PERIODS}; got {periods!r}; 10 is usual")
        found = [*(kind.low + (kind.high - kind.low) * index / count for index in range(count)), kind.high]
    elif isinstance(edges, str | bytes | Mapping | Set) or not isinstance(edges, Iterable):
        raise PlanError(f"edges: must be a list of ascending numbers; got {edges!r}; the first is the start")
    else:
        found = [number(edge, "edges") for edge in edges]
    ascends = all(a < b for a, b in pairwise(found)) and all(map(math.isfinite, found))
    if not 2 <= len(found) <= MAX_PERIODS + 1 or not ascends:
        raise PlanError(
            f"edges: must be from 2 to {MAX_PERIODS + 1} ascending numbers, the start and the ends of the periods; got "
            f"{found!r}"
        )
    if found[1] >= kind.high and len(found) > 2:
        raise PlanError(
            f"edges: {words(time)} is from {kind.low:g} to {kind.high:g}, which ends in the first period; give edges "
            "between these bounds"
        )
    return tuple(found)


def _is_whole(time: Expression, ends: tuple[float, ...], view: TableView) -> bool:
    """Whether each period has one time only, its end."""
    is_whole = numeric_dtype_of(time, view.schema, "survival").whole and ends[0].is_integer()
    return is_whole and all(b - a == 1 for a, b in pairwise(ends))


def _event(node: Expression, view: TableView, example: str) -> Expression:
    """The condition that the time is that of the event."""
    kind = dtype_of(node, view.schema)
    if isinstance(kind, Boolean):
        return node
    if isinstance(kind, Categorical) and set(kind.values) == {0, 1}:  # also of truth values
        return Compare("==", node, Literal(next(value for value in kind.values if value)))
    if isinstance(kind, Numeric) and is_zero_or_one(node, view.schema):
        return Compare("==", node, Literal(1))
    raise PlanError(
        f"survival: the event {words(node)} must be a condition, or a number that is 0 or 1; compare it with the value "
        f"that means the event, as in {example}"
    )


def _keys(levels: tuple[GroupLevel, ...], view: TableView) -> tuple[tuple[Key, ...], ...]:
    """The keys of the groups, which must be public; one empty key without groups."""
    return group_keys(view.query(Count(), PlainView(), levels).plan, view.schema) if levels else ((),)


def _cells(
    time: Expression, happened: Expression, levels: tuple[GroupLevel, ...], layout: SurvivalLayout
) -> Expression:
    """The cell of each row, in the order of the cumulative counts."""
    *inner, last = layout.ends[1:]
    events = Cut(time, (-OPEN_END, *inner, last, OPEN_END), layout.events)
    downward = (-OPEN_END, *(0.0 - end for end in (last, *reversed(inner))), OPEN_END)
    censored = Cut(negative(time), downward, layout.censored, right=not layout.whole)
    cell = Where(happened, events, censored)
    if not levels:
        return cell
    pairs = [((*key, one), layout.label(key, one)) for key in layout.keys for one in layout.cells]
    keys, values = zip(*pairs, strict=True)
    return Lookup(layout.outcome, (*(level.expression for level in levels), cell), keys, values)
