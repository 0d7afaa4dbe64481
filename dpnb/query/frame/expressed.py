"""What a column is to an expression: operators and row by row functions.  Lazy: an expression, not values."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from dpnb.errors import PlanError, UnsupportedError
from dpnb.query.expressions.kinds import Moment, Number, Truth, kind_of
from dpnb.query.expressions.nodes import (
    DEEPEST,
    LARGEST,
    And,
    Apply,
    Arithmetic,
    AsNumber,
    Clip,
    Compare,
    Comparison,
    DatePart,
    Expression,
    Fill,
    IsIn,
    Missing,
    Not,
    Operator,
    Or,
    Part,
    Round,
    Where,
    negative,
    small_enough,
)
from dpnb.query.expressions.words import words
from dpnb.query.frame.refusal import Refusing
from dpnb.query.frame.spelling import (
    as_number,
    constant,
    listed,
    literal,
    number,
)
from dpnb.query.schema import whole_number

if TYPE_CHECKING:
    from dpnb.query.frame.frame import Frame

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
"""numpy's functions that mean a row by row expression."""


class Expressed(Refusing):
    """What a column is to an expression: operators and row-wise functions, each of which gives another one."""

    __slots__ = ("_frame", "_node")
    __hash__ = None  # type: ignore[assignment]  # == builds a condition

    def __init__(self, frame: Frame[Any], node: Expression) -> None:
        self._frame = frame
        self._node = node
        if not small_enough(node):
            raise PlanError(
                f"expression: must have at most {DEEPEST} levels and {LARGEST} parts; this one has more; join long "
                "sums in pairs, and long lists of values by .isin([...])"
            )
        kind_of(node, frame._schema)

    def _new(self, node: Expression) -> Any:
        return type(self)(self._frame, node)

    def _said(self) -> str:
        return f"private column {words(self._node)}"

    def __repr__(self) -> str:
        kind = "condition" if isinstance(kind_of(self._node, self._frame._schema), Truth) else "private column"
        return f"<{kind}: {words(self._node)}>"

    # --- operators ---------------------------------------------------------------------------------------------

    def _other(self, other: object, where: str) -> Expression:
        if isinstance(other, Expressed):
            self._frame._same_rows(other, where)
            return other._node
        return literal(other, f"{words(self._node)} {where}")

    def _compare(self, operator: Comparison, other: object) -> Any:
        return self._new(Compare(operator, self._node, self._other(other, operator)))

    def __eq__(self, other: object) -> Any:
        return self._compare("==", other)

    def __ne__(self, other: object) -> Any:
        return self._compare("!=", other)

    def __lt__(self, other: object) -> Any:
        return self._compare("<", other)

    def __le__(self, other: object) -> Any:
        return self._compare("<=", other)

    def __gt__(self, other: object) -> Any:
        return self._compare(">", other)

    def __ge__(self, other: object) -> Any:
        return self._compare(">=", other)

    def _compute(self, operator: Operator, other: object, *, reflected: bool = False) -> Any:
        if isinstance(other, str) and not isinstance(kind_of(self._node, self._frame._schema), Moment):
            raise PlanError(f"{operator}: a column is computed with a number or another column; got {other!r}")
        schema = self._frame._schema
        sides = as_number(self._node, schema), as_number(self._other(other, operator), schema)
        return self._new(Arithmetic(operator, *(sides[::-1] if reflected else sides)))

    def __add__(self, other: object) -> Any:
        return self._compute("+", other)

    def __radd__(self, other: object) -> Any:
        return self._compute("+", other, reflected=True)

    def __sub__(self, other: object) -> Any:
        return self._compute("-", other)

    def __rsub__(self, other: object) -> Any:
        return self._compute("-", other, reflected=True)

    def __mul__(self, other: object) -> Any:
        return self._compute("*", other)

    def __rmul__(self, other: object) -> Any:
        return self._compute("*", other, reflected=True)

    def __truediv__(self, other: object) -> Any:
        return self._compute("/", other)

    def __rtruediv__(self, other: object) -> Any:
        return self._compute("/", other, reflected=True)

    def __floordiv__(self, other: object) -> Any:
        return self._compute("//", other)

    def __mod__(self, other: object) -> Any:
        return self._compute("%", other)

    def __pow__(self, other: object) -> Any:
        return self._compute("**", other)

    def __neg__(self) -> Any:
        return self._new(negative(as_number(self._node, self._frame._schema)))

    def __abs__(self) -> Any:
        return self.abs()

    def __round__(self, decimals: int = 0) -> Any:
        return self.round(decimals)

    def __rfloordiv__(self, other: object) -> Any:
        return self._compute("//", other, reflected=True)

    def __rmod__(self, other: object) -> Any:
        return self._compute("%", other, reflected=True)

    def __rpow__(self, other: object) -> Any:
        return self._compute("**", other, reflected=True)

    def __and__(self, other: object) -> Any:
        return self._new(And(self._node, self._condition(other, "&")))

    __rand__ = __and__

    def __or__(self, other: object) -> Any:
        return self._new(Or(self._node, self._condition(other, "|")))

    __ror__ = __or__

    def __xor__(self, other: object) -> NoReturn:
        raise PlanError(f"^: is not offered; write (a & ~b) | (~a & b); got {self!r} ^ {other!r}")

    __rxor__ = __xor__

    def __invert__(self) -> Any:
        return self._new(Not(self._node))

    def _column(self, other: object, verb: str) -> Expression:
        """Another column of the same table."""
        if isinstance(other, Expressed):
            return self._other(other, verb)
        raise PlanError(f"{verb}: takes another column of this table, such as df['x']; got {other!r}")

    def _condition(self, other: object, operator: str) -> Expression:
        if isinstance(other, Expressed):
            return self._other(other, operator)
        raise PlanError(
            f"{operator}: both sides must be conditions; got {type(other).__name__}; "
            f"put each comparison in brackets, as in (a > 1) {operator} (b < 2)"
        )

    def __bool__(self) -> NoReturn:
        raise PlanError(
            f"{words(self._node)}: what private rows hold is neither true nor false; join conditions with "
            "&, | and ~ in brackets, as in (a > 1) & (b < 2), not with and, or, not or a chain like 1 < a < 2"
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **arguments: Any) -> Any:
        found = UFUNCS.get(ufunc.__name__)
        if method != "__call__" or arguments or found is None:
            raise UnsupportedError(
                f"numpy.{ufunc.__name__}({self._said()}): is not offered; of numpy's functions these are: log1p, exp, "
                "absolute, sqrt, square, and the operators; .round() and .clip() are verbs of the column"
            )
        if isinstance(inputs[0], Expressed):
            return found(*inputs)
        swapped = {"subtract": "__rsub__", "true_divide": "__rtruediv__", "divide": "__rtruediv__"}
        mirrored = {"greater": "__lt__", "greater_equal": "__le__", "less": "__gt__", "less_equal": "__ge__"}
        verb = {**swapped, **mirrored}.get(ufunc.__name__)
        left = np.asarray(inputs[0])
        if left.ndim:
            raise UnsupportedError(f"{self._said()}: is computed with one number, not with an array")
        return getattr(self, verb)(left.item()) if verb else found(self, left.item())

    def __array_function__(self, function: Any, *_: Any) -> NoReturn:
        raise UnsupportedError(
            f"numpy.{function.__name__}({self._said()}): is not offered; ask the column itself, as in .mean(), .sum() "
            "or .quantile(), and release it"
        )

    # --- row by row --------------------------------------------------------------------------------------------

    def abs(self) -> Any:
        """The absolute value."""
        return self._new(Apply("abs", as_number(self._node, self._frame._schema)))

    def log1p(self) -> Any:
        """The natural logarithm of one more; also ``numpy.log1p(column)``."""
        return self._new(Apply("log1p", as_number(self._node, self._frame._schema)))

    def exp(self) -> Any:
        """The exponential; also ``numpy.exp(column)``."""
        return self._new(Apply("exp", as_number(self._node, self._frame._schema)))

    def round(self, decimals: int = 0) -> Any:
        """Rounded, halves to even; with no decimals the values can be groups."""
        places = whole_number(decimals)
        if places is None or not -15 <= places <= 15:
            raise PlanError(f"round: decimals must be a whole number from -15 to 15; got {decimals!r}")
        return self._new(Round(self._node, places))

    def clip(self, lower: float | None = None, upper: float | None = None) -> Any:
        """The value, or the nearer limit; the result is bounded by the limits."""
        low, high = (None if limit is None else number(limit, "clip") for limit in (lower, upper))
        return self._new(Clip(as_number(self._node, self._frame._schema), low, high))

    def between(self, left: object, right: object, inclusive: str = "both") -> Any:
        """Whether the value lies between two; `inclusive` is ``both``, ``left``, ``right`` or ``neither``."""
        if inclusive not in ("both", "left", "right", "neither"):
            raise PlanError(f"between: inclusive must be 'both', 'left', 'right' or 'neither'; got {inclusive!r}")
        above = self >= left if inclusive in ("both", "left") else self > left
        below = self <= right if inclusive in ("both", "right") else self < right
        return above & below

    def isin(self, values: object) -> Any:
        """Whether the value is one of a list."""
        ordered = sorted(values, key=repr) if isinstance(values, set | frozenset) else values
        return self._new(IsIn(self._node, listed(ordered, "isin")))

    def isna(self) -> Any:
        """Whether there is nothing that counts: a null, or what the schema cannot use."""
        return self._new(Missing(self._node))

    def notna(self) -> Any:
        """Whether there is something that counts."""
        return self._new(Not(Missing(self._node)))

    def fillna(self, value: object) -> Any:
        """The value, or a constant where there is nothing."""
        return self._new(Fill(self._node, constant(value, "fillna")))

    def where(self, cond: object, other: object) -> Any:
        """The value where the condition is true, `other` where it is false, nothing where it is neither."""
        return self._new(Where(self._column(cond, "where"), self._node, self._other(other, "where")))

    def mask(self, cond: object, other: object) -> Any:
        """The value where the condition is false, `other` where it is true, nothing where it is neither."""
        return self._new(Where(Not(self._column(cond, "mask")), self._node, self._other(other, "mask")))

    def astype(self, dtype: object) -> Any:
        """Numeric categories, or a condition, as numbers: ``.astype(float)`` or ``.astype(int)``."""
        if not isinstance(dtype, type | str) or dtype not in (float, int, "float", "int", "float64", "int64"):
            raise PlanError(f"astype: only float and int are offered; got {dtype!r}; types come from the schema")
        kind = kind_of(self._node, self._frame._schema)
        if dtype in (int, "int", "int64") and isinstance(kind, Number) and not kind.whole:
            raise PlanError(f"astype(int): {words(self._node)} has fractions; .round() or // 1 makes whole numbers")
        return self._new(self._node if isinstance(kind, Number) else AsNumber(self._node))

    @property
    def dt(self) -> DateParts:
        """Parts of a date: ``.dt.year``, ``.dt.month``, ...; of a difference of dates ``.dt.days``."""
        return DateParts(self)


