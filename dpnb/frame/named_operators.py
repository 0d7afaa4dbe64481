"""Operators of columns under their pandas names: ``column.gt(1)`` is ``column > 1``."""

from __future__ import annotations

from typing import Self

from dpnb.frame.column_expr import ColumnExpr


class NamedOperators(ColumnExpr):
    """The methods of pandas that are operators; each builds the same expression as its operator."""

    __slots__ = ()

    def eq(self, other: object) -> Self:
        """``column == other``."""
        return self == other

    def ne(self, other: object) -> Self:
        """``column != other``."""
        return self != other

    def gt(self, other: object) -> Self:
        """``column > other``."""
        return self > other

    def ge(self, other: object) -> Self:
        """``column >= other``."""
        return self >= other

    def lt(self, other: object) -> Self:
        """``column < other``."""
        return self < other

    def le(self, other: object) -> Self:
        """``column <= other``."""
        return self <= other

    def add(self, other: object) -> Self:
        """``column + other``."""
        return self + other

    def sub(self, other: object) -> Self:
        """``column - other``."""
        return self - other

    def mul(self, other: object) -> Self:
        """``column * other``."""
        return self * other

    def div(self, other: object) -> Self:
        """``column / other``."""
        return self / other

    def floordiv(self, other: object) -> Self:
        """``column // other``."""
        return self // other

    def mod(self, other: object) -> Self:
        """``column % other``."""
        return self % other

    def pow(self, other: object) -> Self:
        """``column ** other``."""
        return self**other

    def radd(self, other: object) -> Self:
        """``other + column``."""
        return other + self

    def rsub(self, other: object) -> Self:
        """``other - column``."""
        return other - self

    def rmul(self, other: object) -> Self:
        """``other * column``."""
        return other * self

    def rdiv(self, other: object) -> Self:
        """``other / column``."""
        return other / self

    subtract, multiply, divide, truediv, rtruediv = sub, mul, div, div, rdiv
