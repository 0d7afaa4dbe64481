"""Methods of a column: operators under their pandas names, selection of rows, and what has no effect on a query."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NoReturn, Self, cast

from dpnb._plan.expressions.dtypes import Categorical, Numeric
from dpnb._plan.expressions.nodes import Compare, IsNull, Not
from dpnb._plan.expressions.rules import dtype_of
from dpnb._plan.expressions.text import words
from dpnb.errors import PlanError, UnsupportedError
from dpnb.frame.columns.column_expr import ColumnExpr
from dpnb.frame.compatibility.callers import refusal_for_caller
from dpnb.frame.compatibility.calls import REMEDIES
from dpnb.frame.compatibility.examples import own_words, type_words
from dpnb.frame.compatibility.functions import Pipe, applied
from dpnb.frame.compatibility.options import Method, check_options, describe_options, with_examples
from dpnb.frame.view import TableView
from dpnb.schema import Key

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


@describe_options
class ColumnMethods(Pipe, ColumnExpr):
    """A column with the methods of pandas that are neither row-wise functions nor aggregations."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """Name of the column in its view; an expression in words."""
        return self._view.name_of(self._node)

    @property
    def dtype(self) -> str:
        """The declared type, with bounds or categories: public."""
        refusal_for_caller(self._examples())  # a library that asks for it, as patsy does of C(x), wants one of numpy's
        return type_words(dtype_of(self._node, self._view.schema))

    def __bool__(self) -> NoReturn:
        shown = words(self._node)
        if isinstance(self._node, Compare):
            column = own_words(self._node.left, self._view)
            is_number = isinstance(dtype_of(self._node.left, self._view.schema), Numeric)
            condition = f"{column} {self._node.operator} {words(self._node.right)}"
            chain = f", and write a chain such as 1 < a < 2 as {column}.between(1, 2)" if is_number else ""
            choice = f"choose values with {column}.where({condition}, 0) instead of if and else, " if is_number else ""
            raise PlanError(
                f"{shown}: the truth value of a private column is ambiguous; {choice}select rows with df[{condition}], "
                f"combine conditions with &, | and ~ in parentheses instead of and, or and not{chain}"
            )
        raise PlanError(
            f"{shown}: the truth value of a private column is ambiguous; combine conditions with &, | and ~ in "
            "parentheses, as in " + self._example("({number} > 1) & {condition}") + ", not with and, or, not"
        )

    def apply(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Self:
        """The column that a function builds, such as ``lambda x: x**2`` or ``np.sqrt``.

        The function is called once and receives the column, never a value of a row; so it can use arithmetic and the
        methods of columns, but no ``if``.

        Parameters
        ----------
        func : callable
            Called once; receives the column, never a value of a row.
        *args, **kwargs
            Further arguments of the function.

        Raises
        ------
        UnsupportedError
            The function returns no column.

        Examples
        --------
        >>> df["age"].apply(lambda x: x**2)
        <private column: age ** 2>
        """
        refusal = f".apply of {self._description()}: {self._example(REMEDIES['apply'])}"
        built: Self = applied(func, self, args, kwargs, type(self), refusal)
        return built

    def unique(self) -> list[Key]:
        """The declared values of a column of categories: public, whether rows have them or not.

        Raises
        ------
        UnsupportedError
            The column has no declared values: which values the rows have is private.

        Examples
        --------
        >>> df["plan"].unique()
        ['free', 'paid']
        """
        kind = dtype_of(self._node, self._view.schema)
        if not isinstance(kind, Categorical):
            raise UnsupportedError(f".unique of {self._description()}: {self._example(REMEDIES['unique'])}")
        return list(kind.values)

    def nunique(self, **options: object) -> int:
        """Number of the declared values of a column of categories: public, whether rows have them or not.

        Raises
        ------
        UnsupportedError
            The column has no declared values: how many values the rows have is private.

        Examples
        --------
        >>> df["plan"].nunique()
        2
        """
        if not isinstance(dtype_of(self._node, self._view.schema), Categorical):
            raise UnsupportedError(f".nunique of {self._description()}: {self._example(REMEDIES['nunique'])}")
        check_options("nunique", options, self._examples(), "dropna")
        return len(self.unique())

    def dropna(self, **options: object) -> Self:
        """Only the rows with a value in the column; aggregations never count missing values, so they do not need it.

        Examples
        --------
        >>> df["age"].dropna()
        <private column: age>
        """
        check_options("dropna", options, self._examples(), "axis", "inplace", "ignore_index")
        return self._of_rows(self._view.filtered(Not(IsNull(self._node))))

    def copy(self, deep: bool = True) -> Self:
        """The same column: columns are immutable.

        Parameters
        ----------
        deep : bool, default True
            Has no effect.

        Examples
        --------
        >>> df["age"].copy()
        <private column: age>
        """
        del deep
        return self

    def reset_index(self, **options: object) -> Self:
        """The same column: rows have no index.

        Examples
        --------
        >>> df["age"].reset_index()
        <private column: age>
        """
        check_options("reset_index", options, self._examples(), "drop", "level", "inplace")
        return self

    def sort_values(self, **options: object) -> Self:
        """The same column: no query depends on the order of rows.

        Parameters
        ----------
        **options
            Arguments of pandas, which have no effect.

        Examples
        --------
        >>> df["age"].sort_values()
        <private column: age>
        """
        del options
        return self

    sort_index = sort_values

    def _of_rows(self, view: TableView) -> Self:
        """The same column of other rows."""
        return type(self)(view, self._node)
