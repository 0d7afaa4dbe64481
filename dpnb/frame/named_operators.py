"""Operators of columns under their pandas names: ``column.gt(1)`` is ``column > 1``."""

from __future__ import annotations

from typing import TypeVar

from dpnb.frame.column_expr import ColumnExpr

C = TypeVar("C", bound=ColumnExpr)


class NamedOperators:
    """The methods of pandas that are operators; each builds the same expression as its operator."""

    __slots__ = ()

    def eq(self: C, other: object) -> C:
        """``column == other``."""
        return self == other

    def ne(self: C, other: object) -> C:
        """``column != other``."""
        return self != other

    def gt(self: C, other: object) -> C:
        """``column > other``."""
        return self > other

    def ge(self: C, other: object) -> C:
        """``column >= other``."""
        return self >= other

    def lt(self: C, other: object) -> C:
        """``column < other``."""
        return self < other

    def le(self: C, other: object) -> C:
        """``column <= other``."""
        return self <= other

    def add(self: C, other: object) -> C:
        """``column + other``."""
        return self + other

    def sub(self: C, other: object) -> C:
        """``column - other``."""
        return self - other

    def mul(self: C, other: object) -> C:
        """``column * other``."""
        return self * other

    def div(self: C, other: object) -> C:
        """``column / other``."""
        return self / other

    def floordiv(self: C, other: object) -> C:
        """``column // other``."""
        return self // other

    def mod(self: C, other: object) -> C:
        """``column % other``."""
        return self % other

    def pow(self: C, other: object) -> C:
        """``column ** other``."""
        return self**other

    def radd(self: C, other: object) -> C:
        """``other + column``."""
        return other + self

    def rsub(self: C, other: object) -> C:
        """``other - column``."""
        return other - self

    def rmul(self: C, other: object) -> C:
        """``other * column``."""
        return other * self

    def rdiv(self: C, other: object) -> C:
        """``other / column``."""
        return other / self

    subtract, multiply, divide, truediv, rtruediv = sub, mul, div, div, rdiv
