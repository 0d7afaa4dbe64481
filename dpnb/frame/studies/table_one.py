"""The first table of a study: what its groups are like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from dpnb._plan.expressions.dtypes import Boolean, Categorical, Numeric, described
from dpnb._plan.expressions.nodes import Expression
from dpnb._plan.expressions.rules import dtype_of, public_keys_of
from dpnb._plan.measurements import (
    Count,
    Joinable,
    JointAggregation,
    LevelCounts,
    LevelShareView,
    Moments,
    MomentsView,
    NamedColumn,
    QuantilesView,
    QuantileTree,
    SingleView,
    TableOneView,
    WeightedAggregation,
)
from dpnb._plan.plan import GroupLevel, Plan, group_keys
from dpnb._plan.suggestions import did_you_mean
from dpnb.errors import PlanError
from dpnb.frame.columns.column_expr import groups_of, node_of
from dpnb.frame.layout import ColumnLayout
from dpnb.frame.view import TableView
from dpnb.query.table_one import TableOneQuery
from dpnb.schema import Key, plain

STATISTICS: dict[str, dict[str, SingleView]] = {
    "mean": {"mean": MomentsView("mean"), "std": MomentsView("std", ddof=1)},
    "median": {name: QuantilesView((q,), single=True) for name, q in (("50%", 0.5), ("25%", 0.25), ("75%", 0.75))},
}
"""What describes a number, by name: the first statistic is that of which the groups' difference is shown."""


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
