"""Statistics of the rows of each privacy unit: of one column, of each column of a view, and of the last rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Generic, NoReturn, TypeVar

from dpnb._plan.expressions.dtypes import Boolean
from dpnb._plan.expressions.nodes import AsNumber, Compare, Expression, FillNull, Literal, WithinFunction
from dpnb._plan.expressions.rules import dtype_of
from dpnb._plan.expressions.text import words
from dpnb._plan.plan import GroupLevel
from dpnb._plan.unreleased import did_you_mean
from dpnb.errors import PlanError
from dpnb.frame.coerce import as_number
from dpnb.frame.columns.series import Series
from dpnb.frame.compatibility.calls import OTHER_UNITS, RUNS_CODE
from dpnb.frame.compatibility.examples import order_name
from dpnb.frame.compatibility.functions import verb_name
from dpnb.frame.compatibility.options import Method, describe_options, with_examples
from dpnb.frame.compatibility.unsupported import UnsupportedOperations
from dpnb.frame.view import TableView, UnitRows
from dpnb.schema import whole_number

F = TypeVar("F")
"""The type of frames."""
R = TypeVar("R")
"""The type of statistics: a column, or a table."""

ROW = Literal(True)
"""The argument of a number of rows."""

OF_ROWS = ("shift", "diff", "pct_change", "cumsum", "cummax", "cummin", "cumcount", "rank", "ffill")
"""The values of each row that are computed from the rows of its unit."""

EXAMPLES = {"shift": "1", "nth": "0", "head": "1", "tail": "1", "rolling": "3"}
"""The arguments of methods in examples; others need none."""

STATISTICS = ("sum", "mean", "min", "max", "count", "size", "nunique", "first", "last", "any", "all")
"""The statistics of a unit's rows."""


def _with_examples(column: str, dtype: str, columns: str) -> Callable[[Method], Method]:
    """Add examples to the docstring of a statistic: of a column, with its type, and of a table, with its columns."""

    def decorate(method: Method) -> Method:
        grouped, call = 'people.groupby("person")', f"{method.__name__}()"
        return with_examples(
            (f'{grouped}["{column}"].{call}.dtype', repr(dtype)), (f"{grouped}.{call}", f"<private table: {columns}>")
        )(method)

    return decorate


