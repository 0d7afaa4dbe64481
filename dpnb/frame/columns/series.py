"""One column of a view, also of a grouped one, or an expression of its columns, with its aggregations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, NoReturn, Self, Unpack

from dpnb._plan.constants import flag
from dpnb._plan.expressions.nodes import Expression
from dpnb._plan.expressions.text import words
from dpnb._plan.measurements import AnyView, Count, Measured, PlainView, Proportions
from dpnb._plan.plan import GroupLevel
from dpnb.copying import safe_repr
from dpnb.errors import PlanError, UnsupportedError
from dpnb.frame.coerce import aggregation_for, joint_aggregation
from dpnb.frame.columns.aggregations import counted
from dpnb.frame.columns.bins import Histograms, counted_groups, public_keys, shares_within
from dpnb.frame.columns.column_expr import ColumnExpr, filtered, groups_of
from dpnb.frame.compatibility.calls import REMEDIES
from dpnb.frame.compatibility.examples import examples, own_words
from dpnb.frame.compatibility.functions import applied, is_unknown_function, verb_name, verb_names
from dpnb.frame.compatibility.options import (
    AGGREGATION,
    GROUPING,
    NO_DEFAULT,
    GroupOptions,
    check_options,
    describe_options,
)
from dpnb.frame.view import TableView
from dpnb.query.query import Query
from dpnb.schema import Key


@describe_options
class Series(Histograms):
    """One column of a view, or an expression of its columns.

    Examples
    --------
    >>> df["age"].mean().description
    'mean of age'
    """

    __slots__ = ()

    def __getitem__(self, key: object) -> Series:
        """Select the rows for which a condition is true."""
        if isinstance(key, ColumnExpr):
            return Series(filtered(self._view, key), self._node)
        raise PlanError(
            f"{words(self._node)}[...]: takes a condition, as in {self._example('{self}[{number} > 1]')}; got {key!r}; "
            "single rows are never shown"
        )

    def _examples(self) -> Mapping[str, str]:
        return examples(self._view, self._node)

    def value_counts(
        self,
        normalize: bool = False,
        keys: object = None,
        *,
        bins: object = None,
        weights: object = None,
        **options: object,
    ) -> Query:
        """Rows of each public value, in the order in which the values are declared.

        Parameters
        ----------
        normalize : bool, default False
            Shares of the rows instead of counts.
        keys : list, data frame or answer, optional
            The public values of a text column.
        bins : int or list of float, optional
            Count numbers in bins of `dpnb.cut`.
        weights : str or column, optional
            A number of at least 0 as which each row counts, instead of 1.
        **options
            ``sort`` and ``ascending`` of pandas, with the values that change nothing here: the answer is sorted by the
            noisy counts afterwards.  With ``dropna=False`` missing values of a category or of bins are a group too.

        Raises
        ------
        PlanError
            The values are not public, or an argument is not offered.

        Examples
        --------
        >>> df["plan"].value_counts().description
        'count of rows by plan'
        """
        by = counted_groups(self, bins, options)
        view = Proportions() if flag(normalize, "normalize") else PlainView()
        return self._view.query(counted(self._view, weights), view, by, public_keys(self._view, by, keys))

    def agg(self, func: object = None, **named: object) -> Query:
        """One aggregation by name, or several in one charge, as in ``agg(["mean", "std"])`` or ``agg(m="mean")``.

        Parameters
        ----------
        func : str, list, dict or function, optional
            A dict maps names of the answer to aggregations.  A function builds an aggregation, as in
            ``agg(lambda x: x.mean())``; it receives the column, never values.
        **named
            Further names and aggregations.

        Raises
        ------
        PlanError
            There is no such aggregation.

        Examples
        --------
        >>> df["age"].agg(["mean", "std"]).description
        'mean of age, sample standard deviation of age'
        """
        self._checked("agg", {name: named.pop(name) for name in AGGREGATION if name in named})
        if func is None or isinstance(func, Mapping):
            verbs = {str(name): verb_name(verb) for name, verb in {**(func or {}), **named}.items()}
            if not verbs:
                raise PlanError(f"agg: names at least one aggregation, as in {self._example('{self}.agg([...])')}")
            return self._query(*joint_aggregation([(name, self._agg_node(v), v) for name, v in verbs.items()], {}))
        if named:
            raise PlanError(f"agg: takes one aggregation or a list, or named ones; got both, {', '.join(named)}")
        if is_unknown_function(func):
            return self._built(func)
        if isinstance(func, str) or not isinstance(func, Iterable):
            return self._query(*aggregation_for(verb_name(func), self._agg_node(func)))
        return self._query(*joint_aggregation([(v, self._agg_node(v), v) for v in verb_names(func, "agg")], {}))

    aggregate = agg

    def _built(self, func: object) -> Query:
        """The aggregation that a function builds from the column."""
        refusal = f".agg of {self._description()}: takes names such as 'mean', or a function that builds an " + (
            "aggregation, as in " + self._example("{self}.agg(lambda x: x.mean())")
        )
        built: Query = applied(func, self, (), {}, Query, refusal)
        return built

    def map(
        self, func: object = NO_DEFAULT, na_action: object = None, *, arg: object = NO_DEFAULT, **options: object
    ) -> Self:
        """The value of a public dict for each value of the column; missing for a value that is not in the dict.

        Parameters
        ----------
        func : dict or callable
            From categories, texts, conditions or whole numbers to numbers, texts or truth values.  Numbers give a
            number with their bounds, texts give categories, and truth values a condition.  A key that the column
            cannot have is refused.  A function is used as in `apply`.
        na_action : {None, "ignore"}, default None
            Has no effect: a missing value stays missing, unless the dict has a missing value as a key.
        arg : dict or callable, optional
            The name of `func` before pandas 3.

        Raises
        ------
        PlanError
            A key that is not a declared category, or values of different kinds.
        UnsupportedError
            A function that cannot be written with the methods of columns.

        Examples
        --------
        >>> df["plan"].map({"free": 0, "paid": 1})
        <private column: plan.map({'free': 0, 'paid': 1})>
        """
        given = self._map_argument(func, arg, options)
        if callable(given):
            with suppress(UnsupportedError):  # then a dict is what works
                return self.apply(given)
        return super().map(given, na_action)

    def groupby(self, by: object = None, keys: object = None, **options: Unpack[GroupOptions]) -> GroupedSeries:
        """Split the column into groups; see `Frame.groupby`.

        Parameters
        ----------
        by : column, or list of columns
            Columns of the same rows with public values, as for `dpnb.Frame.groupby`.
        keys : list, data frame or answer, optional
            The public groups, as for `dpnb.Frame.groupby`.

        Examples
        --------
        >>> df["cost"].groupby(df["plan"]).mean().description
        'mean of cost by plan'
        """
        check_options("groupby", options, self._examples(), *GROUPING)
        groups = groups_of(self._view, by)
        return GroupedSeries(self._view, self._node, groups, public_keys(self._view, groups, keys))


class GroupedSeries(Series):
    """One column of a grouped view: the aggregations of a series, for each group.

    Only aggregations are offered; compute a column before grouping, with ``.assign()``.

    Examples
    --------
    >>> df.groupby("plan")["cost"]
    <private column by plan>
    >>> df.groupby("plan")["cost"].mean().description
    'mean of cost by plan'
    """

    __slots__ = ("_by", "_keys")

    def __init__(
        self, view: TableView, node: Expression, by: tuple[GroupLevel, ...], keys: tuple[tuple[Key, ...], ...] | None
    ) -> None:
        super().__init__(view, node)
        self._by, self._keys = by, keys

    def _query(self, aggregation: Measured, view: AnyView) -> Query:
        return self._view.query(aggregation, view, self._by, self._keys)

    def _is_grouped(self) -> bool:
        return True

    def _grouping(self) -> str:
        others = [level.expression for level in self._by if level.expression != self._node]
        levels = [own_words(expression, self._view) for expression in others]
        listed = ", ".join(levels)
        return listed and (f".groupby({listed})" if len(levels) == 1 else f".groupby([{listed}])")

    def _new(self, node: Expression) -> Any:
        raise PlanError(
            f"{self._description()}: a grouped column can only be aggregated; compute it before "
            "grouping, with .assign()"
        )

    def _of_rows(self, view: TableView) -> NoReturn:
        del view
        raise PlanError(
            f"{self._description()}: filter before grouping, as in {self._example('df[{self}.notna()].groupby(...)')}"
        )

    def groupby(self, by: object = None, keys: object = None, **options: Unpack[GroupOptions]) -> NoReturn:
        """Not offered for groups: group by several columns at once.

        Examples
        --------
        >>> df.groupby("plan")["cost"].groupby(df["age"] > 65)
        Traceback (most recent call last):
            ...
        dpnb.errors.PlanError: private column by plan: is grouped already; group by several columns at once, as a list
        """
        raise PlanError(f"{self._description()}: is grouped already; group by several columns at once, as a list")

    def __getitem__(self, key: object) -> NoReturn:
        raise PlanError(
            f"{self._description()}[...]: filter before grouping, as in "
            f"{self._example('df[{number} > 1].groupby(...)')}; got {key!r}"
        )

    def value_counts(
        self,
        normalize: bool = False,
        keys: object = None,
        *,
        bins: object = None,
        weights: object = None,
        **options: object,
    ) -> Query:
        """Rows of each public value in each group; with `normalize` as shares of the group's rows.

        Parameters
        ----------
        normalize : bool, default False
            Shares of the rows of each group instead of counts.
        keys : None
            Must be None: the keys of pairs are given to `dpnb.Frame.groupby`.
        bins : int or list of float, optional
            Count numbers in bins of `dpnb.cut`.
        weights : str or column, optional
            As for `Series.value_counts`.
        **options
            Arguments of pandas, with the values that change nothing here.

        Examples
        --------
        >>> df.groupby("plan")["age"].value_counts(bins=[0, 18, 65, 100]).description
        'count of rows by plan, cut(age, [0, 18, 65, 100])'
        """
        by = (*self._by, *counted_groups(Series(self._view, self._node), bins, options))
        if keys is not None or self._keys is not None:
            raise PlanError(
                f"{self._description()}: with keys=, list the pairs, as in "
                f"df.groupby([..., {own_words(self._node, self._view)}], keys=[...]).count()"
            )
        public_keys(self._view, by, None)
        view = shares_within(self._view, by, len(self._by)) if flag(normalize, "normalize") else PlainView()
        return self._view.query(counted(self._view, weights), view, by)

    def size(self) -> Query:
        """Number of rows in each group, nulls included; the same query as `dpnb.GroupBy.size`.

        Examples
        --------
        >>> df.groupby("plan")["age"].size().description
        'count of rows by plan'
        """
        return self._query(Count(), PlainView())

    def histogram(self, bins: object = 10) -> Query:
        """Not offered for groups: group by the bins too.

        Examples
        --------
        >>> df.groupby("plan")["age"].histogram(bins=5)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        dpnb.errors.PlanError: private column by plan: histogram is not offered for groups...
        """
        raise PlanError(
            f"{self._description()}: histogram is not offered for groups; use df.groupby([..., "
            f"dpnb.cut({own_words(self._node, self._view)}, {bins!r})]).count()"
        )

    def apply(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """The aggregation that a function builds, as in ``apply(lambda x: x.mean())``; it receives the column.

        Parameters
        ----------
        func : callable
            Called once; receives the column with its groups, never values.
        *args, **kwargs
            Further arguments of the function.

        Examples
        --------
        >>> df.groupby("plan")["cost"].apply(lambda column: column.mean()).description
        'mean of cost by plan'
        """
        refusal = f".apply of {self._description()}: takes an aggregation, as in " + self._example(
            "df.groupby(...)[{number_name}].apply(lambda x: x.mean())"
        )
        return applied(func, self._inside(), args, kwargs, Query, refusal)

    def _built(self, func: object) -> Query:
        built: Query = self.apply(func)  # type: ignore[arg-type]  # `apply` refuses what is no function
        return built

    def _inside(self) -> GroupedExpression:
        """The column as the argument of a function, which can compute with it before it aggregates."""
        return GroupedExpression(self._view, self._node, self._by, self._keys)

    def nunique(self, **options: object) -> NoReturn:
        """Not offered for groups: which values they have is private.

        Examples
        --------
        >>> df.groupby("plan")["cost"].nunique()  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        dpnb.errors.UnsupportedError: .nunique of private column by plan: depends on which values occur, which is...
        """
        raise UnsupportedError(f".nunique of {self._description()}: {self._example(REMEDIES['nunique'])}")

    def find_bounds(self) -> NoReturn:
        """Not offered for groups: bounds are public for the whole column.

        Examples
        --------
        >>> df.groupby("plan")["cost"].find_bounds()  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        dpnb.errors.PlanError: private column by plan: find_bounds is not offered for groups...
        """
        raise PlanError(
            f"{self._description()}: find_bounds is not offered for groups, since bounds apply to the whole column; "
            f"use {own_words(self._node, self._view)}.find_bounds(), or filter the rows first"
        )

    def _description(self) -> str:
        return f"private column by {', '.join(group.name for group in self._by)}"

    @safe_repr
    def __repr__(self) -> str:
        return f"<{self._description()}>"


class GroupedExpression(GroupedSeries):
    """A grouped column inside a function of ``apply``: expressions of it have the same groups."""

    __slots__ = ()

    def _new(self, node: Expression) -> Any:
        return type(self)(self._view, node, self._by, self._keys)
