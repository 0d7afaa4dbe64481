"""Methods of a column that select rows, or that have no effect on a query, and its public properties."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, Self

from dpnb._plan.expressions.dtypes import Categorical, Numeric
from dpnb._plan.expressions.nodes import Compare, IsNull, Not
from dpnb._plan.expressions.rules import dtype_of
from dpnb._plan.expressions.text import words
from dpnb.errors import PlanError, UnsupportedError
from dpnb.frame.columns.column_expr import ColumnExpr
from dpnb.frame.compatibility.callers import refusal_for_caller
from dpnb.frame.compatibility.docstrings import describe_options
from dpnb.frame.compatibility.examples import own_words, type_words
from dpnb.frame.compatibility.options import check_options
from dpnb.frame.compatibility.remedies import REMEDIES
from dpnb.frame.compatibility.verbs import Pipe, applied
from dpnb.frame.view import TableView
from dpnb.schema import Key


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
