"""Operators and row-wise functions of columns.  Lazy: they build expressions and hold no values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NoReturn, Self

import numpy as np

from dpnb._plan.constants import constant, group_key_table, listed, number
from dpnb._plan.expressions.dtypes import Boolean, Numeric, Timestamp
from dpnb._plan.expressions.nodes import (
    DEEPEST,
    LARGEST,
    And,
    Apply,
    Arithmetic,
    AsNumber,
    Clip,
    Compare,
    ComparisonOperator,
    Expression,
    FillNull,
    IsIn,
    IsNull,
    Not,
    Operator,
    Or,
    Round,
    Where,
    negative,
    small_enough,
)
from dpnb._plan.expressions.rules import dtype_of
from dpnb._plan.expressions.text import words
from dpnb._plan.plan import GroupLevel, Plan, check_plan
from dpnb._plan.schema import Key, whole_number
from dpnb.copying import safe_repr
from dpnb.errors import PlanError, UnsupportedError
from dpnb.frame.coerce import aggregation_for, as_number, literal
from dpnb.frame.date_parts import DateParts
from dpnb.frame.unsupported import UnsupportedOperations
from dpnb.frame.view import TableView

UFUNCS: dict[str, Callable[..., Any]] = {
    "log1p": lambda x: x.log1p(),
    "exp": lambda x: x.exp(),
    "absolute": lambda x: x.abs(),
    "negative": lambda x: -x,
    "sqrt": lambda x: x**0.5,
    "square": lambda x: x**2,
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "true_divide": lambda x, y: x / y,
    "divide": lambda x, y: x / y,
    "greater": lambda x, y: x > y,
    "greater_equal": lambda x, y: x >= y,
    "less": lambda x, y: x < y,
    "less_equal": lambda x, y: x <= y,
    "equal": lambda x, y: x == y,
    "not_equal": lambda x, y: x != y,
}
"""numpy functions that translate to a row-wise expression."""

Inclusive = Literal["both", "left", "right", "neither"]
NumericType = type[float] | Literal["float", "int", "float64", "int64"]
"""What `ColumnExpr.astype` takes; for a type checker `int` is a `float`."""


class ColumnExpr(UnsupportedOperations):
    """An expression of columns: its operators and row-wise functions each return another expression."""

    __slots__ = ("_node", "_view")
    __hash__ = None  # type: ignore[assignment]  # == builds a condition

    def __init__(self, view: TableView, node: Expression) -> None:
        self._view = view
        self._node = node
        if not small_enough(node):
            raise PlanError(
                f"expression: must have at most {DEEPEST} levels and {LARGEST} parts; this one has more; group long "
                "sums in pairs, and use .isin([...]) for long lists of values"
            )
        dtype_of(node, view.schema)

    def _new(self, node: Expression) -> Self:
        return type(self)(self._view, node)

    def _said(self) -> str:
        return f"private column {words(self._node)}"

    @safe_repr
    def __repr__(self) -> str:
        kind = "condition" if isinstance(dtype_of(self._node, self._view.schema), Boolean) else "private column"
        return f"<{kind}: {words(self._node)}>"

    # --- operators ---------------------------------------------------------------------------------------------

    def _other(self, other: object, where: str) -> Expression:
        if isinstance(other, ColumnExpr):
            return node_of(self._view, other, where)
        return literal(other, f"{words(self._node)} {where}")

    def _compare(self, operator: ComparisonOperator, other: object) -> Self:
        return self._new(Compare(operator, self._node, self._other(other, operator)))

    def __eq__(self, other: object) -> Self:  # type: ignore[override]  # a condition, as in pandas
        return self._compare("==", other)

    def __ne__(self, other: object) -> Self:  # type: ignore[override]
        return self._compare("!=", other)

    def __lt__(self, other: object) -> Self:
        return self._compare("<", other)

    def __le__(self, other: object) -> Self:
        return self._compare("<=", other)

    def __gt__(self, other: object) -> Self:
        return self._compare(">", other)

    def __ge__(self, other: object) -> Self:
        return self._compare(">=", other)

    def _compute(self, operator: Operator, other: object, *, reflected: bool = False) -> Self:
        if isinstance(other, str) and not isinstance(dtype_of(self._node, self._view.schema), Timestamp):
            raise PlanError(f"{operator}: the other operand must be a number or another column; got {other!r}")
        schema = self._view.schema
        sides = as_number(self._node, schema), as_number(self._other(other, operator), schema)
        return self._new(Arithmetic(operator, *(sides[::-1] if reflected else sides)))

    def __add__(self, other: object) -> Self:
        return self._compute("+", other)

    def __radd__(self, other: object) -> Self:
        return self._compute("+", other, reflected=True)

    def __sub__(self, other: object) -> Self:
        return self._compute("-", other)

    def __rsub__(self, other: object) -> Self:
        return self._compute("-", other, reflected=True)

    def __mul__(self, other: object) -> Self:
        return self._compute("*", other)

    def __rmul__(self, other: object) -> Self:
        return self._compute("*", other, reflected=True)

    def __truediv__(self, other: object) -> Self:
        return self._compute("/", other)

    def __rtruediv__(self, other: object) -> Self:
        return self._compute("/", other, reflected=True)

    def __floordiv__(self, other: object) -> Self:
        return self._compute("//", other)

    def __mod__(self, other: object) -> Self:
        return self._compute("%", other)

    def __pow__(self, other: object) -> Self:
        return self._compute("**", other)

    def __neg__(self) -> Self:
        return self._new(negative(as_number(self._node, self._view.schema)))

    def __abs__(self) -> Self:
        return self.abs()

    def __round__(self, decimals: int = 0) -> Self:
        return self.round(decimals)

    def __rfloordiv__(self, other: object) -> Self:
        return self._compute("//", other, reflected=True)

    def __rmod__(self, other: object) -> Self:
        return self._compute("%", other, reflected=True)

    def __rpow__(self, other: object) -> Self:
        return self._compute("**", other, reflected=True)

    def __and__(self, other: object) -> Self:
        return self._new(And(self._node, self._condition(other, "&")))

    __rand__ = __and__

    def __or__(self, other: object) -> Self:
        return self._new(Or(self._node, self._condition(other, "|")))

    __ror__ = __or__

    def __xor__(self, other: object) -> NoReturn:
        raise PlanError(f"^: is not offered; write (a & ~b) | (~a & b); got {self!r} ^ {other!r}")

    __rxor__ = __xor__

    def __invert__(self) -> Self:
        return self._new(Not(self._node))

    def _column(self, other: object, verb: str) -> Expression:
        """Another column of the same table."""
        if isinstance(other, ColumnExpr):
            return self._other(other, verb)
        raise PlanError(f"{verb}: takes another column of this table, such as df['x']; got {other!r}")

    def _condition(self, other: object, operator: str) -> Expression:
        if isinstance(other, ColumnExpr):
            return self._other(other, operator)
        raise PlanError(
            f"{operator}: both sides must be conditions; got {type(other).__name__}; "
            f"put each comparison in parentheses, as in (a > 1) {operator} (b < 2)"
        )

    def __bool__(self) -> NoReturn:
        raise PlanError(
            f"{words(self._node)}: the truth value of a private column is ambiguous; combine conditions with "
            "&, | and ~ in parentheses, as in (a > 1) & (b < 2), not with and, or, not or a chain like 1 < a < 2"
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **arguments: Any) -> Any:
        translation = UFUNCS.get(ufunc.__name__)
        if method != "__call__" or arguments or translation is None:
            raise UnsupportedError(
                f"numpy.{ufunc.__name__}({self._said()}): is not offered; the numpy functions offered are log1p, exp, "
                "absolute, sqrt, square and the operators; .round() and .clip() are methods of the column"
            )
        if isinstance(inputs[0], ColumnExpr):
            return translation(*inputs)
        swapped = {"subtract": "__rsub__", "true_divide": "__rtruediv__", "divide": "__rtruediv__"}
        mirrored = {"greater": "__lt__", "greater_equal": "__le__", "less": "__gt__", "less_equal": "__ge__"}
        verb = {**swapped, **mirrored}.get(ufunc.__name__)
        left = np.asarray(inputs[0])
        if left.ndim:
            raise UnsupportedError(f"{self._said()}: the other operand must be a single number; got an array")
        return getattr(self, verb)(left.item()) if verb else translation(self, left.item())

    def __array_function__(self, function: Any, *_: Any) -> NoReturn:
        raise UnsupportedError(
            f"numpy.{function.__name__}({self._said()}): is not offered; use the column's own .mean(), .sum() "
            "or .quantile(), and release it"
        )

    # --- row-wise functions ------------------------------------------------------------------------------------

    def abs(self) -> Self:
        """The absolute value."""
        return self._new(Apply("abs", as_number(self._node, self._view.schema)))

    def log1p(self) -> Self:
        """The natural logarithm of one plus the value; also ``numpy.log1p(column)``."""
        return self._new(Apply("log1p", as_number(self._node, self._view.schema)))

    def exp(self) -> Self:
        """The exponential; also ``numpy.exp(column)``."""
        return self._new(Apply("exp", as_number(self._node, self._view.schema)))

    def round(self, decimals: int = 0) -> Self:
        """The value rounded, halves to even; without decimals the values can be used as groups."""
        places = whole_number(decimals)
        if places is None or not -15 <= places <= 15:
            raise PlanError(f"round: decimals must be a whole number from -15 to 15; got {decimals!r}")
        return self._new(Round(self._node, places))

    def clip(self, lower: float | None = None, upper: float | None = None) -> Self:
        """The value limited to [lower, upper]; the result has these bounds."""
        low, high = (None if limit is None else number(limit, "clip") for limit in (lower, upper))
        return self._new(Clip(as_number(self._node, self._view.schema), low, high))

    def between(self, left: object, right: object, inclusive: Inclusive = "both") -> Self:
        """Whether the value lies between two; `inclusive` is ``both``, ``left``, ``right`` or ``neither``."""
        if inclusive not in ("both", "left", "right", "neither"):
            raise PlanError(f"between: inclusive must be 'both', 'left', 'right' or 'neither'; got {inclusive!r}")
        above = self >= left if inclusive in ("both", "left") else self > left
        below = self <= right if inclusive in ("both", "right") else self < right
        return above & below

    def isin(self, values: object) -> Self:
        """Whether the value is one of a list."""
        ordered = sorted(values, key=repr) if isinstance(values, set | frozenset) else values
        return self._new(IsIn(self._node, listed(ordered, "isin")))

    def isna(self) -> Self:
        """Whether the value is missing: a null, or a value that the schema excludes."""
        return self._new(IsNull(self._node))

    def notna(self) -> Self:
        """Whether the value is not missing."""
        return self._new(Not(IsNull(self._node)))

    def fillna(self, value: object) -> Self:
        """The value, or a constant where it is missing."""
        return self._new(FillNull(self._node, constant(value, "fillna")))

    def where(self, cond: object, other: object) -> Self:
        """The value where the condition is true, `other` where it is false, missing where the condition is missing."""
        return self._new(Where(self._column(cond, "where"), self._node, self._other(other, "where")))

    def mask(self, cond: object, other: object) -> Self:
        """The value where the condition is false, `other` where it is true, missing where the condition is missing."""
        return self._new(Where(Not(self._column(cond, "mask")), self._node, self._other(other, "mask")))

    def astype(self, dtype: NumericType) -> Self:
        """Numeric categories, or a condition, as numbers: ``.astype(float)`` or ``.astype(int)``."""
        given: object = dtype
        if not isinstance(given, type | str) or given not in (float, int, "float", "int", "float64", "int64"):
            raise PlanError(f"astype: only float and int are offered; got {dtype!r}; types come from the schema")
        kind = dtype_of(self._node, self._view.schema)
        if dtype in (int, "int", "int64") and isinstance(kind, Numeric) and not kind.whole:
            raise PlanError(f"astype(int): {words(self._node)} has fractions; use .round() or // 1 for whole numbers")
        return self._new(self._node if isinstance(kind, Numeric) else AsNumber(self._node))

    @property
    def dt(self) -> DateParts[Self]:
        """Parts of a date: ``.dt.year``, ``.dt.month``, ...; of a difference of dates ``.dt.days``."""
        return DateParts(self._new, self._node)


# --- columns as arguments --------------------------------------------------------------------------------------------


def node_of(view: TableView, one: object, verb: str) -> Expression:
    """The expression of a column, given by name or as a column of the same rows."""
    if not isinstance(one, ColumnExpr):
        return view.column(one)
    view.refuse_other_rows(one._view, one, verb)
    return one._node


def filtered(view: TableView, condition: ColumnExpr) -> TableView:
    """The rows of a view for which a condition is true.

    Raises
    ------
    PlanError
        It is not a condition, or has other rows.
    """
    node = node_of(view, condition, "df[mask]")
    if not isinstance(dtype_of(node, view.schema), Boolean):
        raise PlanError(f"df[{words(node)}]: rows are selected by a condition, such as df['x'] > 1")
    return view.filtered(node)


def groups_of(view: TableView, by: object) -> tuple[GroupLevel, ...]:
    """The levels of groups, each with its name in the view.

    Raises
    ------
    PlanError
        No level is given, or there is no such column.
    """
    levels = by if isinstance(by, list) else [by]
    if not levels:
        raise PlanError("groupby: needs at least one column; got an empty list")
    nodes = [node_of(view, level, "groupby") for level in levels]
    names = [level if isinstance(level, str) else view.name_of(node) for level, node in zip(levels, nodes, strict=True)]
    return tuple(map(GroupLevel, names, nodes))


def listed_keys(view: TableView, by: tuple[GroupLevel, ...], keys: object) -> tuple[tuple[Key, ...], ...] | None:
    """The public keys of groups, checked; None for all of them.

    Raises
    ------
    PlanError
        The groups are not public, or a key is not one of them.
    """
    listed = None if keys is None else group_key_table(keys, by, view.schema)
    # Checking the plan of a count checks the columns, and that the groups are public.
    check_plan(Plan(aggregation_for("count", None)[0], None, by, listed, source=view.source), view.schema)
    return listed
