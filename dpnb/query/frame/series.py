"""One column of a view, or something computed from its columns.  Lazy: it is an expression, not values."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

import numpy as np

from dpnb.errors import PlanError, UnsupportedError
from dpnb.query.expressions.kinds import Truth, kind_of, number_of
from dpnb.query.expressions.nodes import (
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
)
from dpnb.query.expressions.words import words
from dpnb.query.frame.refusal import SHOWS_ROWS, Refusing
from dpnb.query.frame.spelling import (
    EXTREMES,
    as_number,
    bins,
    constant,
    listed,
    literal,
    measured,
    number,
    quantile_levels,
)
from dpnb.query.plan import (
    AnyView,
    Columns,
    Count,
    FromMoments,
    Group,
    Joint,
    Measured,
    Moments,
    Named,
    Plain,
    Quantiles,
    Ratio,
    Shares,
    Tree,
    Weighted,
)
from dpnb.query.schema import whole_number

if TYPE_CHECKING:
    from dpnb.query.frame.frame import Frame

Q = TypeVar("Q")
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
            if not other._frame._scope.same_table(self._frame._scope):
                raise PlanError(f"{where}: both sides must come from one table; .merge() the tables of a session first")
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

    def __and__(self, other: object) -> Any:
        return self._new(And(self._node, self._condition(other, "&")))

    def __or__(self, other: object) -> Any:
        return self._new(Or(self._node, self._condition(other, "|")))

    def __invert__(self) -> Any:
        return self._new(Not(self._node))

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
            raise UnsupportedError(f"numpy.{ufunc.__name__}({self._said()}): {SHOWS_ROWS}")
        if isinstance(inputs[0], Expressed):
            return found(*inputs)
        swapped = {"subtract": "__rsub__", "true_divide": "__rtruediv__", "divide": "__rtruediv__"}
        mirrored = {"greater": "__lt__", "greater_equal": "__le__", "less": "__gt__", "less_equal": "__ge__"}
        verb = {**swapped, **mirrored}.get(ufunc.__name__)
        left = np.asarray(inputs[0])
        if left.ndim:
            raise UnsupportedError(f"{self._said()}: is computed with one number, not with an array")
        return getattr(self, verb)(left.item()) if verb else found(self, left.item())

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
        return self._new(IsIn(self._node, listed(values, "isin")))

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
        return self._new(Where(self._condition(cond, "where"), self._node, self._other(other, "where")))

    def mask(self, cond: object, other: object) -> Any:
        """The value where the condition is false, `other` where it is true, nothing where it is neither."""
        return self._new(Where(Not(self._condition(cond, "mask")), self._node, self._other(other, "mask")))

    def astype(self, dtype: object) -> Any:
        """Numeric categories, or a condition, as numbers: ``.astype(float)`` or ``.astype(int)``."""
        if dtype not in (float, int, "float", "int", "float64", "int64"):
            raise PlanError(f"astype: only float and int are offered; got {dtype!r}; types come from the schema")
        return self._new(AsNumber(self._node))

    @property
    def dt(self) -> DateParts:
        """Parts of a date: ``.dt.year``, ``.dt.month``, ...; of a difference of dates ``.dt.days``."""
        return DateParts(self)


class Series(Expressed, Generic[Q]):
    """One column of a view, or something computed from its columns."""

    __slots__ = ()

    def __getitem__(self, key: object) -> Series[Q]:
        """The column in the rows for which a condition is true."""
        if isinstance(key, Expressed):
            return Series(self._frame[key], self._node)
        raise PlanError(f"{words(self._node)}[...]: takes a condition; got {key!r}; single rows are never shown")

    # --- questions ---------------------------------------------------------------------------------------------

    def _ask(self, aggregation: Measured, view: AnyView | None = None, by: tuple[Group, ...] = ()) -> Q:
        return self._frame._question(aggregation, view or Plain(), by)  # type: ignore[no-any-return]

    def _number(self) -> Expression:
        return as_number(self._node, self._frame._schema)

    def count(self) -> Q:
        """Number of rows that have something in the column."""
        return self._ask(*measured("count", self._node))

    def sum(self) -> Q:
        """Sum of a bounded column; of a condition, the number of rows for which it is true."""
        return self._ask(*measured("sum", self._number()))

    def mean(self) -> Q:
        """Mean of a bounded column: its count and centred sum, asked jointly; of a condition, a proportion."""
        return self._ask(*measured("mean", self._number()))

    def var(self) -> Q:
        """Variance (divided by the count, not by one less): count, sum and sum of squares, asked jointly."""
        return self._ask(*measured("var", self._number()))

    def std(self) -> Q:
        """Standard deviation: the root of `var`."""
        return self._ask(*measured("std", self._number()))

    def min(self) -> Q:
        """The smallest value that stands out of the noise: private minima are quantiles.  Shares its cost with them."""
        return self._ask(*measured("min", self._number()))

    def max(self) -> Q:
        """The largest value that stands out of the noise: private maxima are quantiles.  Shares its cost with them."""
        return self._ask(*measured("max", self._number()))

    def median(self) -> Q:
        """The median; any other quantile is free afterwards."""
        return self._ask(*measured("median", self._number()))

    def quantile(self, q: object = 0.5) -> Q:
        """One quantile or a list of them, in one charge: all are read off one noisy tree."""
        return self._ask(Tree(self._number()), Quantiles(quantile_levels(q), single=np.ndim(q) == 0))  # type: ignore[arg-type]

    def corr(self, other: Series[Any]) -> Q:
        """Pearson's correlation with another column."""
        return self._pair("corr", other)

    def cov(self, other: Series[Any]) -> Q:
        """Covariance with another column (divided by the count)."""
        return self._pair("cov", other)

    def _pair(self, statistic: str, other: object) -> Q:
        second = as_number(self._condition(other, statistic), self._frame._schema)
        columns = tuple(sorted((self._number(), second), key=words))  # one question, whichever is named first
        if columns[0] == columns[1]:
            raise PlanError(f"{statistic}: needs two different columns; got {words(second)} twice; ask .var()")
        return self._ask(Moments(columns), FromMoments(statistic, (0, 1)))

    def ratio(self, denominator: Series[Any]) -> Q:
        """Sum of this column over the sum of another, over the rows that have both."""
        other = as_number(self._condition(denominator, "ratio"), self._frame._schema)
        return self._ask(Ratio(self._number(), other))

    def value_counts(self, normalize: bool = False, keys: object = None) -> Q:
        """Rows of each public value; with `normalize` as shares.  `keys` gives the public values of a text column."""
        grouped = self._frame.groupby(self, keys=keys)
        return grouped._question(Count(), Shares() if normalize else Plain())  # type: ignore[no-any-return]

    def histogram(self, bins: object = 10) -> Q:
        """Rows in bins of equal width between the bounds, or between given edges; a bin holds its lower edge."""
        edges = cut(self, bins, right=False)
        return self._ask(Count(), by=(Group(words(self._node), edges._node),))

    def describe(self) -> Q:
        """Count, mean, deviation and quartiles in one charge: half for the moments, half for the tree of quantiles."""
        node = self._number()
        columns = [Named(name, 0, FromMoments(name)) for name in ("count", "mean", "std")]
        columns.append(Named("min", 1, Quantiles((EXTREMES["min"],), single=True)))
        columns += [Named(f"{round(100 * q)}%", 1, Quantiles((q,), single=True)) for q in (0.25, 0.5, 0.75)]
        columns.append(Named("max", 1, Quantiles((EXTREMES["max"],), single=True)))
        return self._ask(Joint((Weighted(Moments((node,))), Weighted(Tree(node)))), Columns(tuple(columns)))


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

    @property
    def dayofweek(self) -> Any:
        """0 for Monday to 6 for Sunday."""
        return self._part("dayofweek")

    weekday = dayofweek

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


def cut(x: Expressed, bins_: object, *, labels: object = None, right: bool = True) -> Any:
    """Sort a number into bins between public edges, like `pandas.cut`; the bins can be groups.

    Parameters
    ----------
    x : column
        A number.
    bins_ : list of float, or int
        Ascending edges, of which the first and last may be infinite; or as many bins of equal width between the
        column's bounds.  What lies outside is in no bin.
    labels : list, optional
        Names of the bins; left out, the intervals as text.
    right : bool
        Whether a bin holds its upper edge (and the first one its lower edge too) or its lower edge.

    Raises
    ------
    PlanError
        `x` is no number, the edges do not ascend, or the labels are not one a bin.
    """
    if not isinstance(x, Expressed):
        raise PlanError(f"cut: takes a column of a private table; got {type(x).__name__}; pandas.cut cuts public ones")
    node = as_number(x._node, x._frame._schema)
    bounds = number_of(node, x._frame._schema, "cut")
    return x._new(bins(node, bins_, labels, right, bounds.low, bounds.high))
