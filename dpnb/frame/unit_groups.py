"""A view grouped by its privacy unit: one row per unit, and values that are computed from the rows of one unit.

Both are computed from the rows of one unit alone, so they are as private as the rows; see `dpnb._compile.within`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

from dpnb._plan.expressions.dtypes import Boolean
from dpnb._plan.expressions.nodes import (
    Arithmetic,
    AsNumber,
    Compare,
    Expression,
    FillNull,
    Literal,
    WithinFunction,
)
from dpnb._plan.expressions.rules import dtype_of
from dpnb._plan.expressions.text import words
from dpnb._plan.plan import GroupLevel
from dpnb._plan.suggestions import did_you_mean
from dpnb.copying import safe_repr
from dpnb.errors import PlanError, UnsupportedError
from dpnb.frame.coerce import as_number
from dpnb.frame.columns.column_expr import node_of
from dpnb.frame.columns.series import Series
from dpnb.frame.compatibility.examples import examples
from dpnb.frame.compatibility.options import AGGREGATION, check_options
from dpnb.frame.compatibility.unsupported import NoOperators, UnsupportedOperations
from dpnb.frame.compatibility.verbs import Pipe, verb_name
from dpnb.frame.view import TableView, UnitRows
from dpnb.schema import whole_number

F = TypeVar("F")
"""The type of frames."""

ROW = Literal(True)
"""The argument of a number of rows."""

STATISTICS = ("sum", "mean", "min", "max", "count", "size", "nunique", "first", "last", "any", "all")
"""The statistics of a unit's rows."""


class _OfUnits(UnsupportedOperations, Generic[F]):
    """What is grouped by the privacy unit, and possibly by further keys."""

    __slots__ = ("_by", "_frame", "_view")

    def __init__(self, view: TableView, by: tuple[GroupLevel, ...], frame: Callable[[TableView], F]) -> None:
        self._view, self._by, self._frame = view.as_table(), by, frame

    @property
    def _keys(self) -> tuple[Expression, ...]:
        return tuple(level.expression for level in self._by)

    def _examples(self) -> dict[str, str]:
        return examples(self._view)

    @property
    def _levels(self) -> str:
        return ", ".join([str(self._view.unit), *(level.name for level in self._by)])

    def _within(self, function: WithinFunction, node: Expression = ROW, **options: Any) -> Expression:
        return self._view.within(function, node, keys=self._keys, **options)

    def _refuse_no_order(self, verb: str) -> None:
        if not self._view.order:
            column = self._examples()["number_name"]
            raise PlanError(
                f"{verb}: depends on the order of a unit's rows; sort them first, as in "
                f"df.sort_values({column}).groupby({self._view.unit!r}).{verb}(...)"
            )

    def _rows(self, rows: int = 1, *, last: bool = False) -> UnitRows:
        view, down = self._view, self._view.descending or (False,) * len(self._view.order)
        descending = tuple(one is not last for one in down) if last else self._view.descending
        return UnitRows(view.where, self._keys, view.order, descending, rows)

    def _per_unit(self, columns: Mapping[str, Expression], rows: UnitRows | None = None) -> TableView:
        """The view with one row per unit and keys, and the keys as its first columns."""
        one = UnitRows(self._view.where, self._keys) if rows is None else rows
        keys = {level.name: level.expression for level in self._by}
        return self._view.of_rows_per_unit({**keys, **columns}, one)

    def _statistic(self, verb: str, node: Expression) -> Expression:
        """A statistic of the rows of each unit and keys."""
        schema = self._view.schema
        is_condition = isinstance(dtype_of(node, schema), Boolean)
        match verb:
            case "size":
                return self._within("size")
            case "count":
                return self._within("count", node)
            case "sum" | "mean" | "min" | "max":
                return self._within(verb, as_number(node, schema))
            case "nunique":
                return self._within("nunique", AsNumber(node) if is_condition else node)
            case "first" | "last":
                self._refuse_no_order(verb)
                return self._condition_or_value(verb, node)
            case "any" | "all" if is_condition:
                extreme = self._within("max" if verb == "any" else "min", AsNumber(node))
                return FillNull(Compare("==", extreme, Literal(1)), verb == "all")
            case "any" | "all":
                raise PlanError(f"{verb}: needs a condition, such as {words(node)} > 0; {words(node)} is none")
        raise PlanError(
            f"agg: {verb!r} of the rows of one {self._view.unit} is not offered{did_you_mean(verb, STATISTICS)}; use "
            f"one of {', '.join(map(repr, STATISTICS))}"
        )

    def _condition_or_value(self, function: WithinFunction, node: Expression, **options: Any) -> Expression:
        """A value of another row of the unit; also of a condition."""
        if isinstance(dtype_of(node, self._view.schema), Boolean):
            return Compare("==", self._within(function, AsNumber(node), **options), Literal(1))
        return self._within(function, node, **options)


