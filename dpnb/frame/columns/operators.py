"""Operators of columns, and numpy's functions of them.  Lazy: they build expressions and hold no values."""

from __future__ import annotations

from datetime import date
from typing import Any, NoReturn, Self

import numpy as np

from dpnb._plan.constants import constant, number
from dpnb._plan.expressions.choices import without_constant
from dpnb._plan.expressions.dtypes import Boolean, Timestamp
from dpnb._plan.expressions.nodes import (
    MAX_DEPTH,
    MAX_NODES,
    And,
    Arithmetic,
    Clip,
    Compare,
    ComparisonOperator,
    Expression,
    Literal,
    Not,
    Operator,
    Or,
    Period,
    Where,
    negative,
    small_enough,
)
from dpnb._plan.expressions.periods import ANY_DATES, compared, date_constant
from dpnb._plan.expressions.rules import dtype_of
from dpnb._plan.expressions.text import words
from dpnb.copying import safe_repr
from dpnb.errors import PlanError
from dpnb.frame.coerce import as_condition, as_number, literal
from dpnb.frame.columns.recoding import chosen, is_null
from dpnb.frame.compatibility.functions import ufunc_result
from dpnb.frame.compatibility.unsupported import UnsupportedOperations
from dpnb.frame.view import TableView


class ColumnOperators(UnsupportedOperations):
    """An expression of columns: its operators each return another expression."""

    __slots__ = ("_node", "_view")
    __hash__ = None  # type: ignore[assignment]  # == builds a condition

    def __init__(self, view: TableView, node: Expression) -> None:
        self._view = view
        self._node = node
        if not small_enough(node):
            raise PlanError(
                f"expression: must have at most {MAX_DEPTH} levels and {MAX_NODES} parts; this one has more; group "
                "long sums in pairs, and use .isin([...]) for long lists of values"
            )
        dtype_of(node, view.schema)

    def _new(self, node: Expression) -> Self:
        return type(self)(self._view, node)

    def _description(self) -> str:
        return f"private column {words(self._node)}"

    @safe_repr
    def __repr__(self) -> str:
        kind = "condition" if isinstance(dtype_of(self._node, self._view.schema), Boolean) else "private column"
        return f"<{kind}: {words(self._node)}>"

    # --- operators ---------------------------------------------------------------------------------------------

    def _is_grouped(self) -> bool:
        """Whether aggregations of the column are for each group."""
        return False

    def _grouping(self) -> str:
        """The other groups as a message writes them after a column, ``.groupby(df['plan'])``; empty without them."""
        return ""

    def _refuse_groups(self, where: str) -> None:
        """Refuse a grouped column where a column of rows is used: its groups would be lost without notice."""
        if self._is_grouped():
            raise PlanError(
                f"{where}: {self!r} is grouped; compute with the column itself before grouping, as in "
                + self._example("df.assign(new={number} + {number2}).groupby({category_name})")
            )

    def _other(self, other: object, where: str) -> Expression:
        if isinstance(other, ColumnOperators):
            if not self._is_grouped():
                other._refuse_groups(where)
            self._view.refuse_other_rows(other._view, other, where)
            return other._node
        found = literal(other, f"{words(self._node)} {where}")
        return Literal(self._date_or_text(found.value, where)) if isinstance(found.value, str) else found

    def _compare(self, operator: ComparisonOperator, other: object) -> Self:
        if isinstance(other, str | date | np.datetime64):
            text = self._date_or_text(other, operator)
            if isinstance(self._node, Period):
                return self._new(compared(self._node, operator, text, self._dates()))
            other = text
        return self._new(without_constant(Compare(operator, self._node, self._other(other, operator))))

    def _date_or_text(self, value: object, where: str) -> str:
        """A text, or a date as a text, as it is compared with this column."""
        kind = dtype_of(self._node, self._view.schema)
        return date_constant(self._node, kind, str(constant(value, f"{words(self._node)} {where}")), self._dates())

    def _dates(self) -> Timestamp:
        """The type of the dates, of which this column is periods."""
        kind = dtype_of(self._node.inner, self._view.schema) if isinstance(self._node, Period) else None
        return kind if isinstance(kind, Timestamp) else ANY_DATES

    def _chosen(self, condition: Expression, one: object, other: object, verb: str) -> Self:
        """One of two values of these rows, of which one may be a null."""
        nodes = [None if is_null(side) else self._other(side, verb) for side in (one, other)]
        return self._new(chosen(condition, nodes[0], nodes[1], self._view.schema))

    def _extreme(self, other: object, keep: ComparisonOperator) -> Self:
        """The larger of two values with ``>=``, the smaller with ``<=``; also called by ``numpy.maximum``."""
        if isinstance(other, ColumnOperators):
            sides = (
                as_number(self._node, self._view.schema),
                as_number(self._other(other, "maximum"), self._view.schema),
            )
            return self._new(Where(Compare(keep, *sides), *sides))
        limit = number(other, "maximum or minimum")
        limits = (limit, None) if keep == ">=" else (None, limit)
        return self._new(Clip(as_number(self._node, self._view.schema), *limits))

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

    def __rfloordiv__(self, other: object) -> Self:
        return self._compute("//", other, reflected=True)

    def __rmod__(self, other: object) -> Self:
        return self._compute("%", other, reflected=True)

    def __rpow__(self, other: object) -> Self:
        return self._compute("**", other, reflected=True)

    def __and__(self, other: object) -> Self:
        return self._new(And(self._truth, self._condition(other, "&")))

    __rand__ = __and__

    def __or__(self, other: object) -> Self:
        return self._new(Or(self._truth, self._condition(other, "|")))

    __ror__ = __or__

    def __xor__(self, other: object) -> NoReturn:
        raise PlanError(f"^: is not offered; write (a & ~b) | (~a & b); got {self!r} ^ {other!r}")

    __rxor__ = __xor__

    def __invert__(self) -> Self:
        return self._new(Not(self._truth))

    @property
    def _truth(self) -> Expression:
        return as_condition(self._node, self._view.schema)

    def _column(self, other: object, verb: str) -> Expression:
        """Another column of the same table."""
        if isinstance(other, ColumnOperators):
            return self._other(other, verb)
        raise PlanError(f"{verb}: takes another column of this table, such as df['x']; got {other!r}")

    def _condition(self, other: object, operator: str) -> Expression:
        if isinstance(other, ColumnOperators):
            return as_condition(self._other(other, operator), self._view.schema)
        raise PlanError(
            f"{operator}: both sides must be conditions; got {type(other).__name__}; "
            f"put each comparison in parentheses, as in (a > 1) {operator} (b < 2)"
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return ufunc_result(ufunc, method, inputs, options, self)
