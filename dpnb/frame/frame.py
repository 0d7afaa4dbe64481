"""A view of a private table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Generic, Literal, overload

from dpnb._plan.expressions.text import words
from dpnb._plan.measurements import Count, Discovery, Family, PlainView
from dpnb._plan.privacy_unit import bounds_from
from dpnb.copying import safe_repr
from dpnb.errors import PlanError
from dpnb.frame.coerce import aggregation_for, literal
from dpnb.frame.column_expr import ColumnExpr, filtered, groups_of, listed_keys, node_of
from dpnb.frame.formula import model_of, regression_of
from dpnb.frame.groupby import Aggregated, GroupBy, aggregated
from dpnb.frame.lookup import looked_up
from dpnb.frame.series import Series
from dpnb.frame.unsupported import UnsupportedOperations
from dpnb.frame.view import Q, TableView


class Frame(UnsupportedOperations, Generic[Q]):
    """A view of the private table, used like a pandas DataFrame.  Every verb gives a new view or a question.

    Parameters
    ----------
    view : TableView
    """

    __slots__ = ("_view",)

    def __init__(self, view: TableView[Q]) -> None:
        self._view = view

    def _with(self, **changes: Any) -> Frame[Q]:
        return Frame(replace(self._view, **changes))

    @property
    def columns(self) -> list[str]:
        """Names of the view's columns."""
        return list(self._view.columns)

    @overload
    def __getitem__(self, key: str) -> Series[Q]: ...
    @overload
    def __getitem__(self, key: ColumnExpr | list[str]) -> Frame[Q]: ...
    def __getitem__(self, key: object) -> Series[Q] | Frame[Q]:
        """A column by name, a view of some columns, or the rows for which a condition is true."""
        if isinstance(key, ColumnExpr):
            return Frame(filtered(self._view, key))
        if isinstance(key, list):
            return self._with(assigned={name: self._view.column(name) for name in key})
        return Series(self._view, self._view.column(key))

    def assign(self, **columns: Any) -> Frame[Q]:
        """Add columns: expressions of columns, constants, or functions of the view that give one, as in pandas.

        Raises
        ------
        PlanError
            A column has no meaning, or comes from another table.
        """
        view = self
        for name, given in columns.items():
            value = given(view) if callable(given) and not isinstance(given, ColumnExpr) else given
            is_column = isinstance(value, ColumnExpr)
            node = node_of(self._view, value, "assign") if is_column else literal(value, f"assign: {name}")
            view = view._with(assigned={**view._view.columns, name: node})
        return view

    def bound_contributions(
        self,
        *,
        max_rows_per_unit: int | None = None,
        max_groups_per_unit: int | None = None,
        max_rows_per_group: int | None = None,
        max_norm_per_unit: float | None = None,
    ) -> Frame[Q]:
        """Let less of each unit count, for less noise; see `Session` for what each limit means.

        Raises
        ------
        SchemaError
            A limit is out of its range.
        """
        limits = bounds_from(
            rows=max_rows_per_unit,
            groups=max_groups_per_unit,
            rows_per_group=max_rows_per_group,
            norm=max_norm_per_unit,
        )
        return self._with(limits=self._view.limits.tightened(limits))

    def merge(
        self,
        right: Any,
        on: str | list[str] | None = None,
        how: Literal["inner", "left"] = "inner",
        suffixes: tuple[str, str] = ("_x", "_y"),
    ) -> Frame[Q]:
        """Join with another table of the session on the privacy unit, or with a public table.

        Parameters
        ----------
        right : view or data frame
            A view of another of the session's tables: every pair of rows that one unit has in both.  A table, or a
            part of it, can be in a join once, and a unit may have at most 10,000 pairs by ``max_rows_per_unit`` of the
            tables.  Or a public table with one row for each key: its other columns are added, with bounds and
            categories taken from it.
        on : str or list of str
            The privacy unit, or the key columns.
        how : str
            ``"inner"``, or for a public table also ``"left"``.
        suffixes : pair of str
            For columns that both have.

        Raises
        ------
        PlanError
            The join is not of one of these kinds, a table would be joined with itself, or the keys of the public table
            are not unique.
        """
        given: Any = suffixes
        if not isinstance(given, tuple | list) or [type(suffix) for suffix in given] != [str, str]:
            raise PlanError(f"merge: suffixes must be two texts, such as ('_x', '_y'); got {given!r}")
        suffixes = (given[0], given[1])
        view = self._view
        if isinstance(right, Frame):
            return Frame(view.joined(right._view, on, how, suffixes))
        columns, found = looked_up(right, on, how, view.columns, suffixes, view.schema)
        return Frame(replace(view if found is None else view.filtered(found), assigned=columns))

    # --- groups ------------------------------------------------------------------------------------------------

    def groupby(self, by: Any, keys: object = None) -> GroupBy[Q]:
        """Ask a question of each group; groups without rows are answered too.

        Parameters
        ----------
        by : str, column, or list of them
            Columns of public values: declared categories, conditions, bins of `dpnb.cut`, parts of dates, rounded
            numbers; texts with `keys`.
        keys : list, data frame or answer, optional
            The public groups; left out, every combination of the public values.  A list of keys (tuples for several
            columns), a table with the columns of `by`, or the answer of `discover`.

        Raises
        ------
        PlanError
            No such column, or its values are not public.
        """
        groups = groups_of(self._view, by)
        return GroupBy(self._view, groups, listed_keys(self._view, groups, keys))

    def discover(self, by: Any, *, discovery_delta: object = None) -> Q:
        """Find the groups that enough privacy units have, privately: their keys, and how many units each.

        A group that one unit alone has is found with probability at most delta, which is taken from the budget's
        ``discovery_delta`` (a tenth of it, unless given).

        The interval of a group's number covers given that the group was named, however small it is, and the estimate is
        as often too high as too low.  With ``simultaneous=True`` the intervals of all named groups hold at once.

        Raises
        ------
        PlanError
            The budget has no ``discovery_delta``, or a column has no values to list.
        """
        return self._view.question(
            Discovery(self._view.discovery(discovery_delta)), PlainView(), groups_of(self._view, by)
        )

    # --- questions ---------------------------------------------------------------------------------------------

    def count(self) -> Q:
        """Number of rows, nulls included.

        pandas gives the non-null values of each column here: ``frame["x"].count()`` gives those of one column.
        """
        return self._view.question(*aggregation_for("count", None))

    def count_units(self) -> Q:
        """Number of privacy units with at least one row."""
        return self._view.question(*aggregation_for("units", None))

    def agg(self, *others: object, weights: Mapping[str, float] | None = None, **columns: Aggregated) -> Q:
        """Several aggregations in one charge.

        Parameters
        ----------
        weights : mapping of str to float, optional
            How the charge (mu squared) is shared; 1 each if left out.  What two columns have in common (a mean and a
            count of one column) is measured once, with both weights.
        **columns
            ``n="count"`` or ``n="units"``, or ``visits=("mdvis", "mean")`` with ``count``, ``sum``, ``mean``, ``var``,
            ``std`` (both with ``ddof=1``), ``min``, ``median`` or ``max``.

        Raises
        ------
        PlanError
            A column or weight is not of this form.
        """
        return self._view.question(*aggregated(self._view, others, columns, weights))

    def regress(self, outcome: Any, *, on: Any) -> Q:
        """Least squares of one column on others, from noisy second moments.

        Parameters
        ----------
        outcome : str or column
        on : str, column, or list of them
            Numbers as they are; conditions as 1 where they are true; categories as one indicator for each value but the
            first.

        Raises
        ------
        PlanError
            A column is no number, or one is named twice.
        """
        given = [outcome, *(on if isinstance(on, list) else [on])]
        nodes = [node_of(self._view, one, "regress") for one in given]
        return self._view.question(*regression_of(nodes, self._view))

    def fit(
        self,
        outcome: Any,
        *,
        on: Any,
        family: Family,
        mu: Any,
        steps: int,
        name: str | None = None,
        clip_norm: Any = 1.0,
        learning_rate: Any = None,
        chains: int = 8,
        public_size: int | None = None,
        check_every: int | None = None,
        check_mu: Any = None,
        patience: int = 2,
        start: Any = None,
        dry_run: bool = False,
    ) -> Any:
        """Launch the fit of a regression by noisy gradients (Feldman and Zrnic 2021, Algorithms 6 and 7).

        Nothing is charged now; ``.step()`` and ``.run()`` of what this returns are charged step by step.

        A step releases the sum of all units' gradients, each scaled down to `clip_norm`, with noise added once to
        the sum, and divides it by a public number of units.  Inside, columns are brought to -1 to 1 by the schema's
        bounds; coefficients are given in the columns' own units.  The same name and arguments give the same fit again,
        its steps free, in any kernel.

        Parameters
        ----------
        outcome : str or column
            A number; for ``"logistic"`` a condition or a category of two values, of which the second is predicted; for
            ``"poisson"`` a number of at least 0; for ``"multinomial"`` a category.
        on : str, column, or list of them
            Numbers as they are; conditions as 1 where they are true; categories as one indicator for each value but the
            first.  Rows that lack any of the columns do not count.
        family : str
            ``"linear"``, ``"logistic"``, ``"poisson"`` or ``"multinomial"``.
        mu : Number
            Of ONE step, > 0; `steps` of them together cost mu times the root of their number.
        steps : int
            At most.
        name : str, optional
            The regression in words if left out.
        clip_norm : Number
            The norm to which a unit's gradient, summed over its rows, is scaled down, in the scaled columns' units.
        learning_rate : Number, optional
            If left out, one at which no descent can overshoot, whatever the rows are.  It is slow where most rows are
            far from their bounds, above all for ``"poisson"``: take a larger one then.
        chains : int
            Independent descents side by side, for intervals that cover the noise.  The cost does not depend on it.
        public_size : int, optional
            A public number of units, by which the sum is divided; the session's `public_size` if left out.
        check_every : int, optional
            After so many steps each, release how badly the coefficients predict, and stop when it does not get better.
        check_mu : Number, optional
            Of one check; `mu` if left out.
        patience : int
            How many checks in a row may be no better than the best, by more than their noise, before it stops.
        start : mapping or coefficients, optional
            Numbers by term in the columns' own units, or the ``.coefficients`` of another fit; 0 if left out.
        dry_run : bool
            Say what a step costs, how many the budget covers and how large the noise is, and launch nothing.

        Returns
        -------
        Descent, or Explanation

        Raises
        ------
        PlanError
            A column does not go with the family, or stands twice.
        RequestError
            No public number of units is known, or the name was given to something else.
        InvalidValueError
            A number is out of its range.
        """
        nodes = [node_of(self._view, one, "fit") for one in (outcome, *(on if isinstance(on, list) else [on]))]
        model, terms = model_of(nodes[0], nodes[1:], family, self._view)
        rows = self._view.plan(Count())
        given = {
            "clip_norm": clip_norm,
            "learning_rate": learning_rate,
            "chains": chains,
            "public_size": public_size,
            "start": start,
        }
        checks = {"check_every": check_every, "check_mu": check_mu, "patience": patience}
        return self._view.fit(rows, model, terms, name=name, mu=mu, steps=steps, dry_run=dry_run, **given, **checks)

    def _said(self) -> str:
        return "private table"

    @safe_repr
    def __repr__(self) -> str:
        view = self._view
        where = "" if view.where is None else f" where {words(view.where)}"
        return f"<private table: {', '.join(view.columns)}{where}>"