class DateParts(Refusing):
    """Parts of a date column, as whole numbers."""

    __slots__ = ("_series",)

    def __init__(self, series: Expressed) -> None:
        self._series = series

    def _said(self) -> str:
        return f"{words(self._series._node)}.dt"

    def _part(self, part: DatePart) -> Any:
        return self._series._new(Part(part, self._series._node))

    @property
    def year(self) -> Any:
        """The calendar year."""
        return self._part("year")

    @property
    def quarter(self) -> Any:
        """1 to 4."""
        return self._part("quarter")

    @property
    def month(self) -> Any:
        """1 to 12."""
        return self._part("month")

    @property
    def day(self) -> Any:
        """Day of the month, 1 to 31."""
        return self._part("day")

    @property
    def dayofyear(self) -> Any:
        """Day of the year, 1 to 366."""
        return self._part("dayofyear")

    day_of_year = dayofyear

    @property
    def dayofweek(self) -> Any:
        """0 for Monday to 6 for Sunday."""
        return self._part("dayofweek")

    weekday = day_of_week = dayofweek

    @property
    def hour(self) -> Any:
        """0 to 23."""
        return self._part("hour")

    @property
    def days(self) -> Any:
        """Whole days of a difference of dates, downward."""
        return self._part("days")

    def total_seconds(self) -> Any:
        """Whole seconds of a difference of dates, downward."""
        return self._part("seconds")
