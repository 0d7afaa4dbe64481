"""A view split into groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Never, NoReturn

from dpnb._core.query import Query
from dpnb._plan.constants import number
from dpnb._plan.expressions.nodes import Expression
from dpnb._plan.measurements import AnyView, Measured, PlainView
from dpnb._plan.plan import GroupLevel
from dpnb._plan.schema import Key
from dpnb.copying import safe_repr
from dpnb.errors import PlanError
from dpnb.frame.coerce import Spec, aggregation_for, as_number, joint_aggregation
from dpnb.frame.column_expr import ColumnExpr, node_of
from dpnb.frame.series import Series
from dpnb.frame.unsupported import UnsupportedOperations
from dpnb.frame.view import TableView

Verb = Literal["count", "sum", "mean", "var", "std", "min", "median", "max"]
Aggregated = Literal["count", "units"] | tuple[str | ColumnExpr, Verb]
"""One column of `Frame.agg`."""


class GroupBy(UnsupportedOperations):
    """A view split by the public values of one or more columns; groups without rows are included.

    Examples
    --------
    >>> import dpnb
    >>> session = dpnb.Session.rehearse(
    ...     name="people",
    ...     budget=dpnb.Budget(epsilon=1, delta=1e-6),
    ...     schema={"age": dpnb.Bounded(0, 100), "town": dpnb.Categories(["a", "b"])},
    ... )
    >>> session.frame.groupby("town")["age"].mean().description
    'mean of age by town'
    """

    __slots__ = ("_by", "_keys", "_view")

    def __init__(self, view: TableView, by: tuple[GroupLevel, ...], keys: tuple[tuple[Key, ...], ...] | None) -> None:
        self._view = view
        self._by = by
        self._keys = keys

    def __getitem__(self, name: str) -> GroupedSeries:
        if not isinstance(name, str):
            raise PlanError(
                f"groups[{name!r}]: takes one column name; use .agg(...) for several, and filter before grouping"
            )
        return GroupedSeries(self, self._view.column(name))

    def _ipython_key_completions_(self) -> list[str]:
        return list(self._view.columns)

    def count(self) -> Query:
        """Number of rows in each group, nulls included; the same query as `size`.

        pandas gives the non-null values of each column here: ``groupby(...)["x"].count()`` gives those of one column.
        """
        return self._question(*aggregation_for("count", None))

    def size(self) -> Query:
        """Number of rows in each group, nulls included, as in pandas."""
        return self._question(*aggregation_for("count", None))

    def count_units(self) -> Query:
        """Number of privacy units with at least one row in each group."""
        return self._question(*aggregation_for("units", None))

    def agg(self, *others: Never, weights: Mapping[str, float] | None = None, **columns: Aggregated) -> Query:
        """Several aggregations of each group in one charge; see `Frame.agg`."""
        return self._question(*aggregated(self._view, others, columns, weights))

    def _question(self, aggregation: Measured, view: AnyView) -> Query:
        return self._view.query(aggregation, view, self._by, self._keys)

    def _description(self) -> str:
        return f"groups of {', '.join(repr(group.name) for group in self._by)}"

    @safe_repr
    def __repr__(self) -> str:
        return f"<private table by {', '.join(group.name for group in self._by)}>"


class GroupedSeries(Series):
    """One column of a grouped view: the aggregations of a series, for each group."""

    __slots__ = ("_grouped",)

    def __init__(self, grouped: GroupBy, node: Expression) -> None:
        super().__init__(grouped._view, node)
        self._grouped = grouped

    def _query(
        self,
        aggregation: Measured,
        view: AnyView | None = None,
        by: tuple[GroupLevel, ...] = (),
        keys: tuple[tuple[Key, ...], ...] | None = None,
    ) -> Query:
        del by, keys
        return self._grouped._question(aggregation, view or PlainView())

    def _new(self, node: Expression) -> Any:
        raise PlanError(
            f"{self._description()}: a grouped column can only be aggregated; compute it before "
            "grouping, with .assign()"
        )

    def __getitem__(self, key: object) -> NoReturn:
        raise PlanError(
            f"{self._description()}[...]: filter before grouping, as in df[df['x'] > 1].groupby(...); got {key!r}"
        )

    def value_counts(self, normalize: bool = False, keys: object = None) -> Query:
        """Not offered for groups: group by both columns instead."""
        del normalize, keys
        raise PlanError(
            f"{self._description()}: value_counts is not offered for groups; use groupby([..., column]).count()"
        )

    def histogram(self, bins: object = 10) -> Query:
        """Not offered for groups: group by the bins too."""
        del bins
        raise PlanError(
            f"{self._description()}: histogram is not offered for groups; use "
            "groupby([..., dpnb.cut(column, bins)]).count()"
        )

    def find_bounds(self) -> NoReturn:
        """Not offered for groups: bounds are public for the whole column."""
        raise PlanError(
            f"{self._description()}: find_bounds is not offered for groups, since bounds apply to the whole column; "
            "use df[column].find_bounds(), or filter the rows first"
        )

    def _description(self) -> str:
        return f"private column by {', '.join(group.name for group in self._grouped._by)}"

    @safe_repr
    def __repr__(self) -> str:
        return f"<{self._description()}>"


def aggregated(
    view: TableView, others: tuple[object, ...], columns: Mapping[str, Any], weights: object
) -> tuple[Measured, AnyView]:
    """The joint query of the named columns.

    Raises
    ------
    PlanError
        A column is not written as name="count", name="units" or name=("column", "verb"), or a weight names no column.
    """
    if others or not columns:
        raise PlanError("agg: name at least one column, as in agg(n='count', visits=('mdvis', 'mean'))")
    specs: list[Spec] = []
    for name, spec in columns.items():
        if isinstance(spec, str):
            specs.append((name, None, spec))
            continue
        if not isinstance(spec, tuple) or len(spec) != 2 or not isinstance(spec[1], str):
            raise PlanError(f"agg: {name} must be 'count', 'units' or a pair (column, verb); got {spec!r}")
        node = node_of(view, spec[0], "agg")
        specs.append((name, node if spec[1] == "count" else as_number(node, view.schema), spec[1]))
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
