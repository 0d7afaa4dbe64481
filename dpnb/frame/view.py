"""The rows and columns of a private table that are selected: a frozen value that frames, series and groups share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from typing import Any, NoReturn

import msgspec

from dpnb._plan.expressions.nodes import And, Column, Compare, Expression, Literal, WithinFunction, WithinUnit, renamed
from dpnb._plan.expressions.substitution import Substitution
from dpnb._plan.expressions.text import words
from dpnb._plan.expressions.within import WITHIN_RULES
from dpnb._plan.join import joined_name, refuse_repeats, schema_of, unit_of
from dpnb._plan.measurements import AnyView, Count, Measured
from dpnb._plan.plan import GroupLevel, Join, PerUnit, Plan, TableSource, group_keys
from dpnb._plan.privacy_unit import ContributionBounds, PrivacyUnit
from dpnb._plan.unreleased import did_you_mean
from dpnb.copying import NotCopyable
from dpnb.errors import PlanError, printable
from dpnb.frame.compatibility.examples import examples
from dpnb.interactive.gradient_descent import GradientDescent
from dpnb.query.query import Query
from dpnb.results.display import Explanation
from dpnb.schema import Key, Schema


def _no_session(*_: object, **__: object) -> NoReturn:
    raise PlanError("fit: needs a session, which is charged for each step; use session.frame")


@dataclass(frozen=True)
class UnitRows:
    """The first rows of each privacy unit, and of each combination of keys, that a view has."""

    where: Expression | None
    keys: tuple[Expression, ...] = ()
    order: tuple[Expression, ...] = ()
    descending: tuple[bool, ...] = ()
    rows: int = 1


class MissingColumnError(PlanError, KeyError):
    """A column that a table does not have.

    Also a `KeyError`: patsy looks up each name of a formula in the table first, also `C` and `np`.
    """

    def __str__(self) -> str:
        return printable(str(self.args[0]))  # not quoted, as the text of a `KeyError` is


MissingColumnError.__name__ = MissingColumnError.__qualname__ = PlanError.__name__  # what an analyst is shown
MissingColumnError.__module__ = PlanError.__module__


@dataclass(frozen=True, eq=False)
class TableView(NotCopyable):
    """A view of a private table, and the session's functions that make queries from it."""

    source: TableSource
    schemas: dict[str, Schema]  # of all tables of the session, by name
    units: dict[str, PrivacyUnit]  # of all tables of the session
    # turns a plan and a view into a query; this and the next two are supplied by the session
    make_query: Callable[[Plan, AnyView], Query]
    discovery: Callable[[object], str]  # turns the analyst's ``discovery_delta=`` into the plan's text
    fit: Callable[..., GradientDescent | Explanation] = _no_session  # launches the fit of a regression to some rows
    assigned: Mapping[str, Expression] | None = None  # the view's columns; by default the declared ones
    where: Expression | None = None  # selects the rows of the view; None for all rows
    limits: ContributionBounds = field(default_factory=ContributionBounds)  # in addition to the session's
    order: tuple[Expression, ...] = ()  # in which the rows of a unit are, where that matters
    descending: tuple[bool, ...] = ()
    # The view has only these rows; its expressions are still of the table's columns, and `where` selects among them.
    per_unit: UnitRows | None = None

    @property
    def unit(self) -> str | None:
        """The column that identifies the privacy unit of a row."""
        return next(iter(self.units.values())).column

    @property
    def max_rows(self) -> int | None:
        """Largest number of rows of a unit in the table; None if nothing bounds it."""
        return unit_of(self.source, self.units, self.schemas).max_rows

    def within(self, function: WithinFunction, node: Expression, **options: Any) -> WithinUnit:
        """A value that is computed from the rows of one unit in this view."""
        rule, where = WITHIN_RULES[function], Literal(True) if self.where is None else self.where
        ordered = rule.needs_order or options.pop("ordered", False)
        order, descending = (self.order, self.descending) if ordered else ((), ())
        rows = None if rule.bounds == "argument" else self.max_rows
        return WithinUnit(function, node, rows, where, order=order, descending=descending, **options)

    def _is_unit(self, name: object) -> bool:
        return isinstance(name, str) and name == self.unit

    def sorted_by(self, names: list[Any], descending: list[bool]) -> TableView:
        """The same rows, those of each unit in another order; the unit itself has one value in them."""
        by = [(one, down) for one, down in zip(names, descending, strict=True) if not self._is_unit(one)]
        down = tuple(one for _, one in by)
        return replace(self, order=tuple(self.column(name) for name, _ in by), descending=down if any(down) else ())

    def of_rows_per_unit(self, columns: Mapping[str, Expression], rows: UnitRows) -> TableView:
        """The view of some rows of each unit, with other columns."""
        if self.limits != ContributionBounds():
            raise PlanError("groupby: call .bound_contributions() on the result, not on the rows that are grouped")
        return replace(self, assigned=columns, where=None, order=(), descending=(), per_unit=rows)

    def as_table(self) -> TableView:
        """The same rows and columns as those of a separate table, if these are some rows of each unit."""
        if self.per_unit is None:
            return self
        rows = self.per_unit
        levels = tuple(GroupLevel(name, node) for name, node in self.columns.items())
        by = rows.where, rows.keys, rows.order, rows.descending, rows.rows
        if self.where is None:
            return replace(self, source=PerUnit(self.source, levels, *by), assigned=None, per_unit=None)
        chosen = name_not_in(self.columns)
        source = PerUnit(self.source, (*levels, GroupLevel(chosen, self.where)), *by)
        assigned = {name: Column(name) for name in self.columns}
        where = Compare("==", Column(chosen), Literal(True))
        return replace(self, source=source, assigned=assigned, where=where, per_unit=None)

    def as_table_with(self, nodes: list[Expression]) -> tuple[TableView, list[Expression]]:
        """`as_table`, and some expressions of this view as its columns."""
        if self.per_unit is None:
            return self, nodes
        names = [self.name_of(node) for node in nodes]
        view = replace(self, assigned=dict(zip(names, nodes, strict=True))).as_table()
        return view, [view.column(name) for name in names]

    def level_of_table(self, node: Expression) -> tuple[TableSource, GroupLevel]:
        """`as_table`, and a level of groups for one of its columns; for a partition, whose parts are not filtered."""
        name = self.name_of(node)
        if self.where is not None or name not in self.columns:
            raise PlanError(f"partition: takes a column of all rows; got {words(node)}; filter or compute in the parts")
        return self.as_table().source, GroupLevel(name, Column(name))

    @cached_property
    def schema(self) -> Schema:
        """Columns of the table or join."""
        return schema_of(self.source, self.schemas)

    @cached_property
    def columns(self) -> Mapping[str, Expression]:
        """Columns of the view."""
        return {name: Column(name) for name in self.schema} if self.assigned is None else self.assigned

    def column(self, name: object) -> Expression:
        """The expression of one column."""
        if isinstance(name, str) and name in self.columns:
            return self.columns[name]
        if isinstance(name, str) and name == self.unit:
            raise PlanError(
                f"column {name!r}: identifies the privacy unit, so its values are never shown and cannot be groups; "
                "df.count_units() counts the units, and df.groupby(...).count_units() those of each group"
            )
        listed = f"; its columns are {', '.join(map(repr, self.columns))}"
        shown = getattr(name, "__name__", name)  # a function by its name, not by its address
        is_declared = not isinstance(name, str) or name in self.schema
        more = "" if is_declared else "; what is not declared can be added to schema= at any time"
        raise MissingColumnError(
            f"column {shown!r}: not in this view{did_you_mean(name, self.columns) or listed}{more}"
        )

    def name_of(self, node: Expression) -> str:
        """Name of an expression in this view; the expression in words if it has none."""
        return next((name for name, own in self.columns.items() if own == node), words(node))

    def filtered(self, condition: Expression) -> TableView:
        """The rows of this view for which a condition is true."""
        return replace(self, where=condition if self.where is None else And(self.where, condition))

    def refuse_other_rows(self, other: TableView, column: object, verb: str) -> None:
        """Refuse a column of other rows: of another table, or of a view with another filter.

        A column of the whole table is accepted in any view of it: an absent filter is implied by this view's.
        """
        same_rows = other.source == self.source and other.per_unit == self.per_unit
        if other.schemas is not self.schemas or not same_rows:
            raise PlanError(f"{verb}: {column!r} must come from the same table; .merge() tables of a session first")
        if other.where not in (None, self.where) or other.limits not in (ContributionBounds(), self.limits):
            raise PlanError(
                f"{verb}: {column!r} has other rows than this view; filter once, as in "
                f"some = df[{examples(self)['number']} > 1], and take both columns from some"
            )

    def plan(
        self, aggregation: Measured, by: tuple[GroupLevel, ...] = (), keys: tuple[tuple[Key, ...], ...] | None = None
    ) -> Plan:
        """The plan of a measurement of these rows, not yet checked."""
        if self.per_unit is None:
            return Plan(aggregation, self.where, by, keys, self.limits, self.source)
        rows, columns = self.per_unit, _UnitColumns(self.columns)
        columns.of(tuple(self.columns.values()))  # first, so that queries of this view have the same table
        aggregation, where, by = columns.of((aggregation, self.where, by))
        levels = tuple(GroupLevel(name, node) for name, node in columns.named.items())
        source = PerUnit(self.source, levels, rows.where, rows.keys, rows.order, rows.descending, rows.rows)
        return Plan(aggregation, where, by, keys, self.limits, source)

    def number_of_groups(self, by: tuple[GroupLevel, ...], keys: tuple[tuple[Key, ...], ...] | None = None) -> int:
        """Number of groups, with and without rows."""
        return len(group_keys(Plan(Count(), None, by, keys), self.schema))

    def query(
        self,
        aggregation: Measured,
        view: AnyView,
        by: tuple[GroupLevel, ...] = (),
        keys: tuple[tuple[Key, ...], ...] | None = None,
    ) -> Query:
        """A checked query on these rows."""
        return self.make_query(self.plan(aggregation, by, keys), view)

    def joined(self, other: TableView, on: object, how: str, suffixes: tuple[str, str]) -> TableView:
        """The join with another table of the session on the privacy unit; see `Frame.merge`."""
        if other.schemas is not self.schemas:
            raise PlanError("merge: both tables must belong to the same session, since they share one budget")
        if self.unit is None:
            raise PlanError(
                "merge: private tables are joined on the column of their privacy unit, and here each row is a unit; "
                "join a public table, with df.merge(public_table, on=...)"
            )
        if how != "inner" or on not in (self.unit, [self.unit]):
            raise PlanError(
                f"merge: private tables are joined with how='inner' on their privacy unit, on={self.unit!r}; "
                f"got how={how!r}, on={on!r}; compare further columns afterwards, as in df[df['a_x'] == df['a_y']]"
            )
        if self.per_unit is not None or other.per_unit is not None:
            return self.as_table().joined(other.as_table(), on, how, suffixes)
        if self.limits != ContributionBounds() or other.limits != ContributionBounds():
            raise PlanError("merge: call .bound_contributions() on the join, not on the tables that are joined")
        source = Join(self.source, other.source, suffixes)
        refuse_repeats(source)
        columns: dict[str, Expression] = {}
        wheres: list[Expression] = []
        for side, (view, twin) in enumerate(((self, other), (other, self))):
            names = {name: joined_name(name, side, source, twin.schema) for name in view.schema}
            for name, node in view.columns.items():
                new = name + suffixes[side] if name in twin.columns else name
                if new in columns:
                    raise PlanError(f"merge: the result would have two columns {new!r}; choose other suffixes=")
                columns[new] = renamed(node, names)
            if view.where is not None:
                wheres.append(renamed(view.where, names))
        where = And(*wheres) if len(wheres) == 2 else wheres[0] if wheres else None
        return replace(self, source=source, assigned=columns, where=where)


class _UnitColumns(Substitution):
    """The columns of a table of rows per unit: what expressions read of a row, and values within a unit."""

    def __init__(self, columns: Mapping[str, Expression]) -> None:
        super().__init__(self._column)
        self.named: dict[str, Expression] = {}
        self._names = {_key(node): name for name, node in reversed(list(columns.items()))}

    def _column(self, node: Expression) -> Column | None:
        if not isinstance(node, Column | WithinUnit):
            return None
        name = self._names.setdefault(_key(node), words(node))
        if self.named.get(name, node) != node:
            name = self._names[_key(node)] = name_not_in(self.named, f"{name} ")
        self.named[name] = node
        return Column(name)


def _key(node: Expression) -> bytes:
    return msgspec.json.encode(node)


def name_not_in(names: Collection[str], start: str = "row ") -> str:
    """A name that is not in use."""
    return next(name for number in count(1) if (name := f"{start}{number}") not in names)
