"""Operators of columns under their pandas names: ``column.gt(1)`` is ``column > 1``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from dpnb.frame.columns.column_expr import ColumnExpr
from dpnb.frame.compatibility.options import check_options


class NamedOperators(ColumnExpr):
    """The methods of pandas that are operators; each builds the same expression as its operator."""

    __slots__ = ()

    def _no_effect(self, verb: str, options: Mapping[str, object]) -> None:
        """Refuse arguments of pandas that would change the result of an operator."""
        if options:
            check_options(verb, options, self._examples(), "level", "fill_value", "axis")

    def eq(self, other: object, **options: object) -> Self:
        """``column == other``.

        Parameters
        ----------
        other : number, str, date or column
            What the column is compared with; a column must have the same rows.
        **options
            Arguments of pandas, with the values that change nothing here.

        Examples
        --------
        >>> df["plan"].eq("free")
        <condition: plan == 'free'>
        """
        self._no_effect("eq", options)
        return self == other

    def ne(self, other: object, **options: object) -> Self:
        """``column != other``.

        Parameters
        ----------
        other : number, str, date or column
            What the column is compared with; a column must have the same rows.
        **options
            Arguments of pandas, with the values that change nothing here.

        Examples
        --------
        >>> df["plan"].ne("free")
        <condition: plan != 'free'>
        """
        self._no_effect("ne", options)
        return self != other

    def gt(self, other: object, **options: object) -> Self:
        """``column > other``.

        Parameters
        ----------
        other : number, str, date or column
            What the column is compared with; a column must have the same rows.
        **options
            Arguments of pandas, with the values that change nothing here.

        Examples
        --------
        >>> df["age"].gt(65)
        <condition: age > 65>
        """
        self._no_effect("gt", options)
        return self > other

    def ge(self, other: object, **options: object) -> Self:
        """``column >= other``.

        Parameters
        ----------
        other : number, str, date or column
            What the column is compared with; a column must have the same rows.
        **options
            Arguments of pandas, with the values that change nothing here.

        Examples
        --------
        >>> df["age"].ge(65)
        <condition: age >= 65>
        """
        self._no_effect("ge", options)
        return self >= other

    def lt(self, other: object, **options: object) -> Self:
        """``column < other``.

        Parameters
        ----------
        other : number, str, date or column
            What the column is compared with; a column must have the same rows.
        **options
            Arguments of pandas, with the values that change nothing here.

        Examples
        --------
        >>> df["age"].lt(65)
        <condition: age < 65>
        """
        self._no_effect("lt", options)
        return self < other

    def le(self, other: object, **options: object) -> Self:
        """``column <= other``.

        Parameters
        ----------
        other : number, str, date or column
            What the column is compared with; a column must have the same rows.
        **options
            Arguments of pandas, with the values that change nothing here.

        Examples
        --------
        >>> df["age"].le(65)
        <condition: age <= 65>
        """
        self._no_effect("le", options)
        return self <= other

    def add(self, other: object, **options: object) -> Self:
        """``column + other``.

        Parameters
        ----------
        other : number or column
            The second operand; a column must have the same rows.
        **options
            Arguments of pandas, with the values that change nothing here.

        Examples
        --------
        >>> df["age"].add(1)
        <private column: age + 1>
        """
        self._no_effect("add", options)
        return self + other

    def sub(self, other: object, **options: object) -> Self:
        """``column - other``.

        Parameters
        ----------
        other : number or column
            The second operand; a column must have the same rows.
        **options
            Arguments of pandas, with the values that change nothing here.

        Examples
        --------
        >>> df["age"].sub(1)
        <private column: age - 1>
        """
        self._no_effect("sub", options)
        return self - other

    def mul(self, other: object, **options: object) -> Self:
        """``column * other``.

        Parameters
        ----------
        other : number or column
            The second operand; a column must have the same rows.
        **options
            Arguments of pandas, with the values that change nothing here.

        Examples
        --------
        >>> df["age"].mul(2)
        <private column: age * 2>
        """
        self._no_effect("mul", options)
        return self * other

    def div(self, other: object, **options: object) -> Self:
        """``column / other``.

        Parameters
        ----------
        other : number or column
            The second operand; a column must have the same rows.
        **options
            Arguments of pandas, with the values that change nothing here.

        Examples
        --------
        >>> df["age"].div(2)
        <private column: age / 2>
        """
        self._no_effect("div", options)
        return self / other

    def floordiv(self, other: object, **options: object) -> Self:
        """``column // other``.

        Parameters
        ----------
        other : number or column
            The second operand; a column must have the same rows.
        **options
            Arguments of pandas, with the values that change nothing here.

        Examples
        --------
        >>> df["age"].floordiv(10)
        <private column: age // 10>
        """
        self._no_effect("floordiv", options)
        return self // other

    def mod(self, other: object, **options: object) -> Self:
        """``column % other``.

        Parameters
        ----------
        other : number or column
            The second operand; a column must have the same rows.
        **options
            Arguments of pandas, with the values that change nothing here.

        Examples
        --------
        >>> df["age"].mod(10)
        <private column: age % 10>
        """
        self._no_effect("mod", options)
        return self % other

    def pow(self, other: object, **options: object) -> Self:
        """``column ** other``.

        Parameters
        ----------
        other : number or column
            The second operand; a column must have the same rows.
        **options
            Arguments of pandas, with the values that change nothing here.

        Examples
        --------
        >>> df["age"].pow(2)
        <private column: age ** 2>
        """
        self._no_effect("pow", options)
        return self**other

    def radd(self, other: object, **options: object) -> Self:
        """``other + column``.

        Parameters
        ----------
        other : number or column
            The first operand; a column must have the same rows.
        **options
            Arguments of pandas, with the values that change nothing here.

        Examples
        --------
        >>> df["age"].radd(1)
        <private column: 1 + age>
        """
        self._no_effect("radd", options)
        return other + self

    def rsub(self, other: object, **options: object) -> Self:
        """``other - column``.

        Parameters
        ----------
        other : number or column
            The first operand; a column must have the same rows.
        **options
            Arguments of pandas, with the values that change nothing here.

        Examples
        --------
        >>> df["age"].rsub(1)
        <private column: 1 - age>
        """
        self._no_effect("rsub", options)
        return other - self

    def rmul(self, other: object, **options: object) -> Self:
        """``other * column``.

        Parameters
        ----------
        other : number or column
            The first operand; a column must have the same rows.
        **options
            Arguments of pandas, with the values that change nothing here.

        Examples
        --------
        >>> df["age"].rmul(2)
        <private column: 2 * age>
        """
        self._no_effect("rmul", options)
        return other * self

    def rdiv(self, other: object, **options: object) -> Self:
        """``other / column``.

        Parameters
        ----------
        other : number or column
            The first operand; a column must have the same rows.
        **options
            Arguments of pandas, with the values that change nothing here.

        Examples
        --------
        >>> (df["age"] + 1).rdiv(2)
        <private column: 2 / (age + 1)>
        """
        self._no_effect("rdiv", options)
        return other / self

    subtract, multiply, divide, truediv, rtruediv = sub, mul, div, div, rdiv
