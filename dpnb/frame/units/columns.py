"""A column of the rows of each privacy unit: one value for each unit, or for each row from the rows around it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dpnb._plan.expressions.nodes import Arithmetic, Expression, Literal, WithinFunction
from dpnb._plan.expressions.rules import numeric_dtype_of
from dpnb._plan.expressions.text import as_code, words
from dpnb.copying import safe_repr
from dpnb.errors import PlanError, UnsupportedError
from dpnb.frame.coerce import as_number
from dpnb.frame.columns.series import Series
from dpnb.frame.compatibility.options import AGGREGATION, check_options, describe_options
from dpnb.frame.units.statistics import OF_ROWS, F, Rolling, UnitStatistics, verb_of, whole_rows


@describe_options
class UnitGroupedColumn(UnitStatistics[F, Series]):
    """A column of the rows of each privacy unit: ``df.groupby(unit)["x"]``.

    A statistic, such as ``.sum()``, is a column with one row for each unit that has a row in the view.  ``.transform``,
    ``.shift`` and the like are columns of the same rows as the view.  Both are private, and free until a query of them
    is released.

    Examples
    --------
    >>> people.groupby("person")["cost"].sum().dtype
    'number from 0 to 10000'
    >>> (people["cost"] - people.groupby("person")["cost"].transform("mean")).std().description
    'sample standard deviation of cost - (cost.mean() within each unit)'
    """

    __slots__ = ("_node",)

    def __init__(self, groups: UnitStatistics[F, Any], node: Expression) -> None:
        self._node = node
        super().__init__(groups._view, groups._by, groups._frame)

    def _description(self) -> str:
        return f"private column {words(self._node)} by {self._levels}"

    @safe_repr
    def __repr__(self) -> str:
        return f"<{self._description()}>"

    def _selected(self) -> str:
        return f"[{self._view.name_of(self._node)!r}]"

    # --- one value for each unit -------------------------------------------------------------------------------

    def _each(self, verb: str, options: Mapping[str, object]) -> Series:
        check_options(verb, options, self._examples(), *AGGREGATION)
        return self._of_unit(verb, self._statistic(verb, self._node))

    def _of_unit(self, verb: str, node: Expression) -> Series:
        return Series(self._per_unit({f"{self._view.name_of(self._node)}_{verb}": node}), node)

    def size(self) -> Series:
        """Number of rows of each unit, with and without a value.

        Examples
        --------
        >>> people.groupby("person")["cost"].size().dtype
        'whole number from 0 to 5'
        """
        return self._each("size", {})

    def any(self, **options: object) -> Series:
        """Whether a condition is true in at least one row of the unit.

        Examples
        --------
        >>> high = people.assign(high=people["cost"] > 1000)
        >>> high.groupby("person")["high"].any().dtype
        'condition'
        """
        return self._each("any", options)

    def all(self, **options: object) -> Series:
        """Whether a condition is true in all rows of the unit in which it is known.

        Examples
        --------
        >>> high = people.assign(high=people["cost"] > 1000)
        >>> high.groupby("person")["high"].all().dtype
        'condition'
        """
        return self._each("all", options)

    def nth(self, n: int) -> Series:
        """Value of one row of each unit, in the order of ``sort_values``; missing without such a row.

        Parameters
        ----------
        n : int
            Number of the row, from 0 for the first, or from -1 for the last.

        Raises
        ------
        PlanError
            The rows have no order.

        Examples
        --------
        >>> people.sort_values("year").groupby("person")["weight"].nth(1).dtype
        'number from 40 to 160'
        """
        self._refuse_no_order("nth")
        place = whole_rows(n, "nth")
        return self._of_unit(f"nth({place})", self._condition_or_value("nth", self._node, offset=place))

    def agg(self, func: object = None, **named: object) -> Any:
        """One statistic of each unit by its name, or several as a `Frame`.

        Parameters
        ----------
        func : str or list of str, optional
            One of "sum", "mean", "min", "max", "count", "size", "nunique", "first", "last", "any", "all".
        **named
            Names of columns, and their statistics.

        Examples
        --------
        >>> people.groupby("person")["cost"].agg(["sum", "max"])
        <private table: sum, max>
        >>> people.groupby("person")["cost"].agg(total="sum", years="size")
        <private table: total, years>
        """
        if func is not None and not isinstance(func, list | tuple):
            return self._each(verb_of(func), {})
        verbs = {verb_of(verb): verb for verb in func} if func is not None else named
        if not verbs:
            raise PlanError("agg: names at least one statistic, as in .agg(['sum', 'max'])")
        columns = {name: self._statistic(verb_of(verb), self._node) for name, verb in verbs.items()}
        return self._frame(self._per_unit(columns))

    aggregate = agg

    # --- one value for each row --------------------------------------------------------------------------------

    def _of_row(self, node: Expression) -> Series:
        return Series(self._view, node)

    def _number(self) -> Expression:
        return as_number(self._node, self._view.schema)

    def _ordered(self, function: WithinFunction) -> Series:
        self._refuse_no_order(function)
        return self._of_row(self._within(function, self._number()))

    def transform(self, func: object, *args: object, **options: object) -> Series:
        """A statistic of each unit beside each of its rows.

        Parameters
        ----------
        func : str
            A statistic of :meth:`agg`, as in ``transform("mean")``, or the name of a method such as "cumsum".
        *args, **options
            Arguments of that method.

        Raises
        ------
        UnsupportedError
            `func` is a function other than those of numpy, since it would run Python on private rows.

        Examples
        --------
        >>> own_mean = people.groupby("person")["cost"].transform("mean")
        >>> (people["cost"] > own_mean).mean().description
        'share of rows with cost > (cost.mean() within each unit)'
        """
        if not isinstance(func, str) and callable(func) and getattr(func, "__name__", "") == "<lambda>":
            raise UnsupportedError(
                "transform: takes the name of a statistic, since functions would run Python on private rows; write "
                + self._example("{number} - ")
                + f"df.groupby({self._view.unit!r})[...].transform('mean')"
            )
        verb = verb_of(func)
        if verb in OF_ROWS:
            method: Callable[..., Series] = getattr(self, verb)
            return method(*args, **options)
        check_options("transform", options, self._examples(), *AGGREGATION)
        return self._of_row(self._statistic(verb, self._node))

    def shift(self, periods: int = 1, **options: object) -> Series:
        """Value of the row before, in the order of ``sort_values``; missing in the first row of a unit.

        Parameters
        ----------
        periods : int, default 1
            How many rows before; negative for rows after.

        Examples
        --------
        >>> before = people.sort_values("year").groupby("person")["site"].shift(1)
        >>> (before == "north").mean().description
        "share of rows with (site.shift(1) within each unit ordered by year) == 'north'"
        """
        check_options("shift", options, self._examples(), "freq", "axis", "fill_value", "suffix")
        self._refuse_no_order("shift")
        return self._of_row(self._condition_or_value("shift", self._node, offset=whole_rows(periods, "shift")))

    def diff(self, periods: int = 1, **options: object) -> Series:
        """Difference to the row before, in the order of ``sort_values``; missing in the first row of a unit.

        Parameters
        ----------
        periods : int, default 1
            How many rows before.

        Examples
        --------
        >>> people.sort_values("year").groupby("person")["weight"].diff().dtype
        'number from -120 to 120'
        """
        check_options("diff", options, self._examples(), "axis")
        self._refuse_no_order("diff")
        number = self._number()
        before = self._within("shift", number, offset=whole_rows(periods, "diff"))
        return self._of_row(Arithmetic("-", number, before))

    def pct_change(self, periods: int = 1, **options: object) -> Series:
        """Relative change since the row before, for a column whose bounds exclude 0.

        Parameters
        ----------
        periods : int, default 1
            How many rows before.

        Examples
        --------
        >>> people.sort_values("year").groupby("person")["weight"].pct_change().dtype
        'number from -0.75 to 3'
        """
        check_options("pct_change", options, self._examples(), "fill_method", "limit", "freq", "axis")
        self._refuse_no_order("pct_change")
        number = self._number()
        kind = numeric_dtype_of(number, self._view.schema, "pct_change")
        if kind.low <= 0 <= kind.high:
            raise PlanError(
                f"pct_change: {words(number)} can be 0, so nothing bounds the change; exclude 0 first, as in "
                f"df.assign(x={as_code(number)}.clip(lower=0.01))"
            )
        before = self._within("shift", number, offset=whole_rows(periods, "pct_change"))
        return self._of_row(Arithmetic("-", Arithmetic("/", number, before), Literal(1)))

    def cumsum(self, **options: object) -> Series:
        """Sum of the row and those before it, in the order of ``sort_values``.

        Examples
        --------
        >>> (people.sort_values("year").groupby("person")["cost"].cumsum() > 3000).mean().description
        'share of rows with (cost.cumsum() within each unit ordered by year) > 3000'
        """
        check_options("cumsum", options, self._examples(), "axis", "skipna", "numeric_only")
        return self._ordered("cumsum")

    def cummax(self, **options: object) -> Series:
        """Largest value of the row and those before it, in the order of ``sort_values``.

        Examples
        --------
        >>> people.sort_values("year").groupby("person")["weight"].cummax().dtype
        'number from 40 to 160'
        """
        check_options("cummax", options, self._examples(), "axis", "skipna", "numeric_only")
        return self._ordered("cummax")

    def cummin(self, **options: object) -> Series:
        """Smallest value of the row and those before it, in the order of ``sort_values``.

        Examples
        --------
        >>> people.sort_values("year").groupby("person")["weight"].cummin().dtype
        'number from 40 to 160'
        """
        check_options("cummin", options, self._examples(), "axis", "skipna", "numeric_only")
        return self._ordered("cummin")

    def cumcount(self, **options: object) -> Series:
        """Number of rows of the unit before the row, in the order of ``sort_values``.

        Examples
        --------
        >>> people.sort_values("year").groupby("person")["cost"].cumcount().dtype
        'whole number from 0 to 4'
        """
        check_options("cumcount", options, self._examples(), "ascending")
        self._refuse_no_order("cumcount")
        return self._of_row(self._within("number", ordered=True))

    def rank(self, method: str = "average", ascending: bool = True, **options: object) -> Series:
        """Rank of the value among those of its unit, from 1; equal values have their average rank.

        Parameters
        ----------
        method : {"average"}, default "average"
            Other treatments of equal values are not offered.
        ascending : bool, default True
            Must be True.

        Examples
        --------
        >>> people.groupby("person")["cost"].rank().dtype
        'number from 1 to 5'
        """
        check_options("rank", options, self._examples(), "na_option", "pct", "axis")
        if method != "average" or ascending is not True:
            raise PlanError(f"rank: takes method='average' and ascending=True; got {method!r} and {ascending!r}")
        return self._of_row(self._within("rank", self._number()))

    def ffill(self, **options: object) -> Series:
        """The value, or the last one before it that is not missing, in the order of ``sort_values``.

        Examples
        --------
        >>> people.sort_values("year").groupby("person")["weight"].ffill().dtype
        'number from 40 to 160'
        """
        check_options("ffill", options, self._examples(), "limit")
        self._refuse_no_order("ffill")
        return self._of_row(self._condition_or_value("ffill", self._node))

    def rolling(self, window: int, min_periods: int | None = None, **options: object) -> Rolling:
        """The last rows of each unit up to each row, in the order of ``sort_values``.

        Parameters
        ----------
        window : int
            Number of rows.
        min_periods : int, optional
            Number of values that are needed; by default `window`.

        Examples
        --------
        >>> people.sort_values("year").groupby("person")["cost"].rolling(3).mean().median().description
        'median of cost.rolling_mean(3) within each unit ordered by year'
        """
        check_options("rolling", options, self._examples(), "center", "win_type", "on", "axis", "closed", "step")
        self._refuse_no_order("rolling")
        rows = whole_rows(window, "rolling")
        least = rows if min_periods is None else whole_rows(min_periods, "min_periods")
        if not 1 <= least <= rows:
            raise PlanError(
                f"rolling: window must be at least 1, and min_periods from 1 to window; got {window!r}, {min_periods!r}"
            )
        number = self._number()
        return Rolling(
            f"last {rows} rows of {self._description()}",
            lambda function: self._of_row(self._within(function, number, offset=rows, least=least)),
        )
