"""A view of a private table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, Never, Required, TypedDict, Unpack, overload

from dpnb._core.query import Query
from dpnb._plan.expressions.text import words
from dpnb._plan.measurements import Count, Discovery, Family, PlainView
from dpnb._plan.privacy_unit import bounds_from
from dpnb.accounting.exact import Number
from dpnb.copying import safe_repr
from dpnb.errors import PlanError
from dpnb.frame.coerce import aggregation_for, literal
from dpnb.frame.column_expr import ColumnExpr, filtered, groups_of, listed_keys, node_of
from dpnb.frame.formula import model_of, regression_of
from dpnb.frame.groupby import Aggregated, GroupBy, aggregated
from dpnb.frame.lookup import looked_up
from dpnb.frame.series import Series
from dpnb.frame.unsupported import UnsupportedOperations
from dpnb.frame.view import TableView
from dpnb.interactive.descent.gradient_descent import GradientDescent
from dpnb.results.explanation import Explanation


class FitOptions(TypedDict, total=False):
    """The keyword arguments of `Frame.fit`, for its overloads."""

    on: Required[Any]
    family: Required[Family]
    mu: Required[Number]
    steps: Required[int]
    name: str | None
    clip_norm: Number
    learning_rate: Number | None
    chains: int
    public_size: int | None
    check_every: int | None
    check_mu: Number | None
    patience: int
    start: Any


class Frame(UnsupportedOperations):
    """A view of the private table, used like a pandas DataFrame.  Every verb returns a new view or a query.

    Parameters
    ----------
    view : TableView

    Examples
    --------
    >>> import dpnb
    >>> session = dpnb.Session.rehearse(
    ...     name="people",
    ...     budget=dpnb.Budget(epsilon=1, delta=1e-6),
    ...     schema={"age": dpnb.Bounded(0, 100)},
    ... )
    >>> frame = session.frame
    >>> frame.columns
    ['age']
    >>> frame[frame["age"] >= 65].count().description
    'count of rows where age >= 65'
    """

    __slots__ = ("_view",)

    def __init__(self, view: TableView) -> None:
        self._view = view

    def _with(self, **changes: Any) -> Frame:
        return Frame(replace(self._view, **changes))

    @property
    def columns(self) -> list[str]:
        """Names of the view's columns."""
        return list(self._view.columns)

    def __dir__(self) -> list[str]:
        """Names for completion: the methods, and the columns that are valid names."""
        return [*super().__dir__(), *filter(str.isidentifier, self._view.columns)]

    def _ipython_key_completions_(self) -> list[str]:
        return self.columns

    @overload
    def __getitem__(self, key: str) -> Series: ...
    @overload
    def __getitem__(self, key: ColumnExpr | list[str]) -> Frame: ...
    def __getitem__(self, key: object) -> Series | Frame:
        """Return a column by name, a view of some columns, or the rows for which a condition is true."""
        if isinstance(key, ColumnExpr):
            return Frame(filtered(self._view, key))
        if isinstance(key, list):
            return self._with(assigned={name: self._view.column(name) for name in key})
        return Series(self._view, self._view.column(key))

    def assign(self, **columns: Any) -> Frame:
        """Add columns: expressions of columns, constants, or functions of the view that return one, as in pandas.

        Raises
        ------
        PlanError
            An expression is invalid, or comes from another table.
        """
        view = self
        for name, argument in columns.items():
            value = argument(view) if callable(argument) and not isinstance(argument, ColumnExpr) else argument
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
    ) -> Frame:
        """Tighten the contribution bounds of each unit, for less noise; see `Session` for the meaning of each bound.

        Raises
        ------
        SchemaError
            A bound is out of range.
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
    ) -> Frame:
        """Join with another table of the session on the privacy unit, or with a public table.

        Parameters
        ----------
        right : view or data frame
            A view of another table of the session: the result has every pair of rows that one unit has in both.  A
            table, or a part of it, can occur in a join only once, and the ``max_rows_per_unit`` of the tables may allow
            a unit at most 10,000 pairs.  Or a public table with one row for each key: its other columns are added, with
            bounds and categories taken from it.
        on : str or list of str
            The privacy unit, or the key columns.
        how : str
            ``"inner"``, or for a public table also ``"left"``.
        suffixes : pair of str
            Appended to the names of columns that both tables have.

        Raises
        ------
        PlanError
            The join is not of one of these kinds, would join a table with itself, or the keys of the public table
            are not unique.
        """
        pair: Any = suffixes
        if not isinstance(pair, tuple | list) or [type(suffix) for suffix in pair] != [str, str]:
            raise PlanError(f"merge: suffixes must be two strings, such as ('_x', '_y'); got {pair!r}")
        suffixes = (pair[0], pair[1])
        view = self._view
        if isinstance(right, Frame):
            return Frame(view.joined(right._view, on, how, suffixes))
        columns, key_matches = looked_up(right, on, how, view.columns, suffixes, view.schema)
        return Frame(replace(view if key_matches is None else view.filtered(key_matches), assigned=columns))

    # --- groups ------------------------------------------------------------------------------------------------

    def groupby(self, by: Any, keys: object = None) -> GroupBy:
        """Split the view into groups, to aggregate each; groups without rows are included.

        Parameters
        ----------
        by : str, column, or list of them
            Columns of public values: declared categories, conditions, bins of `dpnb.cut`, parts of dates, rounded
            numbers; string columns with `keys`.
        keys : list, data frame or answer, optional
            The public groups; by default every combination of the public values.  A list of keys (tuples for several
            columns), a table with the columns of `by`, or the answer of `discover`.

        Raises
        ------
        PlanError
            There is no such column, or its values are not public.
        """
        groups = groups_of(self._view, by)
        return GroupBy(self._view, groups, listed_keys(self._view, groups, keys))

    def discover(self, by: Any, *, discovery_delta: object = None) -> Query:
        """Find the groups that contain enough privacy units: their keys, and the number of units in each.

        This is differentially private partition selection.  A group with a single unit is found with probability at
        most delta, which is taken from the budget's ``discovery_delta`` (a tenth of it by default).

        The interval of a group's number of units is valid conditionally on the group being found, however small it is,
        and the estimate is median-unbiased.  With ``simultaneous=True`` the intervals of all groups found hold at once.

        Raises
        ------
        PlanError
            The budget has no ``discovery_delta``, or a column has no discrete values.
        """
        return self._view.query(
            Discovery(self._view.discovery(discovery_delta)), PlainView(), groups_of(self._view, by)
        )

    # --- aggregations ------------------------------------------------------------------------------------------

    def count(self) -> Query:
        """Number of rows, nulls included.

        pandas gives the non-null values of each column here: ``frame["x"].count()`` gives those of one column.
        """
        return self._view.query(*aggregation_for("count", None))

    def count_units(self) -> Query:
        """Number of privacy units with at least one row."""
        return self._view.query(*aggregation_for("units", None))

    def agg(self, *others: Never, weights: Mapping[str, float] | None = None, **columns: Aggregated) -> Query:
        """Several aggregations in one charge.

        Parameters
        ----------
        weights : mapping of str to float, optional
            How the charge (mu squared) is divided; 1 each by default.  What two columns have in common (a mean and a
            count of one column) is measured once, with both weights.
        **columns
            ``n="count"`` or ``n="units"``, or ``visits=("mdvis", "mean")`` with ``count``, ``sum``, ``mean``, ``var``,
            ``std`` (both with ``ddof=1``), ``min``, ``median`` or ``max``.

        Raises
        ------
        PlanError
            A column or weight does not have this form.
        """
        return self._view.query(*aggregated(self._view, others, columns, weights))

    def regress(self, outcome: Any, *, on: Any) -> Query:
        """Least squares of one column on others, from noisy second moments.

        Parameters
        ----------
        outcome : str or column
        on : str, column, or list of them
            Numbers as they are; conditions as 1 where they are true; categories as one indicator for each value except
            the first.

        Raises
        ------
        PlanError
            A column cannot be used as a number, or is named twice.
        """
        columns = [outcome, *(on if isinstance(on, list) else [on])]
        nodes = [node_of(self._view, column, "regress") for column in columns]
        return self._view.query(*regression_of(nodes, self._view))

    @overload
    def fit(
        self, outcome: Any, *, dry_run: Literal[False] = False, **options: Unpack[FitOptions]
    ) -> GradientDescent: ...
    @overload
    def fit(self, outcome: Any, *, dry_run: Literal[True], **options: Unpack[FitOptions]) -> Explanation: ...
    def fit(
        self,
        outcome: Any,
        *,
        on: Any,
        family: Family,
        mu: Number,
        steps: int,
        name: str | None = None,
        clip_norm: Number = 1.0,
        learning_rate: Number | None = None,
        chains: int = 8,
        public_size: int | None = None,
        check_every: int | None = None,
        check_mu: Number | None = None,
        patience: int = 2,
        start: Any = None,
        dry_run: bool = False,
    ) -> GradientDescent | Explanation:
        """Launch a regression fitted by noisy gradient descent (Feldman and Zrnic 2021, Algorithms 6 and 7).

        The launch itself is free; ``.step()`` and ``.run()`` of the returned object are charged step by step.

        A step releases the sum of all units' gradients, each clipped to `clip_norm`, with noise added once to the sum,
        and divides it by a public number of units.  Columns are scaled internally to [-1, 1] by the schema's bounds;
        coefficients are reported in the columns' original units.  The same name and arguments return the same fit in
        any kernel, and repeating its steps is free.

        Parameters
        ----------
        outcome : str or column
            A number; for ``"logistic"`` a condition or a column with two categories (the second is predicted); for
            ``"poisson"`` a number of at least 0; for ``"multinomial"`` a categorical column.
        on : str, column, or list of them
            Numbers as they are; conditions as 1 where they are true; categories as one indicator for each value except
            the first.  Rows with a missing value in any of the columns are ignored.
        family : str
            ``"linear"``, ``"logistic"``, ``"poisson"`` or ``"multinomial"``.
        mu : Number
            Loss of ONE step, > 0; all `steps` together cost mu times the square root of `steps`.
        steps : int
            Maximum number of steps.
        name : str, optional
            Name of the launch; by default a description of the regression.
        clip_norm : Number
            The norm to which a unit's gradient, summed over its rows, is clipped, in the scaled columns' units.
        learning_rate : Number, optional
            By default a rate that cannot overshoot, whatever the rows are.  It is slow if most values are far from
            their bounds, above all for ``"poisson"``: choose a larger one then.
        chains : int
            Number of independent descents, for intervals that cover the noise.  The cost does not depend on it.
        public_size : int, optional
            A public number of units, by which the sum is divided; by default the session's `public_size`.
        check_every : int, optional
            Release the prediction error after every `check_every` steps, and stop when it no longer improves.
        check_mu : Number, optional
            Loss of one check; by default `mu`.
        patience : int
            Stop after this many consecutive checks that do not improve on the best by more than their noise.
        start : mapping or coefficients, optional
            Coefficients by term in the columns' original units, or the ``.coefficients`` of another fit; by default 0.
        dry_run : bool
            Return the cost of a step, how many steps the budget covers and the size of the noise, and launch nothing.

        Returns
        -------
        GradientDescent, or Explanation if `dry_run`

        Raises
        ------
        PlanError
            A column does not fit the family, or is named twice.
        RequestError
            No public number of units is known, or the name is already used for something else.
        InvalidValueError
            A number is out of range.
        """
        nodes = [node_of(self._view, one, "fit") for one in (outcome, *(on if isinstance(on, list) else [on]))]
        model, terms = model_of(nodes[0], nodes[1:], family, self._view)
        rows = self._view.plan(Count())
        options = {
            "clip_norm": clip_norm,
            "learning_rate": learning_rate,
            "chains": chains,
            "public_size": public_size,
            "start": start,
        }
        checks = {"check_every": check_every, "check_mu": check_mu, "patience": patience}
        return self._view.fit(rows, model, terms, name=name, mu=mu, steps=steps, dry_run=dry_run, **options, **checks)

    def _description(self) -> str:
        return "private table"

    @safe_repr
    def __repr__(self) -> str:
        view = self._view
        where = "" if view.where is None else f" where {words(view.where)}"
        return f"<private table: {', '.join(view.columns)}{where}>"
