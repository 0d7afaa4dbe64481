"""Operators of columns under their pandas names: ``column.gt(1)`` is ``column > 1``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Self, cast

from dpnb.frame.columns.column_expr import ColumnExpr
from dpnb.frame.compatibility.docstrings import Method, describe_options, with_examples
from dpnb.frame.compatibility.options import check_options

COMPARED = "number, str, date or column\n    What the column is compared with; a column must have the same rows."
SECOND = "number or column\n    The second operand; a column must have the same rows."
FIRST = "number or column\n    The first operand; a column must have the same rows."


def _operator(operand: str, example: str, shown: str) -> Callable[[Method], Method]:
    """Refuse arguments of pandas that would change the result of an operator, and write the docstring."""

    def decorate(method: Method) -> Method:
        name = method.__name__

        @functools.wraps(method)
        def checked(self: NamedOperators, other: object, **options: object) -> object:
            if options:
                check_options(name, options, self._examples(), "level", "fill_value", "axis")
            return method(self, other)

        checked.__doc__ = f"{method.__doc__}\n\nParameters\n----------\nother : {operand}"
        return cast(Method, with_examples((example, shown))(checked))

    return decorate


@describe_options
class NamedOperators(ColumnExpr):
    """The methods of pandas that are operators; each builds the same expression as its operator."""

    __slots__ = ()

    @_operator(COMPARED, 'df["plan"].eq("free")', "<condition: plan == 'free'>")
    def eq(self, other: object, **options: object) -> Self:
        """``column == other``."""
        return self == other

    @_operator(COMPARED, 'df["plan"].ne("free")', "<condition: plan != 'free'>")
    def ne(self, other: object, **options: object) -> Self:
        """``column != other``."""
        return self != other

    @_operator(COMPARED, 'df["age"].gt(65)', "<condition: age > 65>")
    def gt(self, other: object, **options: object) -> Self:
        """``column > other``."""
        return self > other

    @_operator(COMPARED, 'df["age"].ge(65)', "<condition: age >= 65>")
    def ge(self, other: object, **options: object) -> Self:
        """``column >= other``."""
        return self >= other

    @_operator(COMPARED, 'df["age"].lt(65)', "<condition: age < 65>")
    def lt(self, other: object, **options: object) -> Self:
        """``column < other``."""
        return self < other

    @_operator(COMPARED, 'df["age"].le(65)', "<condition: age <= 65>")
    def le(self, other: object, **options: object) -> Self:
        """``column <= other``."""
        return self <= other

    @_operator(SECOND, 'df["age"].add(1)', "<private column: age + 1>")
    def add(self, other: object, **options: object) -> Self:
        """``column + other``."""
        return self + other

    @_operator(SECOND, 'df["age"].sub(1)', "<private column: age - 1>")
    def sub(self, other: object, **options: object) -> Self:
        """``column - other``."""
        return self - other

    @_operator(SECOND, 'df["age"].mul(2)', "<private column: age * 2>")
    def mul(self, other: object, **options: object) -> Self:
        """``column * other``."""
        return self * other

    @_operator(SECOND, 'df["age"].div(2)', "<private column: age / 2>")
    def div(self, other: object, **options: object) -> Self:
        """``column / other``."""
        return self / other

    @_operator(SECOND, 'df["age"].floordiv(10)', "<private column: age // 10>")
    def floordiv(self, other: object, **options: object) -> Self:
        """``column // other``."""
        return self // other

    @_operator(SECOND, 'df["age"].mod(10)', "<private column: age % 10>")
    def mod(self, other: object, **options: object) -> Self:
        """``column % other``."""
        return self % other

    @_operator(SECOND, 'df["age"].pow(2)', "<private column: age ** 2>")
    def pow(self, other: object, **options: object) -> Self:
        """``column ** other``."""
        return self**other

    @_operator(FIRST, 'df["age"].radd(1)', "<private column: 1 + age>")
    def radd(self, other: object, **options: object) -> Self:
        """``other + column``."""
        return other + self

    @_operator(FIRST, 'df["age"].rsub(1)', "<private column: 1 - age>")
    def rsub(self, other: object, **options: object) -> Self:
        """``other - column``."""
        return other - self

    @_operator(FIRST, 'df["age"].rmul(2)', "<private column: 2 * age>")
    def rmul(self, other: object, **options: object) -> Self:
        """``other * column``."""
        return other * self

    @_operator(FIRST, '(df["age"] + 1).rdiv(2)', "<private column: 2 / (age + 1)>")
    def rdiv(self, other: object, **options: object) -> Self:
        """``other / column``."""
        return other / self

    subtract, multiply, divide, truediv, rtruediv = sub, mul, div, div, rdiv
