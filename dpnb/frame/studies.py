"""Methods of a frame for whole studies: survival by period, and the first table.

Survival is one table of cumulative counts, in which each row counts in one cell.  With the ends e_1 < ... < e_K of the
periods, these are for each group, in this order::

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
from typing import Any, cast

from dpnb._plan.constants import number
from dpnb._plan.expressions.dtypes import OPEN_END, Boolean, Categorical, Numeric, described
from dpnb._plan.expressions.nodes import Compare, Cut, Expression, Literal, Lookup, Where, negative
from dpnb._plan.expressions.rules import dtype_of, is_zero_or_one, numeric_dtype_of, public_keys_of
from dpnb._plan.expressions.text import words
from dpnb._plan.measurements import (
    Count,
    CumulativeCount,
    Joinable,
    JointAggregation,
    LevelCounts,
    LevelShareView,
    Moments,
    MomentsView,
    NamedColumn,
    PlainView,
    QuantilesView,
    QuantileTree,
    SingleView,
    TableOneView,
    WeightedAggregation,
)
from dpnb._plan.plan import GroupLevel, Plan, group_keys
from dpnb._plan.unreleased import did_you_mean
from dpnb.accounting.prefix_sums import MAX_STEPS
from dpnb.errors import PlanError
from dpnb.frame.coerce import as_number
from dpnb.frame.columns.column_expr import groups_of, node_of
from dpnb.frame.layout import ColumnLayout
from dpnb.frame.view import TableView
from dpnb.query.studies import SurvivalQuery, TableOneQuery
from dpnb.results.survival import SurvivalLayout
from dpnb.schema import Key, plain, whole_number

MAX_PERIODS = 100

STATISTICS: dict[str, dict[str, SingleView]] = {
    "mean": {"mean": MomentsView("mean"), "std": MomentsView("std", ddof=1)},
    "median": {name: QuantilesView((q,), single=True) for name, q in (("50%", 0.5), ("25%", 0.25), ("75%", 0.75))},
}
"""What describes a number, by name: the first statistic is that of which the groups' difference is shown."""


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


class TablesOne(ColumnLayout):
    """The description of groups of a frame."""

    __slots__ = ()

    def table_one(
        self,
        by: object = None,
        columns: list[str] | None = None,
        *,
        numbers: str | Mapping[str, str] = "mean",
        reference: object = None,
    ) -> TableOneQuery:
        """A description of groups as the first table of a study has it, in one charge.

        For each group its number of rows, of numbers the mean and standard deviation or the median and quartiles, of
        categories the share of each value, and of conditions the share of True; and for each of these the difference to
        one group, with its population interval.

        Parameters
        ----------
        by : str or column, optional
            The groups: a category or a condition.  Without it all rows are one group.
        columns : list of str, optional
            What is described: numbers, categories and conditions.  By default all of them, except `by`.
        numbers : {"mean", "median"} or mapping of str to them, default "mean"
            Whether a number is described by its mean and standard deviation, or by its median and quartiles; for all
            numbers, or by column.
        reference : optional
            The key of the group from which the differences are; by default the first group.

        Returns
        -------
        TableOneQuery

        Raises
        ------
        PlanError
            A column cannot be described, `reference` is not a group, or a privacy unit can have several rows.

        Notes
        -----
        It is one query of several parts, not a batch: a batch measures each of its queries with a charge of its own and
        looks for margins that they share, while here all parts are sums over the same rows of the same groups, so one
        noisy vector has them all, the numbers of rows are measured once, and the noise of different groups is
        independent, as the intervals of differences need.  Each part has the same share of the charge.  The values of a
        category are counted in one vector, to which a row adds 1 once: the noise of each count does not depend on the
        number of values.  Rows in which a column is missing count for the other columns.

        The intervals of differences add the distances of the groups' own population intervals in quadrature (the MOVER
        of Zou and Donner 2008), since no unit is in two groups.  The standardized mean difference is that of Austin
        2009: the difference over the root of the mean of both variances.

        Examples
        --------
        >>> query = persons.table_one(by="plan", columns=["age", "cost"], numbers={"cost": "median"})
        >>> query.description
        'table one: count of rows, mean and deviation of age, quartiles of cost by plan in one row for each unit'
        >>> query.preview(mu=0.3).fits
        True
        >>> table = query.release(mu=0.3)
        >>> table.to_frame().columns.tolist()[:3]
        [('free', 'estimate'), ('paid', 'estimate'), ('paid - free', 'difference')]
        """
        view = self._view
        _refuse_repeated_rows(view)
        levels = () if by is None else groups_of(view, by)
        if len(levels) > 1:
            raise PlanError(f"table_one: by= must be one column; got {len(levels)}; combine them into one by .assign()")
        nodes = _described(view, columns, levels)
        parts: list[Joinable] = [Count()]
        named, variables = [NamedColumn("n", 0)], [""]
        for name, node in nodes.items():
            aggregation, statistics = _statistics(name, node, _statistic_of(name, numbers), view)
            for statistic, of in statistics.items():
                named.append(NamedColumn(f"{name}: {statistic}", len(parts), of))
                variables.append(name)
            parts.append(aggregation)
        _refuse_repeated([one.name for one in named])
        _refuse_unknown(numbers, list(nodes))
        shown = TableOneView(tuple(named), variables=tuple(variables), reference=_reference_of(view, levels, reference))
        query = view.query(JointAggregation(tuple(map(WeightedAggregation, parts))), shown, levels)
        return cast("TableOneQuery", query)  # as `query_of` made it