class UnitGroupedColumn(_OfUnits[F]):
    """A column of the rows of each privacy unit: ``df.groupby(unit)["x"]``.

    A statistic of a unit's rows is a column with one row per unit; ``.transform``, ``.shift`` and the like are columns
    of the same rows as the table.

    Examples
    --------
    >>> people.groupby("person")["cost"].sum().mean().description
    'mean of cost in one row for each unit (cost (made from cost.sum() within each unit))'
    >>> (people["cost"] - people.groupby("person")["cost"].transform("mean")).std().description
    'sample standard deviation of cost - (cost.mean() within each unit)'
    """

    __slots__ = ("_node",)

    def __init__(self, groups: _OfUnits[F], node: Expression) -> None:
        self._node = node
        super().__init__(groups._view, groups._by, groups._frame)

    def _description(self) -> str:
        return f"private column {words(self._node)} by {self._levels}"

    @safe_repr
    def __repr__(self) -> str:
        return f"<{self._description()}>"

    def _of_unit(self, verb: str, options: Mapping[str, object]) -> Series:
        check_options(verb, options, self._examples(), *AGGREGATION)
        node = self._statistic(verb, self._node)
        return Series(self._per_unit({self._view.name_of(self._node): node}), node)

    def _of_row(self, node: Expression) -> Series:
        return Series(self._view, node)

    # --- one value for each unit -------------------------------------------------------------------------------

    def sum(self, **options: object) -> Series:
        """Sum over the rows of each unit, 0 without a value; bounded by the number of rows that a unit may have."""
        return self._of_unit("sum", options)

    def mean(self, **options: object) -> Series:
        """Mean of the rows of each unit; missing without a value."""
        return self._of_unit("mean", options)

    def min(self, **options: object) -> Series:
        """Smallest value of each unit; missing without a value."""
        return self._of_unit("min", options)

    def max(self, **options: object) -> Series:
        """Largest value of each unit; missing without a value."""
        return self._of_unit("max", options)

    def count(self, **options: object) -> Series:
        """Number of rows of each unit with a value."""
        return self._of_unit("count", options)

    def size(self) -> Series:
        """Number of rows of each unit."""
        return self._of_unit("size", {})

    def nunique(self, **options: object) -> Series:
        """Number of different values of each unit."""
        return self._of_unit("nunique", options)

    def any(self, **options: object) -> Series:
        """Whether a condition is true in at least one row of the unit."""
        return self._of_unit("any", options)

    def all(self, **options: object) -> Series:
        """Whether a condition is true in all rows of the unit in which it is known."""
        return self._of_unit("all", options)

    def first(self, **options: object) -> Series:
        """First value of each unit that is not missing, in the order of ``sort_values``."""
        return self._of_unit("first", options)

    def last(self, **options: object) -> Series:
        """Last value of each unit that is not missing, in the order of ``sort_values``."""
        return self._of_unit("last", options)

    def nth(self, n: int) -> Series:
        """Value of the row of each unit with a number, from 0, or from -1 for the last row; missing without such a row.

        Parameters
        ----------
        n : int
            Number of the row in the order of ``sort_values``.
        """
        self._refuse_no_order("nth")
        place = _whole(n, "nth")
        node = self._condition_or_value("nth", self._node, offset=place)
        return Series(self._per_unit({self._view.name_of(self._node): node}), node)

    def agg(self, func: object = None, **named: object) -> Any:
        """One statistic of each unit by name, or several as a `Frame`.

        Parameters
        ----------
        func : str, or list of str
            One of "sum", "mean", "min", "max", "count", "size", "nunique", "first", "last", "any", "all".
        **named
            Names of columns, and their statistics.
        """
        if func is not None and not isinstance(func, list | tuple):
            return self._of_unit(_verb(func), {})
        verbs = {_verb(verb): verb for verb in func} if func is not None else named
        if not verbs:
            raise PlanError("agg: names at least one statistic, as in .agg(['sum', 'max'])")
        return self._frame(
            self._per_unit({name: self._statistic(_verb(verb), self._node) for name, verb in verbs.items()})
        )

    aggregate = agg

    # --- one value for each row --------------------------------------------------------------------------------

    def transform(self, func: object, *args: object, **options: object) -> Series:
        """A statistic of each unit beside each of its rows, as in ``transform("mean")``.

        Parameters
        ----------
        func : str
            A statistic of :meth:`agg`, or the name of a method such as "cumsum".
        *args, **options
            Arguments of that method.
        """
        if not isinstance(func, str) and callable(func) and getattr(func, "__name__", "") == "<lambda>":
            raise UnsupportedError(
                "transform: takes the name of a statistic, since functions would run Python on private rows; write "
                + self._example("{number} - ")
                + f"df.groupby({self._view.unit!r})[...].transform('mean')"
            )
        verb = _verb(func)
        if verb in ("shift", "diff", "pct_change", "cumsum", "cummax", "cummin", "cumcount", "rank", "ffill"):
            method: Callable[..., Series] = getattr(self, verb)
            return method(*args, **options)
        check_options("transform", options, self._examples(), *AGGREGATION)
        return self._of_row(self._statistic(verb, self._node))

    def shift(self, periods: int = 1) -> Series:
        """Value of the row before, in the order of ``sort_values``; missing in the first row of a unit.

        Parameters
        ----------
        periods : int, default 1
            How many rows before; negative for rows after.
        """
        self._refuse_no_order("shift")
        rows = _whole(periods, "shift")
        return self._of_row(self._condition_or_value("shift", self._node, offset=rows))

    def diff(self, periods: int = 1) -> Series:
        """Difference to the row before, in the order of ``sort_values``.

        Parameters
        ----------
        periods : int, default 1
            How many rows before.
        """
        self._refuse_no_order("diff")
        number = as_number(self._node, self._view.schema)
        return self._of_row(Arithmetic("-", number, self._within("shift", number, offset=_whole(periods, "diff"))))

    def pct_change(self, periods: int = 1) -> Series:
        """Relative change since the row before, for a column whose bounds exclude 0.

        Parameters
        ----------
        periods : int, default 1
            How many rows before.
        """
        self._refuse_no_order("pct_change")
        number = as_number(self._node, self._view.schema)
        before = self._within("shift", number, offset=_whole(periods, "pct_change"))
        return self._of_row(Arithmetic("-", Arithmetic("/", number, before), Literal(1)))

    def cumsum(self) -> Series:
        """Sum of the row and those before it, in the order of ``sort_values``."""
        self._refuse_no_order("cumsum")
        return self._of_row(self._within("cumsum", as_number(self._node, self._view.schema)))

    def cummax(self) -> Series:
        """Largest value of the row and those before it, in the order of ``sort_values``."""
        self._refuse_no_order("cummax")
        return self._of_row(self._within("cummax", as_number(self._node, self._view.schema)))

    def cummin(self) -> Series:
        """Smallest value of the row and those before it, in the order of ``sort_values``."""
        self._refuse_no_order("cummin")
        return self._of_row(self._within("cummin", as_number(self._node, self._view.schema)))

    def cumcount(self) -> Series:
        """Number of rows of the unit before the row, in the order of ``sort_values``."""
        self._refuse_no_order("cumcount")
        return self._of_row(self._within("number", ordered=True))

    def rank(self, method: str = "average", ascending: bool = True) -> Series:
        """Rank of the value among those of its unit, from 1; equal values have their average rank.

        Parameters
        ----------
        method : {"average"}
            Other treatments of equal values are not offered.
        ascending : bool, default True
            Must be True.
        """
        if method != "average" or ascending is not True:
            raise PlanError(f"rank: takes method='average' and ascending=True; got {method!r} and {ascending!r}")
        return self._of_row(self._within("rank", as_number(self._node, self._view.schema)))

    def ffill(self) -> Series:
        """The value, or the last one before it that is not missing, in the order of ``sort_values``."""
        self._refuse_no_order("ffill")
        return self._of_row(self._condition_or_value("ffill", self._node))

    def rolling(self, window: int, min_periods: int | None = None) -> Rolling:
        """The last rows of each unit up to each row, in the order of ``sort_values``.

        Parameters
        ----------
        window : int
            Number of rows.
        min_periods : int, optional
            Number of values that are needed; by default `window`.
        """
        self._refuse_no_order("rolling")
        rows = _whole(window, "rolling")
        least = rows if min_periods is None else _whole(min_periods, "min_periods")
        if not 1 <= least <= rows:
            raise PlanError(
                f"rolling: window must be at least 1, and min_periods from 1 to window; got {window!r}, {min_periods!r}"
            )
        return Rolling(self, rows, least)


