"""Operators of columns under their pandas names: ``column.gt(1)`` is ``column > 1``."""

from __future__ import annotations

from typing import Self

from dpnb.frame.column_expr import ColumnExpr


class NamedOperators(ColumnExpr):
    """The methods of pandas that are operators; each builds the same expression as its operator."""

    __slots__ = ()

    def eq(self, other: object) -> Self:
        """``column == other``.

        Examples
        --------
        >>> df["plan"].eq("free")
        <condition: plan == 'free'>
        """
        return self == other

    def ne(self, other: object) -> Self:
        """``column != other``.

        Examples
        --------
        >>> df["plan"].ne("free")
        <condition: plan != 'free'>
        """
        return self != other

    def gt(self, other: object) -> Self:
        """``column > other``.

        Examples
        --------
        >>> df["age"].gt(65)
        <condition: age > 65>
        """
        return self > other

    def ge(self, other: object) -> Self:
        """``column >= other``.

        Examples
        --------
        >>> df["age"].ge(65)
        <condition: age >= 65>
        """
        return self >= other

    def lt(self, other: object) -> Self:
        """``column < other``.

        Examples
        --------
        >>> df["age"].lt(65)
        <condition: age < 65>
        """
        return self < other

    def le(self, other: object) -> Self:
        """``column <= other``.

        Examples
        --------
        >>> df["age"].le(65)
        <condition: age <= 65>
        """
        return self <= other

    def add(self, other: object) -> Self:
        """``column + other``.

        Examples
        --------
        >>> df["age"].add(1)
        <private column: age + 1>
        """
        return self + other

    def sub(self, other: object) -> Self:
        """``column - other``.

        Examples
        --------
        >>> df["age"].sub(1)
        <private column: age - 1>
        """
        return self - other

    def mul(self, other: object) -> Self:
        """``column * other``.

        Examples
        --------
        >>> df["age"].mul(2)
        <private column: age * 2>
        """
        return self * other

    def div(self, other: object) -> Self:
        """``column / other``.

        Examples
        --------
        >>> df["age"].div(2)
        <private column: age / 2>
        """
        return self / other

    def floordiv(self, other: object) -> Self:
        """``column // other``.

        Examples
        --------
        >>> df["age"].floordiv(10)
        <private column: age // 10>
        """
        return self // other

    def mod(self, other: object) -> Self:
        """``column % other``.

        Examples
        --------
        >>> df["age"].mod(10)
        <private column: age % 10>
        """
        return self % other

    def pow(self, other: object) -> Self:
        """``column ** other``.

        Examples
        --------
        >>> df["age"].pow(2)
        <private column: age ** 2>
        """
        return self**other

    def radd(self, other: object) -> Self:
        """``other + column``.

        Examples
        --------
        >>> df["age"].radd(1)
        <private column: 1 + age>
        """
        return other + self

    def rsub(self, other: object) -> Self:
        """``other - column``.

        Examples
        --------
        >>> df["age"].rsub(1)
        <private column: 1 - age>
        """
        return other - self

    def rmul(self, other: object) -> Self:
        """``other * column``.

        Examples
        --------
        >>> df["age"].rmul(2)
        <private column: 2 * age>
        """
        return other * self

    def rdiv(self, other: object) -> Self:
        """``other / column``.

        Examples
        --------
        >>> (df["age"] + 1).rdiv(2)
        <private column: 2 / (age + 1)>
        """
        return other / self

    subtract, multiply, divide, truediv, rtruediv = sub, mul, div, div, rdiv
