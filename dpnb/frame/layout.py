"""Methods of a frame that give another frame: columns chosen, renamed, converted or filled; rows without nulls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Self

from dpnb._plan.constants import constant, flag
from dpnb._plan.expressions.nodes import And, Expression, FillNull, IsNull, Not, Or
from dpnb._plan.expressions.periods import date_constant
from dpnb._plan.expressions.rules import dtype_of
from dpnb.errors import PlanError
from dpnb.frame.coerce import ColumnNames
from dpnb.frame.compatibility.callers import refusal_for_caller
from dpnb.frame.compatibility.examples import type_words, types_selected
from dpnb.frame.compatibility.options import SORTING, check_options, describe_options
from dpnb.frame.compatibility.unsupported import UnsupportedOperations
from dpnb.frame.view import TableView

if TYPE_CHECKING:
    import pandas as pd


@describe_options
class ColumnLayout(UnsupportedOperations):
    """The columns of a view: their names and declared types are public."""

    __slots__ = ("_view",)

    def __init__(self, view: TableView) -> None:
        self._view = view

    def _with(self, **changes: Any) -> Self:
        return type(self)(replace(self._view, **changes))

    def _of(self, view: TableView, columns: Mapping[str, Expression]) -> Self:
        """Some columns of another view."""
        return type(self)(replace(view, assigned=columns))

    @property
    def columns(self) -> list[str]:
        """Names of the view's columns."""
        return ColumnNames(self._view.columns)

    def keys(self) -> list[str]:
        """Names of the view's columns, as in pandas.

        Examples
        --------
        >>> df.keys()
        ['age', 'cost', 'plan', 'admitted', 'note']
        """
        return self.columns

    def __iter__(self) -> Iterator[str]:  # type: ignore[override]  # names are public
        refusal_for_caller(self._examples())
        return iter(self.columns)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._view.columns

    @property
    def dtypes(self) -> pd.Series[str]:
        """The declared type of each column with its bounds or categories, in words: public."""
        import pandas as pd  # imported when first used

        schema = self._view.schema
        kinds = {name: type_words(dtype_of(node, schema)) for name, node in self._view.columns.items()}
        return pd.Series(kinds, dtype=object)

    def copy(self, deep: bool = True) -> Self:
        """A view of the same rows and columns, to which columns can be added separately.

        Parameters
        ----------
        deep : bool, default True
            Has no effect.

        Examples
        --------
        >>> df.copy()
        <private table: age, cost, plan, admitted, note>
        """
        del deep
        return self._with()

    def rename(
        self,
        mapper: Mapping[str, str] | Callable[[str], str] | None = None,
        *,
        columns: Mapping[str, str] | Callable[[str], str] | None = None,
        **options: object,
    ) -> Self:
        """Rename columns, by a dict or a function of their public names.

        Parameters
        ----------
        mapper : dict or callable, optional
            With ``axis=1``, the same as `columns`.
        columns : dict or callable, optional
            New names by old name, or a function from old to new names.
        **options
            ``axis``, and arguments of pandas with the values that change nothing here.

        Raises
        ------
        PlanError
            There is no such column, or two columns would have one name.

        Examples
        --------
        >>> df.rename(columns={"cost": "dollars"}).columns
        ['age', 'dollars', 'plan', 'admitted', 'note']
        """
        axis = options.pop("axis", None)
        check_options("rename", options, self._examples(), "inplace", "errors")
        if axis not in (None, 1, "columns") or (axis is None and mapper is not None):
            raise PlanError(
                f"rename: rows have no names; use rename(columns={{{self._examples()['number_name']}: 'new'}})"
            )
        names = columns if columns is not None else mapper
        own = self._view.columns
        if isinstance(names, Mapping):
            for name in names:
                self._view.column(name)
            new: list[Any] = [names.get(name, name) for name in own]
        elif callable(names):
            new = [names(name) for name in own]
        else:
            raise PlanError(
                f"rename: takes a dict of names, as in columns={{{self._examples()['number_name']}: 'new'}}"
            )
        if not all(isinstance(name, str) and name != "" for name in new) or len(set(new)) < len(new):
            raise PlanError(f"rename: the columns must have different non-empty names; got {new!r}")
        return self._with(assigned=dict(zip(new, own.values(), strict=True)))

    def drop(self, labels: object = None, *, columns: object = None, **options: object) -> Self:
        """A view without some columns.

        Parameters
        ----------
        labels : str or list of str, optional
            With ``axis=1``, the same as `columns`.
        columns : str or list of str, optional
            Names of columns.
        **options
            ``axis`` and ``errors="ignore"``, and arguments of pandas with the values that change nothing here.

        Raises
        ------
        PlanError
            There is no such column, or rows would be dropped by their index.

        Examples
        --------
        >>> df.drop(columns=["note"]).columns
        ['age', 'cost', 'plan', 'admitted']
        """
        axis = options.pop("axis", None)
        check_options("drop", options, self._examples(), "inplace", "errors", "level")
        if columns is None and (labels is None or axis not in (1, "columns")):
            raise PlanError(
                f"drop: rows have no index; use drop(columns=[{self._examples()['number_name']}]), and select rows by "
                f"{self._example('df[{number} > 1]')}"
            )
        chosen = columns if columns is not None else labels
        names = list(chosen) if isinstance(chosen, list | tuple | set) else [chosen]
        if options.get("errors") != "ignore":
            for name in names:
                self._view.column(name)
        return self._with(assigned={name: node for name, node in self._view.columns.items() if name not in names})

    def filter(self, items: object = None, like: str | None = None, **options: object) -> Self:
        """The columns with given names, or whose names contain a text.  Rows are selected by ``df[condition]``.

        Parameters
        ----------
        items : list of str, optional
            Names of columns; those that the view does not have are left out.
        like : str, optional
            A part of the names.
        **options
            ``axis=1``, which has no effect.

        Raises
        ------
        PlanError
            Not exactly one of `items` and `like` is given.

        Examples
        --------
        >>> df.filter(["age", "cost"]).columns
        ['age', 'cost']
        """
        axis = options.pop("axis", None)
        check_options("filter", options, self._examples())
        if (items is None) == (like is None) or axis in (0, "index"):
            raise PlanError(
                f"filter: takes items=[{self._examples()['number_name']}] or like='a part of names'; select rows by "
                f"{self._example('df[{number} > 1]')}"
            )
        names = list(items) if isinstance(items, list | tuple) else [items]
        if like is not None:
            kept = [name for name in self._view.columns if like in name]
        else:
            kept = [name for name in names if isinstance(name, str) and name in self._view.columns]
        return self._with(assigned={name: self._view.columns[name] for name in kept})

    def select_dtypes(self, include: object = None, exclude: object = None) -> Self:
        """The columns of some declared types: ``"number"``, ``"category"``, ``"bool"`` or ``"datetime"``.

        Parameters
        ----------
        include, exclude : str or list of str, optional
            Names of types; at least one of the two is required.

        Raises
        ------
        PlanError
            A name of a type is unknown.

        Examples
        --------
        >>> df.select_dtypes("number").columns
        ['age', 'cost']
        """
        wanted, unwanted = (types_selected(names, "select_dtypes") for names in (include, exclude))
        if not wanted and not unwanted:
            raise PlanError("select_dtypes: give include= or exclude=, as in select_dtypes('number')")
        kinds = {name: type(dtype_of(node, self._view.schema)) for name, node in self._view.columns.items()}
        kept = [name for name, kind in kinds.items() if (not wanted or kind in wanted) and kind not in unwanted]
        return self._with(assigned={name: self._view.columns[name] for name in kept})

    def isna(self) -> Self:
        """A view of conditions: for each column whether its value is missing, as in ``df.isna().mean()``.

        Examples
        --------
        >>> df[["age"]].isna()["age"]
        <condition: age.isna()>
        """
        return self._with(assigned={name: IsNull(node) for name, node in self._view.columns.items()})

    def notna(self) -> Self:
        """A view of conditions: for each column whether its value is not missing.

        Examples
        --------
        >>> df[["age"]].notna()["age"]
        <condition: age.notna()>
        """
        return self._with(assigned={name: Not(IsNull(node)) for name, node in self._view.columns.items()})

    isnull, notnull = isna, notna

    def dropna(self, *, subset: object = None, how: str = "any", **options: object) -> Self:
        """The rows without missing values, in all columns or in a subset of them.

        Aggregations never count missing values of their column, so they do not need it.

        Parameters
        ----------
        subset : str or list of str, optional
            The columns; by default all.
        how : {"any", "all"}, default "any"
            Whether rows are left out that lack any, or all, of these values.

        Raises
        ------
        PlanError
            There is no such column, or `how` is neither ``"any"`` nor ``"all"``.

        Examples
        --------
        >>> df.dropna(subset=["age"])
        <private table: age, cost, plan, admitted, note where age.notna()>
        """
        check_options("dropna", options, self._examples(), "axis", "inplace", "ignore_index", "thresh")
        if how not in ("any", "all"):
            raise PlanError(f"dropna: how must be 'any' or 'all'; got {how!r}")
        names = list(self._view.columns) if subset is None else subset if isinstance(subset, list) else [subset]
        present: list[Expression] = [Not(IsNull(self._view.column(name))) for name in names]
        if not present:
            raise PlanError("dropna: subset= must name at least one column")
        return type(self)(self._view.filtered(_balanced(And if how == "any" else Or, present)))

    def fillna(self, value: object, **options: object) -> Self:
        """Replace missing values by a constant for each column, given as a dict.

        Parameters
        ----------
        value : dict
            The constant for each column, by name.

        Raises
        ------
        PlanError
            There is no such column, or the constant does not fit its type.

        Examples
        --------
        >>> df.fillna({"age": 0})["age"]
        <private column: age.fillna(0)>
        """
        check_options("fillna", options, self._examples(), "axis", "inplace")
        if not isinstance(value, Mapping):
            raise PlanError(
                f"fillna: columns have different types, so it takes a dict, as in "
                f"fillna({{{self._examples()['number_name']}: {value!r}}})"
            )
        columns = dict(self._view.columns)
        for name, own in value.items():
            node, filled = self._view.column(name), constant(own, f"fillna: {name}")
            if isinstance(filled, str):
                filled = date_constant(node, dtype_of(node, self._view.schema), filled)
            columns[name] = FillNull(node, filled)
            dtype_of(columns[name], self._view.schema)
        return self._with(assigned=columns)

    def reset_index(self, **options: object) -> Self:
        """The same view: rows have no index.

        Examples
        --------
        >>> df.reset_index()
        <private table: age, cost, plan, admitted, note>
        """
        check_options("reset_index", options, self._examples(), "drop", "level", "inplace")
        return self._with()

    def sort_index(self, **options: object) -> Self:
        """The same view: no query depends on the order of rows.

        Examples
        --------
        >>> df.sort_index()
        <private table: age, cost, plan, admitted, note>
        """
        options.pop("ascending", None)
        check_options("sort_index", options, self._examples(), "axis", "inplace", "kind", "na_position", "ignore_index")
        return self._with()

    def sort_values(self, by: object, **options: object) -> Self:
        """The same rows, those of each privacy unit in this order, for ``.shift()``, ``.cumsum()``, ``.first()``, ...

        Ties are in a fixed order; a row without a value is in no such computation.  Nothing else depends on an order.

        Parameters
        ----------
        by : str or list of str
            Names of columns: numbers, dates or categories.  The name of the privacy unit has no effect.
        **options
            ``ascending``, True or False or a list of these; arguments of pandas that change nothing here.

        Raises
        ------
        PlanError
            There is no such column, or `ascending` has another form.

        Examples
        --------
        >>> df.sort_values("age")
        <private table: age, cost, plan, admitted, note>
        """
        ascending = options.pop("ascending", True)
        check_options("sort_values", options, self._examples(), *SORTING)
        names = by if isinstance(by, list) else [by]
        up = ascending if isinstance(ascending, list | tuple) else [ascending] * len(names)
        if len(up) != len(names):
            raise PlanError(f"sort_values: ascending must be one value, or one for each column; got {ascending!r}")
        return type(self)(self._view.sorted_by(names, [not flag(one, "ascending") for one in up]))


def _balanced(operator: type[And | Or], conditions: list[Expression]) -> Expression:
    """Many conditions as one, in a tree of small depth."""
    while len(conditions) > 1:
        pairs = [conditions[start : start + 2] for start in range(0, len(conditions), 2)]
        conditions = [reduce(operator, pair) for pair in pairs]
    return conditions[0]
