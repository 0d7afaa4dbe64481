"""A view grouped by its privacy unit, and possibly by further keys: one row for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dpnb._plan.expressions.nodes import Expression
from dpnb._plan.expressions.rules import dtype_of
from dpnb.copying import safe_repr
from dpnb.errors import PlanError
from dpnb.frame.columns.column_expr import node_of
from dpnb.frame.columns.series import Series
from dpnb.frame.compatibility.functions import Pipe
from dpnb.frame.compatibility.options import AGGREGATION, check_options
from dpnb.frame.compatibility.unsupported import NoOperators
from dpnb.frame.units.columns import UnitGroupedColumn
from dpnb.frame.units.statistics import F, UnitStatistics, refuse_rows, verb_of, whole_rows
from dpnb.frame.view import TableView


class UnitGroupBy(Pipe, NoOperators, UnitStatistics[F, F]):
    """A view grouped by its privacy unit, and possibly by further columns of public values.

    Aggregations are tables with one row for each unit, or for each unit and keys, that has a row in the view: a `Frame`
    again, with the keys as its first columns.  The name of the unit is no column of it.  A column is selected by
    ``groups["x"]`` or ``groups.x``.

    Examples
    --------
    >>> spent = people.groupby("person").agg(total=("cost", "sum"), years=("cost", "size"))
    >>> spent
    <private table: total, years>
    """

    __slots__ = ()

    def _description(self) -> str:
        return f"rows by {self._levels}"

    @safe_repr
    def __repr__(self) -> str:
        return f"<private table by {self._levels}>"

    def _column_named(self, name: str) -> UnitGroupedColumn[F] | None:
        return self[name] if name in self._view.columns else None  # type: ignore[return-value]  # a name

    if TYPE_CHECKING:  # what `UnsupportedOperations.__getattr__` finds

        def __getattr__(self, name: str) -> UnitGroupedColumn[F]: ...

    def __getitem__(self, name: object) -> UnitGroupedColumn[F] | UnitGroupBy[F]:
        """Select a column by its name, or several."""
        if isinstance(name, list) and name:
            chosen = {one: self._view.column(one) for one in name}
            return UnitGroupBy(replace(self._view, assigned=chosen), self._by, self._frame)
        return UnitGroupedColumn(self, self._view.column(name))

    def size(self) -> Series:
        """Number of rows of each unit.

        Examples
        --------
        >>> people.groupby("person").size().dtype
        'whole number from 0 to 5'
        """
        node = self._within("size")
        return Series(self._per_unit({"size": node}), node)

    def agg(self, func: object = None, **columns: object) -> F:
        """Statistics of each unit, as a table with one row per unit.

        Parameters
        ----------
        func : dict, list or str, optional
            As in pandas: ``{"mdvis": "sum"}`` or ``{"mdvis": ["sum", "max"]}``, whose columns are named ``mdvis``, or
            ``mdvis_sum`` and ``mdvis_max``; or statistics of all columns.
        **columns
            Names of columns of the result, as in ``visits=("mdvis", "sum")`` or ``n="size"``.

        Raises
        ------
        PlanError
            There is no such column or statistic, the column has another type, or "first" or "last" has no order.

        Examples
        --------
        >>> people.groupby("person").agg({"cost": ["sum", "max"]})
        <private table: cost_sum, cost_max>
        >>> people.groupby(["person", "site"]).agg(total=("cost", "sum"), years="size")
        <private table: site, total, years>
        """
        if isinstance(func, Mapping):
            columns = _named(func) | columns
        elif func is not None:
            columns = _named(dict.fromkeys(self._aggregated, func)) | columns
        if not columns:
            raise PlanError(
                f"agg: name at least one column, as in agg(n='size', m=({self._examples()['number_name']}, 'sum'))"
            )
        return self._frame(self._per_unit({name: self._column_of(name, spec) for name, spec in columns.items()}))

    aggregate = agg

    def _column_of(self, name: str, spec: object) -> Expression:
        if spec in ("size", "count"):
            return self._within("size")
        if not isinstance(spec, tuple) or len(spec) != 2:
            raise PlanError(f"agg: {name} must be 'size' or a pair (column, statistic); got {spec!r}")
        return self._statistic(verb_of(spec[1]), node_of(self._view, spec[0], "agg"))

    @property
    def _aggregated(self) -> list[str]:
        keys = {level.name for level in self._by}
        return [name for name in self._view.columns if name not in keys]

    def _each(self, verb: str, options: Mapping[str, object]) -> F:
        check_options(verb, options, self._examples(), *AGGREGATION)
        columns: dict[str, Expression] = {}
        for name in self._aggregated:
            try:
                columns[name] = self._statistic(verb, self._view.column(name))
                dtype_of(columns[name], self._view.schema)
            except PlanError:
                if verb in ("first", "last"):
                    raise
                columns.pop(name, None)  # not a number
        if not columns:
            raise PlanError(
                f"{verb}: no column of this view is a number; its columns are {', '.join(self._view.columns)}"
            )
        return self._frame(self._per_unit(columns))

    def head(self, n: int = 5) -> F:
        """The first rows of each unit, in the order of ``sort_values``.

        Parameters
        ----------
        n : int, default 5
            Number of rows.

        Examples
        --------
        >>> people.sort_values("year").groupby("person").head(2)["cost"].mean().description
        'mean of cost in 2 rows for each unit ordered by year'
        """
        self._refuse_no_order("head")
        return self._frame(self._per_unit(self._view.columns, self._rows(_rows_from(n, "head"))))

    def tail(self, n: int = 5) -> F:
        """The last rows of each unit, in the order of ``sort_values``.

        Parameters
        ----------
        n : int, default 5
            Number of rows.

        Examples
        --------
        >>> people.sort_values("year").groupby("person").tail(2)["cost"].mean().description
        'mean of cost in 2 rows for each unit ordered by year descending'
        """
        self._refuse_no_order("tail")
        return self._frame(self._per_unit(self._view.columns, self._rows(_rows_from(n, "tail"), last=True)))

    def nth(self, n: int) -> F:
        """The first row (0) or the last row (-1) of each unit, in the order of ``sort_values``.

        Parameters
        ----------
        n : {0, -1}
            Number of the row.

        Examples
        --------
        >>> people.sort_values("year").groupby("person").nth(-1)["cost"].mean().description
        'mean of cost in one row for each unit ordered by year descending'
        """
        self._refuse_no_order("nth")
        if whole_rows(n, "nth") not in (0, -1):
            raise PlanError(f"nth: takes 0 or -1 for rows; got {n!r}; a column has every .nth(n)")
        return self._frame(self._per_unit(self._view.columns, self._rows(last=n == -1)))

    def cumcount(self) -> Series:
        """Number of rows of the unit before each row, in the order of ``sort_values``.

        Examples
        --------
        >>> ordered = people.sort_values("year")
        >>> ordered[ordered.groupby("person").cumcount() > 0]["cost"].mean().description
        'mean of cost where (rows.number() within each unit ordered by year) > 0'
        """
        self._refuse_no_order("cumcount")
        return Series(self._view, self._within("number", ordered=True))


def unit_levels(view: TableView, by: object) -> list[object] | None:
    """The keys beside the privacy unit, if that is among the levels of groups; None if it is not."""
    levels = by if isinstance(by, list) else [by]
    names = [level for level in levels if isinstance(level, str)]
    if view.unit is None or view.unit not in names:
        return None
    return [level for level in levels if not (isinstance(level, str) and level == view.unit)]


def without_repetitions(groups: UnitGroupBy[F], keep: object) -> F:
    """One row of each unit and keys: the first or the last in the order of ``sort_values``."""
    if keep not in ("first", "last"):
        raise PlanError(f"drop_duplicates: keep must be 'first' or 'last'; got {keep!r}")
    if keep == "last":
        groups._refuse_no_order("drop_duplicates")
    return groups._frame(groups._per_unit(groups._view.columns, groups._rows(last=keep == "last")))


def _named(by_column: Mapping[Any, Any]) -> dict[str, object]:
    named: dict[str, object] = {}
    for name, verbs in by_column.items():
        if isinstance(verbs, list | tuple):
            named |= {f"{name}_{verb_of(verb)}": (name, verb) for verb in verbs}
        else:
            named[str(name)] = (name, verbs)
    return named


def _rows_from(value: object, verb: str) -> int:
    rows = whole_rows(value, verb)
    return rows if rows >= 1 else refuse_rows(value, verb)
