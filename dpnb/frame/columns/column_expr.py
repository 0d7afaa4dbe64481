"""Row-wise functions of columns, and columns as arguments.  Lazy: they build expressions and hold no values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Self

from dpnb._plan.constants import constant, listed, number
from dpnb._plan.expressions.dtypes import Boolean, Dtype, Timestamp
from dpnb._plan.expressions.nodes import (
    Apply,
    Clip,
    Expression,
    FillNull,
    Function,
    IsIn,
    IsNull,
    Not,
    Round,
    Where,
)
from dpnb._plan.expressions.rules import dtype_of
from dpnb._plan.expressions.text import words
from dpnb._plan.plan import GroupLevel
from dpnb.errors import PlanError, UnsupportedError
from dpnb.frame.coerce import as_condition, as_number
from dpnb.frame.columns.date_parts import DateParts
from dpnb.frame.columns.operators import ColumnOperators
from dpnb.frame.columns.recoding import converted, mapped, otherwise, replaced, replacements
from dpnb.frame.columns.text_methods import TextMethods
from dpnb.frame.compatibility.calls import REMEDIES
from dpnb.frame.compatibility.options import NO_DEFAULT, check_options, describe_options
from dpnb.frame.view import TableView
from dpnb.schema import whole_number
from dpnb.times import UTC_ZONE

Inclusive = Literal["both", "left", "right", "neither"]
ValueType = type[float | str] | Literal["float", "int", "float64", "int64", "bool", "str", "string", "category"]
"""What `ColumnExpr.astype` takes; for a type checker `int` and `bool` are a `float`."""


@describe_options
class ColumnExpr(ColumnOperators):
    """An expression of columns: its operators and row-wise functions each return another expression."""

    __slots__ = ()

    # --- row-wise functions ------------------------------------------------------------------------------------

    def abs(self) -> Self:
        """The absolute value.

        Examples
        --------
        >>> (df["age"] - 50).abs()
        <private column: (age - 50).abs()>
        """
        return self._applied("abs")

    def log(self) -> Self:
        """The natural logarithm of a column that is above 0; also ``numpy.log(column)``.

        Examples
        --------
        >>> (df["cost"] + 1).log()
        <private column: log(cost + 1)>
        """
        return self._applied("log")

    def log2(self) -> Self:
        """The logarithm to base 2 of a column that is above 0; also ``numpy.log2(column)``.

        Examples
        --------
        >>> (df["cost"] + 1).log2()
        <private column: log2(cost + 1)>
        """
        return self._applied("log2")

    def log10(self) -> Self:
        """The logarithm to base 10 of a column that is above 0; also ``numpy.log10(column)``.

        Examples
        --------
        >>> (df["cost"] + 1).log10()
        <private column: log10(cost + 1)>
        """
        return self._applied("log10")

    def log1p(self) -> Self:
        """The natural logarithm of one plus the value; also ``numpy.log1p(column)``.

        Examples
        --------
        >>> df["cost"].log1p()
        <private column: log1p(cost)>
        """
        return self._applied("log1p")

    def exp(self) -> Self:
        """The exponential; also ``numpy.exp(column)``.

        Examples
        --------
        >>> (df["age"] / 100).exp()
        <private column: exp(age / 100)>
        """
        return self._applied("exp")

    def _applied(self, function: Function) -> Self:
        return self._new(Apply(function, as_number(self._node, self._view.schema)))

    def round(self, decimals: int = 0) -> Self:
        """The value rounded, halves to even; without decimals the values can be used as groups.

        Parameters
        ----------
        decimals : int, default 0
            Number of decimals, from -15 to 15.

        Examples
        --------
        >>> (df["cost"] / 12).round(1)
        <private column: (cost / 12).round(1)>
        """
        places = whole_number(decimals)
        if places is None or not -15 <= places <= 15:
            raise PlanError(f"round: decimals must be a whole number from -15 to 15; got {decimals!r}")
        return self._new(Round(self._node, places))

    def clip(self, lower: float | None = None, upper: float | None = None, **options: object) -> Self:
        """The value limited to [lower, upper]; the result has these bounds.

        Parameters
        ----------
        lower, upper : float, optional
            The smallest and the largest value of the result; a side without a limit is unchanged.

        Examples
        --------
        >>> df["cost"].clip(0, 500)
        <private column: cost.clip(0, 500)>
        """
        check_options("clip", options, self._examples(), "axis", "inplace")
        low, high = (None if limit is None else number(limit, "clip") for limit in (lower, upper))
        return self._new(Clip(as_number(self._node, self._view.schema), low, high))

    def between(self, left: object, right: object, inclusive: Inclusive = "both") -> Self:
        """Whether the value lies between two.

        Parameters
        ----------
        left, right : number, str, date or column
            The two values.
        inclusive : {"both", "left", "right", "neither"}, default "both"
            Which of the two belong to the range.

        Examples
        --------
        >>> df["age"].between(18, 65)
        <condition: (age >= 18) & (age <= 65)>
        """
        if inclusive not in ("both", "left", "right", "neither"):
            raise PlanError(f"between: inclusive must be 'both', 'left', 'right' or 'neither'; got {inclusive!r}")
        above = self >= left if inclusive in ("both", "left") else self > left
        below = self <= right if inclusive in ("both", "right") else self < right
        return above & below

    def isin(self, values: object) -> Self:
        """Whether the value is one of a list.

        Parameters
        ----------
        values : list or set
            Constants; for categories, declared ones.

        Examples
        --------
        >>> df["plan"].isin(["free"])
        <condition: plan.isin(['free'])>
        """
        ordered = sorted(values, key=repr) if isinstance(values, set | frozenset) else values
        constants = listed(ordered, "isin")
        return self._new(
            IsIn(
                self._node, tuple(self._date_or_text(one, "isin") if isinstance(one, str) else one for one in constants)
            )
        )

    def isna(self) -> Self:
        """Whether the value is missing: a null, or a value that the schema excludes.

        Examples
        --------
        >>> df["age"].isna()
        <condition: age.isna()>
        """
        return self._new(IsNull(self._node))

    def notna(self) -> Self:
        """Whether the value is not missing.

        Examples
        --------
        >>> df["age"].notna()
        <condition: age.notna()>
        """
        return self._new(Not(IsNull(self._node)))

    isnull, notnull = isna, notna

    def fillna(self, value: object = NO_DEFAULT, **options: object) -> Self:
        """The value, or a constant or the value of another column where it is missing.

        Parameters
        ----------
        value : number, str, bool, date or column
            A constant of the column's type, or a column of the same rows.

        Examples
        --------
        >>> df["age"].fillna(0)
        <private column: age.fillna(0)>
        """
        if value is NO_DEFAULT and options.get("method") is not None:
            raise UnsupportedError(f"fillna of {words(self._node)}: {self._example(REMEDIES['ffill'])}")
        check_options("fillna", options, self._examples(), "axis", "inplace", "limit", "downcast")
        if value is NO_DEFAULT:
            raise PlanError(f"fillna: needs a value, as in {self._example('{self}.fillna(0)')}")
        if isinstance(value, ColumnExpr):
            return self._new(Where(IsNull(self._node), self._other(value, "fillna"), self._node))
        filled = constant(value, "fillna")
        return self._new(
            FillNull(self._node, self._date_or_text(filled, "fillna") if isinstance(filled, str) else filled)
        )

    def where(self, cond: object, other: object = None, **options: object) -> Self:
        """The value where the condition is true, `other` where it is false; missing where the condition is missing.

        Without `other` the value is missing where the condition is false, as in pandas.

        Parameters
        ----------
        cond : condition
            A condition of the same rows.
        other : number, str, bool, date or column, optional
            The other value, of the same type.

        Examples
        --------
        >>> df["cost"].where(df["age"] > 65, 0)
        <private column: cost.where(age > 65, 0)>
        """
        check_options("where", options, self._examples(), "axis", "inplace", "level")
        return self._chosen(self._column(cond, "where"), self, other, "where")

    def mask(self, cond: object, other: object = None, **options: object) -> Self:
        """The value where the condition is false, `other` where it is true; missing where the condition is missing.

        Parameters
        ----------
        cond : condition
            A condition of the same rows.
        other : number, str, bool, date or column, optional
            The other value, of the same type.

        Examples
        --------
        >>> df["cost"].mask(df["age"] > 65, 0)
        <private column: cost.where(~(age > 65), 0)>
        """
        check_options("mask", options, self._examples(), "axis", "inplace", "level")
        return self._chosen(Not(as_condition(self._column(cond, "mask"), self._view.schema)), self, other, "mask")

    def map(
        self, func: object = NO_DEFAULT, na_action: object = None, *, arg: object = NO_DEFAULT, **options: object
    ) -> Self:
        """The value of a public dict for each value of the column; missing for a value that is not in the dict."""
        del na_action
        return self._new(mapped(self._node, self._map_argument(func, arg, options), self._view.schema))

    def _map_argument(self, func: object, arg: object, options: Mapping[str, object]) -> object:
        """What `map` was given, under either of its names in pandas."""
        check_options("map", options, self._examples(), "engine")
        given = [one for one in (func, arg) if one is not NO_DEFAULT]
        if len(given) != 1:
            raise PlanError(f"map: takes one dict, as in {self._example('{self}')}.map({{...}}); got {len(given)}")
        return given[0]

    def replace(
        self, to_replace: object = NO_DEFAULT, value: object = NO_DEFAULT, regex: bool = False, **options: object
    ) -> Self:
        """The column with some values replaced and the others unchanged; see `map` for the values.

        Parameters
        ----------
        to_replace : dict, list or value
            A dict of old and new values, or the old values.
        value : list or value, optional
            The new values, unless `to_replace` is a dict.  A null makes a value missing.
        regex : bool, default False
            Must be False.

        Examples
        --------
        >>> df["plan"].replace({"free": "none"})
        <private column: plan.replace({'free': 'none'})>
        """
        if regex:
            column = words(self._node)
            raise UnsupportedError(
                f"replace of {column}: takes whole values, so regex must be False; use .str.replace() for parts"
            )
        check_options("replace", options, self._examples(), "inplace", "limit")
        if to_replace is NO_DEFAULT:
            raise PlanError(f"replace: needs the old values, as in {self._example('{self}')}.replace({{...}})")
        pairs, filled = replacements(to_replace, None if value is NO_DEFAULT else value, value is not NO_DEFAULT)
        node = replaced(self._node, pairs, self._view.schema) if pairs else self._node
        if filled is None:
            return self._new(node)
        # A value that becomes missing is not filled.
        return self._new(otherwise(self._node, node, filled) if None in pairs.values() else FillNull(node, filled))

    def astype(self, dtype: ValueType, **options: object) -> Self:
        """Numeric categories, or a condition, as numbers; numbers as conditions; categories as texts.

        Parameters
        ----------
        dtype : type or str
            ``float``, ``int``, ``bool``, ``str`` or ``"category"``, or a name that pandas gives to one of these.

        Examples
        --------
        >>> (df["age"] > 65).astype(int)
        <private column: (age > 65).astype(float)>
        """
        check_options("astype", options, self._examples(), "copy", "errors")
        return self._new(converted(self._node, dtype, self._view.schema))

    def __abs__(self) -> Self:
        return self.abs()

    def __round__(self, decimals: int = 0) -> Self:
        return self.round(decimals)

    @property
    def str(self) -> TextMethods[Self]:
        """Text methods of declared categories, and some of a text column: ``.str.lower()``, ``.str.contains()``, ..."""
        return TextMethods(self._new, self._node, self._view.schema)

    @property
    def dt(self) -> DateParts[Self]:
        """Parts and periods of a date: ``.dt.year``, ``.dt.to_period("M")``; of a difference of dates ``.dt.days``."""
        return DateParts(self._new, self._node, _zone_of(dtype_of(self._node, self._view.schema)))


# --- columns as arguments --------------------------------------------------------------------------------------------


def node_of(view: TableView, one: object, verb: str) -> Expression:
    """The expression of a column, given by name or as a column of the same rows."""
    if not isinstance(one, ColumnExpr):
        return view.column(one)
    one._refuse_groups(verb)
    view.refuse_other_rows(one._view, one, verb)
    return one._node


def filtered(view: TableView, condition: ColumnExpr) -> TableView:
    """The rows of a view for which a condition is true."""
    node = as_condition(node_of(view, condition, "df[mask]"), view.schema)
    if not isinstance(dtype_of(node, view.schema), Boolean):
        raise PlanError(f"df[{words(node)}]: rows are selected by a condition, such as df['x'] > 1")
    return view.filtered(node)


def groups_of(view: TableView, by: object) -> tuple[GroupLevel, ...]:
    """The levels of groups, at least one, each with its name in the view."""
    levels = by if isinstance(by, list) else [by]
    if not levels:
        raise PlanError("groupby: needs at least one column; got an empty list")
    nodes = [node_of(view, level, "groupby") for level in levels]
    names = [level if isinstance(level, str) else view.name_of(node) for level, node in zip(levels, nodes, strict=True)]
    return tuple(map(GroupLevel, names, nodes))


def _zone_of(kind: Dtype) -> str:
    return kind.zone_name if isinstance(kind, Timestamp) else UTC_ZONE