def _refuse_repeated_rows(view: TableView) -> None:
    """Refuse rows that are not independent: a description is one of units."""
    if 1 in (view.as_table().max_rows, view.limits.max_rows):
        return
    raise PlanError(
        f"table_one: describes units with one row each, and one {view.unit} may have several rows here; take one row "
        f"of each, as in df.drop_duplicates({view.unit!r}).table_one(...), or compute one by df.groupby({view.unit!r})"
        ".agg(...)"
    )


def _described(view: TableView, columns: object, levels: tuple[GroupLevel, ...]) -> dict[str, Expression]:
    """The columns that are described, by name."""
    by = [level.expression for level in levels]
    if columns is None:
        known = {name: dtype_of(node, view.schema) for name, node in view.columns.items() if node not in by}
        chosen = [name for name, kind in known.items() if isinstance(kind, Numeric | Categorical | Boolean)]
    elif isinstance(columns, list) and columns and all(isinstance(name, str) for name in columns):
        chosen = columns
    else:
        raise PlanError(f"table_one: columns= must be a list of names of columns; got {columns!r}")
    nodes = {name: node_of(view, name, "table_one") for name in chosen}
    if len(set(nodes.values())) != len(chosen):
        raise PlanError(f"table_one: columns= must name each column once; got {', '.join(map(repr, chosen))}")
    if not nodes or any(node in by for node in nodes.values()):
        raise PlanError("table_one: columns= must name a column besides by=, whose groups are counted anyway")
    return nodes


def _statistic_of(name: str, numbers: object) -> str:
    wanted = numbers.get(name, "mean") if isinstance(numbers, Mapping) else numbers
    if not isinstance(wanted, str) or wanted not in STATISTICS:
        raise PlanError(
            f"table_one: numbers must be 'mean' or 'median', or say which for some columns, as in {{{name!r}: "
            f"'median'}}; got {wanted!r}"
        )
    return wanted


def _statistics(name: str, node: Expression, wanted: str, view: TableView) -> tuple[Joinable, dict[str, SingleView]]:
    """What is measured of a column, and its statistics by name."""
    kind = dtype_of(node, view.schema)
    if isinstance(kind, Categorical | Boolean):
        levels = {key: LevelShareView(level) for level, key in enumerate(public_keys_of(node, view.schema) or ())}
        shown = {True: levels[True]} if isinstance(kind, Boolean) else levels  # the other share is what is left
        return LevelCounts(node), {str(key): share for key, share in shown.items()}
    if isinstance(kind, Numeric):
        measured = Moments((node,)) if wanted == "mean" else QuantileTree(node, graded=True)
        return measured, STATISTICS[wanted]
    raise PlanError(
        f"table_one: {name!r} is {described(kind)}; describe numbers, categories and conditions: make one of it by "
        ".assign(), such as a part of a date, or whether a text is a given one"
    )


def _refuse_repeated(names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise PlanError(f"table_one: two rows would be named {name!r}; rename a column by .rename(columns=...)")


def _refuse_unknown(numbers: object, names: list[str]) -> None:
    unknown = [name for name in numbers if name not in names] if isinstance(numbers, Mapping) else []
    if unknown:
        raise PlanError(
            f"table_one: numbers= names {unknown[0]!r}, which is not described{did_you_mean(unknown[0], names)}"
        )


def _reference_of(view: TableView, levels: tuple[GroupLevel, ...], reference: object) -> tuple[Key, ...]:
    """The key of the group with which the others are compared; empty without groups."""
    if not levels:
        if reference is not None:
            raise PlanError(f"table_one: reference= is one of the groups of by=; got {reference!r} without by=")
        return ()
    keys = group_keys(Plan(Count(), None, levels), view.schema)
    wanted = keys[0] if reference is None else (plain(reference),)
    found = [key for key in keys if key == wanted]
    if not found:
        listed = ", ".join(repr(key) for (key,) in keys[:10])
        raise PlanError(f"table_one: reference must be a group; got {reference!r}; the groups are {listed}")
    return found[0]