@describe_options
class UnitStatistics(UnsupportedOperations, Generic[F, R]):
    """What is grouped by the privacy unit, and possibly by further keys."""

    __slots__ = ("_by", "_frame", "_view")

    def __init__(self, view: TableView, by: tuple[GroupLevel, ...], frame: Callable[[TableView], F]) -> None:
        self._view, self._by, self._frame = view.as_table(), by, frame

    @property
    def _keys(self) -> tuple[Expression, ...]:
        return tuple(level.expression for level in self._by)

    def _example(self, template: str) -> str:
        if template.startswith(OTHER_UNITS):  # the reason of refusals without a unit
            offered = ", ".join(f".{name}()" for name in OF_ROWS)
            return f"is not offered for the rows of one {self._view.unit}; a column has {offered}, .rolling(3).mean()"
        if template == RUNS_CODE:
            column = self._selected() or super()._example("[{number_name}]")
            own = f"df.sort_values({order_name(self._view)}).groupby({self._view.unit!r}){column}"
            return (
                f"would run Python on private rows; combine statistics of the rows of one {self._view.unit}, as in "
                f"own = {own} and (own.last() - own.first()).mean(), or values of each row, as in own.diff().mean()"
            )
        return super()._example(template)

    @property
    def _levels(self) -> str:
        return ", ".join([str(self._view.unit), *(level.name for level in self._by)])

    def _within(self, function: WithinFunction, node: Expression = ROW, **options: Any) -> Expression:
        return self._view.within(function, node, keys=self._keys, **options)

    def _refuse_no_order(self, verb: str) -> None:
        if not self._view.order:
            call = f".groupby({self._view.unit!r}){self._selected()}.{verb}({EXAMPLES.get(verb, '')})"
            if verb == "drop_duplicates":
                call = f".drop_duplicates({self._view.unit!r}, keep='last')"
            raise PlanError(
                f"{verb}: depends on the order of a unit's rows; sort them first, as in "
                f"df.sort_values({order_name(self._view)}){call}"
            )

    def _selected(self) -> str:
        """How the column is selected from the groups, in an example."""
        return ""

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

    @abstractmethod
    def _each(self, verb: str, options: Mapping[str, object]) -> R:
        """A statistic of the column, or of each column."""

    @_with_examples("cost", "number from 0 to 10000", "year, cost, weight")
    def sum(self, **options: object) -> R:
        """Sum over the rows of each unit; 0 for a unit without a value.

        Its bounds are those of the column, times the largest number of rows of a unit.
        """
        return self._each("sum", options)

    @_with_examples("cost", "number from 0 to 2000", "year, cost, weight")
    def mean(self, **options: object) -> R:
        """Mean of the rows of each unit; missing for a unit without a value."""
        return self._each("mean", options)

    @_with_examples("cost", "number from 0 to 2000", "year, cost, weight")
    def min(self, **options: object) -> R:
        """Smallest value of each unit; missing for a unit without a value."""
        return self._each("min", options)

    @_with_examples("cost", "number from 0 to 2000", "year, cost, weight")
    def max(self, **options: object) -> R:
        """Largest value of each unit; missing for a unit without a value."""
        return self._each("max", options)

    @_with_examples("cost", "whole number from 0 to 5", "year, cost, weight, site")
    def count(self, **options: object) -> R:
        """Number of rows of each unit with a value."""
        return self._each("count", options)

    @_with_examples("site", "whole number from 0 to 5", "year, cost, weight, site")
    def nunique(self, **options: object) -> R:
        """Number of different values of each unit."""
        return self._each("nunique", options)

    def first(self, **options: object) -> R:
        """First value of each unit that is not missing, in the order of ``sort_values``.

        Raises
        ------
        PlanError
            The rows have no order.

        Examples
        --------
        >>> people.sort_values("year").groupby("person")["site"].first().dtype
        "category: 'north', 'south'"
        >>> people.sort_values("year").groupby("person").first()
        <private table: year, cost, weight, site>
        """
        return self._each("first", options)

    def last(self, **options: object) -> R:
        """Last value of each unit that is not missing, in the order of ``sort_values``.

        Raises
        ------
        PlanError
            The rows have no order.

        Examples
        --------
        >>> people.sort_values("year").groupby("person")["weight"].last().dtype
        'number from 40 to 160'
        >>> people.sort_values("year").groupby("person").last()
        <private table: year, cost, weight, site>
        """
        return self._each("last", options)


class Rolling(UnsupportedOperations):
    """The last rows of each privacy unit up to each row: ``df.sort_values(...).groupby(unit)["x"].rolling(3)``.

    Examples
    --------
    >>> people.sort_values("year").groupby("person")["cost"].rolling(2, min_periods=1).sum().dtype
    'number from 0 to 4000'
    """

    __slots__ = ("_of", "_words")

    def __init__(self, words: str, of: Callable[[WithinFunction], Series]) -> None:
        self._words, self._of = words, of

    def _description(self) -> str:
        return self._words

    def sum(self) -> Series:
        """Sum of these rows; missing with fewer values than `min_periods`.

        Examples
        --------
        >>> people.sort_values("year").groupby("person")["cost"].rolling(2).sum().dtype
        'number from 0 to 4000'
        """
        return self._of("rolling_sum")

    def mean(self) -> Series:
        """Mean of these rows; missing with fewer values than `min_periods`.

        Examples
        --------
        >>> people.sort_values("year").groupby("person")["cost"].rolling(2).mean().dtype
        'number from 0 to 2000'
        """
        return self._of("rolling_mean")


def verb_of(verb: object) -> str:
    """The name of a statistic, also of a function such as ``np.mean``."""
    return verb if isinstance(verb, str) else verb_name(verb)


def whole_rows(value: object, verb: str) -> int:
    """A whole number of rows."""
    rows = whole_number(value)
    if rows is None:
        refuse_rows(value, verb)
    return rows


def refuse_rows(value: object, verb: str) -> NoReturn:
    """Refuse a number of rows."""
    raise PlanError(f"{verb}: takes a whole number of rows; got {value!r}")
