"""A view split into groups, and the queries of ``agg``; of one column, they are in `dpnb.frame.columns`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, overload

from dpnb._plan.constants import number
from dpnb._plan.expressions.nodes import Expression
from dpnb._plan.measurements import AnyView, Measured
from dpnb._plan.plan import GroupLevel
from dpnb.copying import safe_repr
from dpnb.errors import PlanError
from dpnb.frame.coerce import Spec, aggregation_for, joint_aggregation
from dpnb.frame.columns.column_expr import ColumnExpr, node_of
from dpnb.frame.columns.series import GroupedExpression, GroupedSeries, Series
from dpnb.frame.columnwise import ColumnwiseAggregations, HasColumns, each_column, numeric_columns
from dpnb.frame.compatibility.examples import examples
from dpnb.frame.compatibility.functions import applied, verb_name, verb_names
from dpnb.frame.compatibility.unsupported import UnsupportedOperations
from dpnb.frame.view import TableView
from dpnb.query.query import Query
from dpnb.schema import Key

# --- the column that identifies the privacy unit ----------------------------------------------------------------------


class UnitColumn(UnsupportedOperations):
    """What ``frame[column]`` is for the column of the privacy unit."""

    __slots__ = ("_by", "_keys", "_name", "_view")

    def __init__(
        self,
        view: TableView,
        name: str,
        by: tuple[GroupLevel, ...] = (),
        keys: tuple[tuple[Key, ...], ...] | None = None,
    ) -> None:
        self._view, self._name, self._by, self._keys = view, name, by, keys

    def _description(self) -> str:
        return f"privacy unit {self._name}"

    def __repr__(self) -> str:
        return f"<privacy unit: {self._name}; .nunique() is the number of units>"

    def nunique(self) -> Query:
        """Number of privacy units with at least one row: the query of `Frame.count_units`."""
        return self._view.query(*aggregation_for("units", None), self._by, self._keys)

    def __eq__(self, other: object) -> bool:
        raise PlanError(
            f"{self._name}: identifies the privacy unit, so rows cannot be selected by it; df.count_units() counts the "
            "units"
        )

    __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __eq__
    __hash__ = None  # type: ignore[assignment]  # a column


# --- a view split into groups -----------------------------------------------------------------------------------------


Verb = Literal["count", "sum", "mean", "var", "std", "min", "median", "max"]
Aggregated = Literal["count", "units"] | tuple[str | ColumnExpr, Verb]
"""One column of `Frame.agg`."""

AggregationSpec = Verb | list[Verb] | Mapping[str, Verb | list[Verb]]
"""The forms of pandas that `Frame.agg` takes."""


class GroupBy(ColumnwiseAggregations, UnsupportedOperations):
    """A view split by the public values of one or more columns; groups without rows are included.

    Columns are selected by ``groups["x"]``, ``groups.x`` or ``groups[["x", "y"]]``; an aggregation such as
    ``groups.mean()`` is of all numeric columns in one charge.

    Examples
    --------
    >>> df.groupby("plan")["age"].mean().description
    'mean of age by plan'
    """

    __slots__ = ("_by", "_keys", "_view")

    _column_type: ClassVar[type[GroupedSeries]] = GroupedSeries

    def __init__(self, view: TableView, by: tuple[GroupLevel, ...], keys: tuple[tuple[Key, ...], ...] | None) -> None:
        self._view = view
        self._by = by
        self._keys = keys

    @overload
    def __getitem__(self, name: str) -> GroupedSeries: ...
    @overload
    def __getitem__(self, name: list[str]) -> GroupBy: ...
    def __getitem__(self, name: object) -> GroupedSeries | GroupBy:
        """Select a column by its name, or several to aggregate together."""
        if isinstance(name, list) and name:
            chosen = {one: self._view.column(one) for one in name}
            return GroupBy(replace(self._view, assigned=chosen), self._by, self._keys)
        if not isinstance(name, str):
            raise PlanError(
                f"groups[{name!r}]: takes a column name or a list of them, as in "
                f"df.groupby(...)[{self._examples()['number_name']}]; filter before grouping"
            )
        if name == self._view.unit:
            return UnitColumn(self._view, name, self._by, self._keys)  # type: ignore[return-value]  # only .nunique()
        return self._column_type(self._view, self._view.column(name), self._by, self._keys)

    if TYPE_CHECKING:  # what `UnsupportedOperations.__getattr__` finds

        def __getattr__(self, name: str) -> GroupedSeries: ...

    def _group_nodes(self) -> tuple[Expression, ...]:
        return tuple(group.expression for group in self._by)

    @property
    def ngroups(self) -> int:
        """Number of groups, with and without rows: public."""
        return self._view.number_of_groups(self._by, self._keys)

    def count(self) -> Query:
        """Number of rows in each group, nulls included; the same query as `size`.

        pandas gives the non-null values of each column here: ``groupby(...)["x"].count()`` gives those of one column.

        Examples
        --------
        >>> df.groupby("plan").count().description
        'count of rows by plan'
        """
        return self._ask(*aggregation_for("count", None))

    def size(self) -> Query:
        """Number of rows in each group, nulls included, as in pandas.

        Examples
        --------
        >>> df.groupby("plan").size().description
        'count of rows by plan'
        """
        return self._ask(*aggregation_for("count", None))

    def count_units(self) -> Query:
        """Number of privacy units with at least one row in each group.

        Examples
        --------
        >>> df.groupby("plan").count_units().description
        'count of privacy units by plan'
        """
        return self._ask(*aggregation_for("units", None))

    def agg(
        self, func: AggregationSpec | None = None, *, weights: Mapping[str, float] | None = None, **columns: Aggregated
    ) -> Query:
        """Several aggregations of each group in one charge; see `Frame.agg`.

        Parameters
        ----------
        func : dict, list or str, optional
            Aggregations by column, or of all numeric columns, as for `dpnb.Frame.agg`.
        weights : mapping of str to float, optional
            How the charge is divided, as for `dpnb.Frame.agg`.
        **columns
            Named aggregations, as for `dpnb.Frame.agg`.

        Examples
        --------
        >>> df.groupby("plan").agg(n="count", paid=("cost", "mean")).description
        'count of rows, mean of cost by plan'
        """
        return aggregation_query(self, func, columns, weights)

    aggregate = agg

    def apply(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Query:
        """The aggregation that a function builds, as in ``apply(lambda g: g["x"].mean())``; it receives the groups.

        Parameters
        ----------
        func : callable
            Called once; receives the groups, never rows.
        *args, **kwargs
            Further arguments of the function.

        Examples
        --------
        >>> df.groupby("plan").apply(lambda groups: groups["cost"].mean()).description
        'mean of cost by plan'
        """
        refusal = f".apply of {self._description()}: takes an aggregation, as in " + self._example(
            "df.groupby(...).apply(lambda g: g[{number_name}].mean())"
        )
        inside = GroupedView(self._view, self._by, self._keys)
        built: Query = applied(func, inside, args, kwargs, Query, refusal)
        return built

    def _ask(self, aggregation: Measured, view: AnyView) -> Query:
        return self._view.query(aggregation, view, self._by, self._keys)

    def _description(self) -> str:
        return f"groups of {', '.join(repr(group.name) for group in self._by)}"

    @safe_repr
    def __repr__(self) -> str:
        return f"<private table by {', '.join(group.name for group in self._by)}>"


class GroupedView(GroupBy):
    """Groups inside a function of ``apply``, which can compute with their columns before it aggregates them."""

    __slots__ = ()

    _column_type = GroupedExpression


def aggregation_query(of: HasColumns, func: object, columns: Mapping[str, Any], weights: object) -> Query:
    """The query of ``agg``: named columns, a dict of columns, or aggregations of all numeric columns."""
    if func is None:
        return of._ask(*aggregated(of._view, columns, weights))
    if columns:
        raise PlanError("agg: takes a dict or list of aggregations, or named columns; got both")
    if isinstance(func, Mapping):
        return of._ask(*aggregated(of._view, _named(func), weights))
    if isinstance(func, list | tuple):
        numbers = numeric_columns(of, "agg")
        return of._ask(*aggregated(of._view, _named(dict.fromkeys(numbers, verb_names(func, "agg"))), weights))
    verb = verb_name(func)
    if verb == "count":
        return of._ask(*aggregation_for("count", None))
    if weights is not None:
        raise PlanError("weights: are for several aggregations, as in agg(n='count', weights={'n': 2}); leave them out")
    return each_column(of, verb, {})


def _named(by_column: Mapping[Any, Any]) -> dict[str, tuple[str | ColumnExpr, str]]:
    """The named columns of a dict from columns to aggregations: ``wage``, or ``wage_mean`` for a list of them."""
    named: dict[str, tuple[str | ColumnExpr, str]] = {}
    for name, verbs in by_column.items():
        if isinstance(verbs, list | tuple):
            named |= {f"{name}_{verb}": (name, verb) for verb in verb_names(verbs, f"agg: {name!r}")}
        else:
            named[str(name)] = (name, verb_name(verbs))
    return named


def aggregated(view: TableView, columns: Mapping[str, Any], weights: object) -> tuple[Measured, AnyView]:
    """The joint query of columns, each written as ``name="count"``, ``name="units"`` or ``name=("column", "verb")``."""
    if not columns:
        shown = examples(view)["number_name"]
        raise PlanError(
            f"agg: name at least one column, as in agg(n='count', m=({shown}, 'mean')) or agg({{{shown}: 'mean'}})"
        )
    specs: list[Spec] = []
    for name, spec in columns.items():
        if isinstance(spec, str):
            specs.append((name, None, spec))
            continue
        if not isinstance(spec, tuple) or len(spec) != 2 or not (isinstance(spec[1], str) or callable(spec[1])):
            raise PlanError(f"agg: {name} must be 'count', 'units' or a pair (column, verb); got {spec!r}")
        verb = verb_name(spec[1])
        if verb == "nunique" and isinstance(spec[0], str) and spec[0] == view.unit:
            specs.append((name, None, "units"))
            continue
        node = node_of(view, spec[0], "agg")
        specs.append((name, Series(view, node)._agg_node(verb), verb))
    if weights is not None and not isinstance(weights, Mapping):
        raise PlanError(f"weights: must map columns of agg to numbers; got {weights!r}")
    checked = {name: number(weight, f"weights[{name!r}]") for name, weight in (weights or {}).items()}
    for name, weight in checked.items():
        if name not in columns:
            raise PlanError(f"weights: {name!r} is not a column of this agg; its columns are {', '.join(columns)}")
        if not 2.0**-20 <= weight <= 2.0**20:
            raise PlanError(
                f"weights: must lie between 2**-20 and 2**20; got {weight!r} for {name!r}; 1 is the default"
            )
    return joint_aggregation(specs, checked)
