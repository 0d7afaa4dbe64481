"""A view of a private table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, NoReturn, TypeVar

from dpnb.copying import NotCopyable
from dpnb.errors import PlanError
from dpnb.query.aggregations import AnyView, Count, Discovery, FromMoments, Measured, Moments, Plain
from dpnb.query.expressions.kinds import Category, Truth, kind_of
from dpnb.query.expressions.nodes import And, Column, Expression, renamed
from dpnb.query.expressions.words import words
from dpnb.query.frame.expressed import Expressed
from dpnb.query.frame.groupby import GroupBy, aggregated
from dpnb.query.frame.lookup import looked_up
from dpnb.query.frame.model import model_of
from dpnb.query.frame.refusal import Refusing
from dpnb.query.frame.series import Series
from dpnb.query.frame.spelling import as_number, group_key_table, literal, measured
from dpnb.query.join import joined_name, refuse_repeats, schema_of
from dpnb.query.plan import Group, Joined, Plan, Source, check_plan
from dpnb.query.schema import Key, Schema
from dpnb.query.unit import Limits, limits_from

Q = TypeVar("Q")
"""What a finished question becomes; a session makes its queries of it."""


def _no_session(*_: object, **__: object) -> NoReturn:
    raise PlanError("fit: needs a session, which pays for each step; ask session.frame")


@dataclass(frozen=True, eq=False)
class Scope(NotCopyable, Generic[Q]):
    """What all views of one table share.

    Parameters
    ----------
    source : str or Joined
        The table, or join of tables.
    schemas : dict of str to dict
        Of every table of the session.
    unit : str or None
        The column that says whose a row is.
    ask : callable
        Turns a plan and a view into a question; given by the session.
    discovery : callable
        Turns what an analyst gave as ``delta=`` into the plan's text; given by the session.
    fit : callable
        Launches the fit of a regression to some rows; given by the session.
    """

    source: Source
    schemas: dict[str, Schema]
    unit: str | None
    ask: Callable[[Plan, AnyView], Q]
    discovery: Callable[[object], str]
    fit: Callable[..., Any] = _no_session

    def same_table(self, other: Scope[Q]) -> bool:
        """Whether columns of both belong to the same rows: one session, and one table or join."""
        return self.schemas is other.schemas and self.source == other.source

    @property
    def schema(self) -> Schema:
        """Columns of the table or join."""
        return schema_of(self.source, self.schemas)


class Frame(Refusing, Generic[Q]):
    """A view of the private table, used like a pandas DataFrame.  Every verb gives a new view or a question.

    Parameters
    ----------
    scope : Scope
    columns : dict of str to expression, optional
        What the view's columns are; the declared ones if left out.
    where : expression, optional
        Rows of the view.
    limits : Limits
        Of a unit's contribution, besides the session's.
    """

    __slots__ = ("_columns", "_limits", "_schema", "_scope", "_where")

    def __init__(
        self,
        scope: Scope[Q],
        columns: dict[str, Expression] | None = None,
        where: Expression | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._scope = scope
        self._schema = scope.schema
        self._columns = {name: Column(name) for name in self._schema} if columns is None else columns
        self._where = where
        self._limits = limits or Limits()

    def _with(self, **changes: Any) -> Frame[Q]:
        kept = {"columns": self._columns, "where": self._where, "limits": self._limits}
        return Frame(self._scope, **{**kept, **changes})

    @property
    def columns(self) -> list[str]:
        """Names of the view's columns."""
        return list(self._columns)

    def __getitem__(self, key: Any) -> Any:
        """A column by name, a view of some columns, or the rows for which a condition is true."""
        if isinstance(key, Expressed):
            self._same_rows(key, "df[mask]")
            if not isinstance(kind_of(key._node, self._schema), Truth):
                raise PlanError(f"df[{words(key._node)}]: rows are chosen by a condition, such as df['x'] > 1")
            return self._with(where=key._node if self._where is None else And(self._where, key._node))
        if isinstance(key, list):
            return self._with(columns={name: self._column(name) for name in key})
        return Series(self, self._column(key))

    def _column(self, name: object) -> Expression:
        if isinstance(name, str) and name in self._columns:
            return self._columns[name]
        raise PlanError(f"column {name!r}: not in this view; its columns are {', '.join(map(repr, self._columns))}")

    def assign(self, **columns: Any) -> Frame[Q]:
        """Add columns: expressions of columns, constants, or functions of the view that give one, as in pandas.

        Raises
        ------
        PlanError
            A column has no meaning, or comes from another table.
        """
        view = self
        for name, given in columns.items():
            value = given(view) if callable(given) and not isinstance(given, Expressed) else given
            if isinstance(value, Expressed):
                self._same_rows(value, "assign")
                node = value._node
            else:
                node = literal(value, f"assign: {name}")
            view = view._with(columns={**view._columns, name: node})
        return view

    def limit(
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
        limits = limits_from(
            rows=max_rows_per_unit,
            groups=max_groups_per_unit,
            rows_per_group=max_rows_per_group,
            norm=max_norm_per_unit,
        )
        return self._with(limits=self._limits.tightened(limits))

    def merge(
        self,
        right: Any,
        on: str | list[str] | None = None,
        how: str = "inner",
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
        if isinstance(right, Frame):
            return self._joined(right, on, how, suffixes)
        added, found = looked_up(right, on, how, self._columns, suffixes, self._schema)
        where = self._where if found is None else found if self._where is None else And(self._where, found)
        return self._with(columns=added, where=where)

    def _joined(self, right: Frame[Q], on: object, how: str, suffixes: tuple[str, str]) -> Frame[Q]:
        scope, other = self._scope, right._scope
        if other.schemas is not scope.schemas:
            raise PlanError("merge: both tables must be of one session, since they share one budget")
        if how != "inner" or scope.unit is None or on not in (scope.unit, [scope.unit]):
            raise PlanError(
                f"merge: private tables are joined by how='inner' on their privacy unit, {scope.unit or 'one row'}; "
                f"got how={how!r}, on={on!r}; compare further columns afterwards, as in df[df['a_x'] == df['a_y']]"
            )
        if self._limits != Limits() or right._limits != Limits():
            raise PlanError("merge: .limit() the join, not the tables that go into it")
        source = Joined(scope.source, other.source, (suffixes[0], suffixes[1]))
        refuse_repeats(source)
        joined = Scope(source, scope.schemas, scope.unit, scope.ask, scope.discovery, scope.fit)
        columns: dict[str, Expression] = {}
        wheres: list[Expression] = []
        for side, (view, twin) in enumerate(((self, right), (right, self))):
            names = {name: joined_name(name, side, source, twin._schema) for name in view._schema}
            for name, node in view._columns.items():
                new = name + suffixes[side] if name in twin._columns else name
                if new in columns:
                    raise PlanError(f"merge: both tables give a column {new!r}; choose other suffixes=")
                columns[new] = renamed(node, names)
            if view._where is not None:
                wheres.append(renamed(view._where, names))
        where = And(*wheres) if len(wheres) == 2 else wheres[0] if wheres else None
        return Frame(joined, columns, where)

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
        groups = self._groups(by)
        listed = None if keys is None else group_key_table(keys, groups, self._schema)
        # A plan of a count is checked like any other: columns, and that the groups are public.
        check_plan(Plan(measured("count", None)[0], None, groups, listed, source=self._scope.source), self._schema)
        return GroupBy(self, groups, listed)

    def discover(self, by: Any, *, delta: object = None) -> Q:
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
        return self._question(Discovery(self._scope.discovery(delta)), Plain(), self._groups(by))

    def _groups(self, by: Any) -> tuple[Group, ...]:
        levels = by if isinstance(by, list) else [by]
        if not levels:
            raise PlanError("groupby: needs at least one column; got an empty list")
        groups = []
        for level in levels:
            node = self._node(level, "groupby")
            groups.append(Group(level if isinstance(level, str) else self._name(node), node))
        return tuple(groups)

    # --- questions ---------------------------------------------------------------------------------------------

    def count(self) -> Q:
        """Number of rows."""
        return self._question(*measured("count", None))

    def units(self) -> Q:
        """Number of privacy units with at least one row."""
        return self._question(*measured("units", None))

    def agg(self, *others: object, weights: Mapping[str, float] | None = None, **columns: Any) -> Q:
        """Several aggregations in one charge.

        Parameters
        ----------
        weights : mapping of str to float, optional
            How the charge (mu squared) is shared; 1 each if left out.  What two columns have in common (a mean and a
            count of one column) is measured once, with both weights.
        **columns
            ``n="count"`` or ``n="units"``, or ``visits=("mdvis", "mean")`` with ``count``, ``sum``, ``mean``, ``var``,
            ``std``, ``min``, ``median`` or ``max``.

        Raises
        ------
        PlanError
            A column or weight is not of this form.
        """
        return self._question(*aggregated(self, others, columns, weights))

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
        nodes = [self._node(one, "regress") for one in given]
        if len(nodes) < 2 or len(set(nodes)) != len(nodes):
            raise PlanError("regress: on= must name at least one column, and each column may stand once")
        nodes[0] = as_number(nodes[0], self._schema)
        numbers, categories, labels = [nodes[0]], [], [self._name(nodes[0])]
        for node in nodes[1:]:
            kind = kind_of(node, self._schema)
            if isinstance(kind, Category):
                categories.append(node)
                labels += [f"{self._name(node)} == {value!r}" for value in kind.values[1:]]
            elif isinstance(kind, Truth):
                categories.append(node)
                labels.append(self._name(node))
            else:
                numbers.append(node)
                labels.append(self._name(node))
        # In an order of their own: correlations and other regressions of the same columns share the measurement.
        columns, indicators = tuple(sorted(numbers, key=words)), tuple(sorted(categories, key=words))
        places = tuple((*columns, *indicators).index(node) for node in nodes)
        return self._question(Moments(columns, indicators), FromMoments("regression", places, tuple(labels)))

    def fit(
        self,
        outcome: Any,
        *,
        on: Any,
        family: str,
        mu: Any,
        steps: int,
        name: str | None = None,
        clip: Any = 1.0,
        learning_rate: Any = None,
        chains: int = 8,
        size: int | None = None,
        check_every: int | None = None,
        check_mu: Any = None,
        patience: int = 2,
        start: Any = None,
        dry_run: bool = False,
    ) -> Any:
        """Launch the fit of a regression by noisy gradients (Feldman and Zrnic 2021, Algorithms 6 and 7).

        Nothing is charged now; ``.step()`` and ``.run()`` of what this returns are charged step by step.

        A step releases the sum of all units' gradients, each scaled down to a norm of `clip`, with noise added once to
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
        clip : Number
            The norm to which a unit's gradient, summed over its rows, is scaled down, in the scaled columns' units.
        learning_rate : Number, optional
            If left out, one at which no descent can overshoot, whatever the rows are.  It is slow where most rows are
            far from their bounds, above all for ``"poisson"``: take a larger one then.
        chains : int
            Independent descents side by side, for intervals that cover the noise.  The cost does not depend on it.
        size : int, optional
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
        nodes = [self._node(one, "fit") for one in (outcome, *(on if isinstance(on, list) else [on]))]
        model, terms = model_of(nodes[0], nodes[1:], family, self._schema, self._name)
        rows = Plan(Count(), self._where, limits=self._limits, source=self._scope.source)
        given = {"clip": clip, "learning_rate": learning_rate, "chains": chains, "size": size, "start": start}
        checks = {"check_every": check_every, "check_mu": check_mu, "patience": patience}
        return self._scope.fit(rows, model, terms, name=name, mu=mu, steps=steps, dry_run=dry_run, **given, **checks)

    def _node(self, one: object, verb: str) -> Expression:
        """The expression of a column that is given by name or as a column of this table."""
        if not isinstance(one, Expressed):
            return self._column(one)
        self._same_rows(one, verb)
        return one._node

    def _same_rows(self, other: Expressed, verb: str) -> None:
        """Refuse a column of other rows: of another table, or of a view that another filter made.

        A column of the whole table goes with any view of it, since its filter is no more than this view's.
        """
        theirs = other._frame
        if not theirs._scope.same_table(self._scope):
            raise PlanError(f"{verb}: {other!r} must come from the same table; .merge() the tables of a session first")
        if theirs._where not in (None, self._where) or theirs._limits not in (Limits(), self._limits):
            raise PlanError(
                f"{verb}: {other!r} is of other rows than this view's; filter once, as in some = df[df['x'] > 1], and "
                "take both columns from some"
            )

    def _name(self, node: Expression) -> str:
        """What this view calls an expression; the expression in words if it has no name."""
        return next((name for name, own in self._columns.items() if own == node), words(node))

    def _question(
        self,
        aggregation: Measured,
        view: AnyView,
        by: tuple[Group, ...] = (),
        keys: tuple[tuple[Key, ...], ...] | None = None,
    ) -> Q:
        plan = Plan(aggregation, self._where, by, keys, self._limits, self._scope.source)
        check_plan(plan, self._schema)
        return self._scope.ask(plan, view)

    def _said(self) -> str:
        return "private table"

    def __repr__(self) -> str:
        where = "" if self._where is None else f" where {words(self._where)}"
        return f"<private table: {', '.join(self._columns)}{where}>"