class Rolling(UnsupportedOperations):
    """The last rows of each privacy unit up to each row."""

    __slots__ = ("_column", "_least", "_window")

    def __init__(self, column: UnitGroupedColumn[Any], window: int, least: int) -> None:
        self._column, self._window, self._least = column, window, least

    def _description(self) -> str:
        return f"last {self._window} rows of {self._column._description()}"

    def _of(self, function: WithinFunction) -> Series:
        number = as_number(self._column._node, self._column._view.schema)
        return self._column._of_row(self._column._within(function, number, offset=self._window, least=self._least))

    def sum(self) -> Series:
        """Sum of these rows."""
        return self._of("rolling_sum")

    def mean(self) -> Series:
        """Mean of these rows."""
        return self._of("rolling_mean")


class UnitGroupBy(Pipe, NoOperators, _OfUnits[F]):
    """A view grouped by its privacy unit, and possibly by further public keys.

    Aggregations give a `Frame` with one row for each unit, or for each unit and keys; its unit's name is no column.

    Examples
    --------
    >>> spent = people.groupby("person").agg(total=("cost", "sum"), n=("cost", "size"))
    >>> spent
    <private table: total, n>
    >>> spent["total"].mean().explain().sensitivity
    """

    __slots__ = ()

    def _description(self) -> str:
        return f"rows by {self._levels}"

    @safe_repr
    def __repr__(self) -> str:
        return f"<private table by {self._levels}>"

    def _column_named(self, name: str) -> UnitGroupedColumn[F] | None:
        return self[name] if name in self._view.columns else None  # type: ignore[return-value]  # a name

    def _column_names(self) -> list[str]:
        return list(self._view.columns)

    if TYPE_CHECKING:  # what `UnsupportedOperations.__getattr__` finds

        def __getattr__(self, name: str) -> UnitGroupedColumn[F]: ...

    def __getitem__(self, name: object) -> UnitGroupedColumn[F] | UnitGroupBy[F]:
        """Select a column by its name, or several."""
        if isinstance(name, list) and name:
            chosen = {one: self._view.column(one) for one in name}
            return UnitGroupBy(replace(self._view, assigned=chosen), self._by, self._frame)
        return UnitGroupedColumn(self, self._view.column(name))

    def size(self) -> Series:
        """Number of rows of each unit: ``df.groupby(unit).size().value_counts()``."""
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
        return self._statistic(_verb(spec[1]), node_of(self._view, spec[0], "agg"))

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

    def sum(self, **options: object) -> F:
        """Sum of each numeric column over the rows of each unit."""
        return self._each("sum", options)

    def mean(self, **options: object) -> F:
        """Mean of each numeric column over the rows of each unit."""
        return self._each("mean", options)

    def min(self, **options: object) -> F:
        """Smallest value of each numeric column over the rows of each unit."""
        return self._each("min", options)

    def max(self, **options: object) -> F:
        """Largest value of each numeric column over the rows of each unit."""
        return self._each("max", options)

    def count(self, **options: object) -> F:
        """Number of values of each column in the rows of each unit."""
        return self._each("count", options)

    def nunique(self, **options: object) -> F:
        """Number of different values of each column in the rows of each unit."""
        return self._each("nunique", options)

    def first(self, **options: object) -> F:
        """First value of each column that is not missing, in the order of ``sort_values``."""
        return self._each("first", options)

    def last(self, **options: object) -> F:
        """Last value of each column that is not missing, in the order of ``sort_values``."""
        return self._each("last", options)

    def head(self, n: int = 5) -> F:
        """The first rows of each unit, in the order of ``sort_values``.

        Parameters
        ----------
        n : int, default 5
            Number of rows.
        """
        self._refuse_no_order("head")
        return self._frame(self._per_unit(self._view.columns, self._rows(_rows_from(n, "head"))))

    def tail(self, n: int = 5) -> F:
        """The last rows of each unit, in the order of ``sort_values``.

        Parameters
        ----------
        n : int, default 5
            Number of rows.
        """
        self._refuse_no_order("tail")
        return self._frame(self._per_unit(self._view.columns, self._rows(_rows_from(n, "tail"), last=True)))

    def nth(self, n: int) -> F:
        """The first row (0) or the last row (-1) of each unit, in the order of ``sort_values``.

        Parameters
        ----------
        n : {0, -1}
            Number of the row.
        """
        self._refuse_no_order("nth")
        if _whole(n, "nth") not in (0, -1):
            raise PlanError(f"nth: takes 0 or -1 for rows; got {n!r}; a column has every .nth(n)")
        return self._frame(self._per_unit(self._view.columns, self._rows(last=n == -1)))

    def cumcount(self) -> Series:
        """Number of rows of the unit before each row, in the order of ``sort_values``."""
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
            named |= {f"{name}_{_verb(verb)}": (name, verb) for verb in verbs}
        else:
            named[str(name)] = (name, verbs)
    return named


def _verb(verb: object) -> str:
    return verb if isinstance(verb, str) else verb_name(verb)


def _whole(value: object, verb: str) -> int:
    rows = whole_number(value)
    if rows is None:
        _refuse_rows(value, verb)
    return rows


def _rows_from(value: object, verb: str) -> int:
    rows = _whole(value, verb)
    return rows if rows >= 1 else _refuse_rows(value, verb)


def _refuse_rows(value: object, verb: str) -> NoReturn:
    raise PlanError(f"{verb}: takes a whole number of rows; got {value!r}")
