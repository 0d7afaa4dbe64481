"""A view of a private table."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Unpack, overload

from dpnb._plan.expressions.dtypes import Categorical, Numeric
from dpnb._plan.expressions.nodes import Expression
from dpnb._plan.expressions.rules import dtype_of
from dpnb._plan.expressions.text import words
from dpnb._plan.measurements import AnyView, Measured
from dpnb._plan.privacy_unit import bounds_from
from dpnb.copying import safe_repr
from dpnb.errors import PlanError
from dpnb.frame.coerce import aggregation_for, literal
from dpnb.frame.columns.column_expr import ColumnExpr, filtered, node_of
from dpnb.frame.columns.figures import Figures
from dpnb.frame.columns.series import Series
from dpnb.frame.columnwise import ColumnwiseAggregations
from dpnb.frame.compatibility.callers import is_temporary, refusal_for_caller, refuse_comparison_with_pandas
from dpnb.frame.compatibility.calls import REMEDIES
from dpnb.frame.compatibility.examples import type_words
from dpnb.frame.compatibility.functions import NumpyFunctions, applied
from dpnb.frame.compatibility.options import AGGREGATION, PandasOptions, check_options, describe_options
from dpnb.frame.groupby import Aggregated, AggregationSpec, UnitColumn, aggregation_query
from dpnb.frame.grouping import Grouping
from dpnb.frame.lookup import Joins
from dpnb.frame.query_text import TextQueries
from dpnb.frame.regressions import Regressions
from dpnb.frame.selection import Loc
from dpnb.frame.studies import Survivals, TablesOne
from dpnb.query.query import Query
from dpnb.results.display import Explanation, to_html, to_text


@describe_options
class Frame(
    ColumnwiseAggregations, Figures, Regressions, Survivals, TablesOne, Grouping, Joins, TextQueries, NumpyFunctions
):
    """A view of the private table, used like a pandas DataFrame.  Every method returns a new view or a query.

    A column is ``frame["age"]``, or ``frame.age`` unless a method has this name.  ``frame["new"] = expression`` adds a
    column to this frame; the table is never changed.

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
    >>> df = session.frame
    >>> df.columns
    ['age']
    >>> df[df["age"] >= 65].count().description
    'count of rows where age >= 65'
    >>> df.query("18 <= age < 65").age.mean().description
    'mean of age where (age >= 18) & (age < 65)'
    >>> df["decade"] = df.age // 10
    >>> df.corr().description
    'correlations of age, decade (made from age // 10)'
    >>> df.regress("age ~ decade").description
    'regression of age on age // 10'
    """

    __slots__ = ()

    if TYPE_CHECKING:  # what `UnsupportedOperations.__getattr__` finds

        def __getattr__(self, name: str) -> Series: ...

    else:

        @property
        def __class__(self) -> type:
            """The class; refused to a library that uses only tables of pandas, with an error of its own otherwise."""
            refuse_comparison_with_pandas(sys._getframe(1), self._examples)
            return type(self)

    def _group_nodes(self) -> tuple[Expression, ...]:
        return ()

    def _ask(self, aggregation: Measured, view: AnyView) -> Query:
        return self._view.query(aggregation, view)

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
        if isinstance(key, tuple) and all(isinstance(name, str) for name in key):
            raise PlanError(
                f"df[{', '.join(map(repr, key))}]: several columns need a list; write df[{list(key)!r}]; its columns "
                f"are {', '.join(map(repr, self.columns))}"
            )
        if isinstance(key, slice | int | tuple) and not isinstance(key, bool):
            refusal_for_caller(self._examples())
            raise PlanError(
                f"df[{key!r}]: rows have no positions and are never shown; select rows by a condition, as in "
                f"{self._example('df[{number} > 1]')}, and columns by name; its columns are "
                f"{', '.join(map(repr, self.columns))}"
            )
        if isinstance(key, str) and key == self._view.unit:
            return UnitColumn(self._view, key)  # type: ignore[return-value]  # only .nunique() of it is offered
        return Series(self._view, self._view.column(key))

    def __setitem__(self, key: object, value: object) -> None:
        """Add or replace a column, as `assign` does in a new view; views made before are unchanged."""
        if not isinstance(key, str) or not key:
            raise PlanError(
                f"df[{key!r}] = ...: rows cannot be changed; one column is set by its name, as in "
                + self._example("df['new'] = {number} * 2")
            )
        if is_temporary(sys.getrefcount(self), self, sys._getframe(1)):
            raise PlanError(
                f"[{key!r}] = ...: would be lost, since only this statement has the table: session.frame, and every "
                f"selection, is a new one each time; give it a name, as in df = session.frame, then df[{key!r}] = ..."
            )
        if key == self._view.unit:
            raise PlanError(f"df[{key!r}] = ...: {key!r} identifies the privacy unit; choose another name")
        self._view = self.assign(**{key: value})._view

    def __delitem__(self, key: object) -> None:
        if is_temporary(sys.getrefcount(self), self, sys._getframe(1)):
            raise PlanError(f"del [{key!r}]: would be lost; give the table a name, as in df = session.frame")
        self._view = self.drop(columns=[key])._view

    def pop(self, item: str) -> Series:
        """Remove a column from this frame, and return it.

        Parameters
        ----------
        item : str
            Name of the column.

        Examples
        --------
        >>> df.pop("note")
        <private column: note>
        >>> df.columns
        ['age', 'cost', 'plan', 'admitted']
        """
        column = self[item]
        del self[item]
        return column

    def insert(self, loc: int, column: str, value: Any, allow_duplicates: bool = False) -> None:
        """Add a column, as ``frame[column] = value`` does; `loc` has no effect, since no query depends on it.

        Parameters
        ----------
        loc : int
            Has no effect.
        column : str
            Name of the new column.
        value : column or constant
            An expression of columns of the same rows, or a constant.
        allow_duplicates : bool, default False
            Has no effect: a column of this name is replaced.

        Examples
        --------
        >>> df.insert(0, "monthly", df["cost"] / 12)
        >>> df.columns
        ['age', 'cost', 'plan', 'admitted', 'note', 'monthly']
        """
        del loc, allow_duplicates
        self[column] = value

    def items(self) -> list[tuple[str, Series]]:
        """Name and column of each column, as in pandas.

        Examples
        --------
        >>> [name for name, column in df.items()]
        ['age', 'cost', 'plan', 'admitted', 'note']
        """
        return [(name, self[name]) for name in self.columns]

    @property
    def loc(self) -> Loc[Frame]:
        """Rows by a condition and columns by name: ``loc[condition]``, ``loc[condition, "x"]``, ``loc[:, ["x"]]``."""
        return Loc(self)

    def assign(self, **columns: Any) -> Frame:
        """Add columns: expressions of columns, constants, or functions of the view that return one, as in pandas.

        Parameters
        ----------
        **columns
            The new columns by name.  A function receives the view with the columns before it.

        Raises
        ------
        PlanError
            An expression is invalid, or comes from another table.

        Examples
        --------
        >>> df.assign(monthly=df["cost"] / 12).columns
        ['age', 'cost', 'plan', 'admitted', 'note', 'monthly']
        """
        view = self
        for name, argument in columns.items():
            value: object = argument(view) if callable(argument) and not isinstance(argument, ColumnExpr) else argument
            is_column = isinstance(value, ColumnExpr)
            node = node_of(self._view, value, "assign") if is_column else literal(value, f"assign: {name}")
            view = view._with(assigned={**view._view.columns, name: node})
        return view

    def apply(self, func: Callable[..., Any], axis: object = 0, **options: object) -> Series:
        """With ``axis=1`` the column that a function builds, as in ``apply(lambda row: row["a"] + row["b"], axis=1)``.

        The function is called once and receives the view, never a row, so it can have no ``if``.

        Parameters
        ----------
        func : callable
            Called once; receives the view, never a row.
        axis : {0, 1, "columns"}, default 0
            Must be 1 or ``"columns"``.

        Raises
        ------
        UnsupportedError
            The function returns no column, or `axis` is 0.

        Examples
        --------
        >>> df.apply(lambda row: row["cost"] / 12, axis=1)
        <private column: cost / 12>
        """
        check_options("apply", options, self._examples(), "raw", "result_type")
        refusal = f".apply of {self._description()}: {self._example(REMEDIES['apply'])}"
        built: Series = applied(func if axis in (1, "columns") else None, self, (), {}, Series, refusal)
        return built

    def bound_contributions(
        self,
        *,
        max_rows_per_unit: int | None = None,
        max_groups_per_unit: int | None = None,
        max_rows_per_group: int | None = None,
        max_norm_per_unit: float | None = None,
    ) -> Frame:
        """Tighten the contribution bounds of each unit, for less noise.

        Parameters
        ----------
        max_rows_per_unit : int, optional
            The maximum number of rows of a unit that count.
        max_groups_per_unit : int, optional
            The maximum number of groups of one query in which a unit counts.
        max_rows_per_group : int, optional
            The maximum number of rows of a unit that count in each group.
        max_norm_per_unit : float, optional
            The maximum L2 norm of the vector that a unit adds to a query, as a multiple of the largest norm that one
            row can add.  A longer vector is scaled down.

        Raises
        ------
        SchemaError
            A bound is out of range.

        Examples
        --------
        >>> df.bound_contributions(max_rows_per_unit=1).count().description
        'count of rows (at most 1 row)'
        """
        limits = bounds_from(
            rows=max_rows_per_unit,
            groups=max_groups_per_unit,
            rows_per_group=max_rows_per_group,
            norm=max_norm_per_unit,
        )
        return self._with(limits=self._view.limits.tightened(limits))

    # --- aggregations ------------------------------------------------------------------------------------------

    def count(self, axis: object = 0, **options: Unpack[PandasOptions]) -> Query:
        """Number of rows, nulls included.

        pandas gives the non-null values of each column here: ``frame["x"].count()`` gives those of one column.

        Parameters
        ----------
        axis : {0, "index", "rows"}, default 0
            Rows are counted.

        Examples
        --------
        >>> df.count().description
        'count of rows'
        """
        check_options("count", {"axis": axis, **options}, self._examples(), *AGGREGATION)
        return self._view.query(*aggregation_for("count", None))

    def count_units(self) -> Query:
        """Number of privacy units with at least one row.

        Examples
        --------
        >>> df.count_units().description
        'count of privacy units'
        """
        return self._view.query(*aggregation_for("units", None))

    def agg(
        self, func: AggregationSpec | None = None, *, weights: Mapping[str, float] | None = None, **columns: Aggregated
    ) -> Query:
        """Several aggregations in one charge.

        Parameters
        ----------
        func : dict, list or str, optional
            As in pandas: ``{"mdvis": "mean"}`` or ``{"mdvis": ["mean", "std"]}``, whose numbers are named ``mdvis`` or
            ``mdvis_mean`` and ``mdvis_std``; or aggregations of all numeric columns.
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

        Examples
        --------
        >>> df.agg({"age": "mean", "cost": ["sum", "std"]}).description
        'mean of age, sum of cost, sample standard deviation of cost'
        """
        return aggregation_query(self, func, columns, weights)

    aggregate = agg

    def _description(self) -> str:
        return "private table"

    @safe_repr
    def __repr__(self) -> str:
        view = self._view
        where = "" if view.where is None else f" where {words(view.where)}"
        return f"<private table: {', '.join(view.columns)}{where}>"

    def __str__(self) -> str:
        return to_text(self._overview())

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self) if cycle else str(self))

    def _repr_html_(self) -> str:
        return to_html(self._overview())

    def _overview(self) -> Explanation:
        """The columns with their declared types, and a line to try: what a notebook shows of a frame."""
        view = self._view
        kinds = {name: dtype_of(node, view.schema) for name, node in view.columns.items()}
        has_groups = any(isinstance(kind, Categorical) for kind in kinds.values())
        by = "df.groupby({category_name})" if has_groups else "df"
        line = (
            by + "[{number_name}].mean()" if any(isinstance(kind, Numeric) for kind in kinds.values()) else "df.count()"
        )
        where = "" if view.where is None else f" where {words(view.where)}"
        facts = [(repr(name), type_words(kind)) for name, kind in kinds.items()]
        return Explanation(
            f"private table{where}; rows are never shown", [*facts, ("for example", self._example(line))]
        )
