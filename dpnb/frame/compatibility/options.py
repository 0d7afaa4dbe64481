"""Keyword arguments of pandas that have no effect here, and what many docstrings have in common."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, TypedDict, TypeVar

from dpnb._plan.unreleased import did_you_mean
from dpnb.errors import PlanError
from dpnb.schema import plain

C = TypeVar("C")
Method = TypeVar("Method", bound=Callable[..., Any])

DESCRIPTIONS = {
    "axis": 'axis : {0, "index", "rows"}, default 0\n    Values are aggregated over rows.',
    "**options": "**options\n    Arguments of pandas, with the values that change nothing here.",
}
"""Parameters that mean the same in most methods of pandas-like classes."""


def describe_options(cls: type[C]) -> type[C]:
    """Describe `axis` and `options` in the docstrings of a class that have such a parameter and leave it out."""
    for name, method in vars(cls).items():
        text = inspect.cleandoc(getattr(method, "__doc__", None) or "")
        if name.startswith("_") or not inspect.isfunction(method) or "\nExamples\n" not in text:
            continue
        added = [
            description
            for parameter, description in DESCRIPTIONS.items()
            if parameter.strip("*") in method.__annotations__ and parameter not in text
        ]
        if added:
            first, others = re.split(r"\n\n(?=(?:Raises|Examples)\n)", text, maxsplit=1)
            heading = [] if "\nParameters\n" in text else ["\nParameters\n----------"]
            method.__doc__ = "\n".join([first, *heading, *added, "", others])
    return cls


def with_examples(*examples: tuple[str, str]) -> Callable[[Method], Method]:
    """Add examples to the docstring of a method: calls, and what they show."""

    def decorate(method: Method) -> Method:
        shown = "\n".join(f">>> {call}\n{result}" for call, result in examples)
        method.__doc__ = f"{inspect.cleandoc(method.__doc__ or '')}\n\nExamples\n--------\n{shown}\n"
        return method

    return decorate


def with_queries(call: str, described: str) -> Callable[[Method], Method]:
    """Add examples to the docstring of an aggregation: a call on the frame ``df``, and the same on its groups."""
    grouped = f'df.groupby("plan"){call}.description', repr(f"{described} by plan")
    return with_examples((f"df{call}.description", repr(described)), grouped)


class NoDefault:
    """The type of `NO_DEFAULT`."""

    def __repr__(self) -> str:
        return "<no default>"


NO_DEFAULT: Any = NoDefault()
"""The default of an argument for which None has a meaning."""


class PandasOptions(TypedDict, total=False):
    """Arguments of pandas' aggregations: accepted where they ask for what is computed anyway."""

    skipna: object
    numeric_only: object
    min_count: object
    dtype: object
    out: object
    keepdims: object
    interpolation: object
    method: object
    engine: object
    engine_kwargs: object


class AxisOptions(PandasOptions, total=False):
    """The same for aggregations whose first argument is another one."""

    axis: object


class GroupOptions(TypedDict, total=False):
    """Arguments of pandas' `groupby` that are accepted where they ask for what is computed anyway."""

    as_index: object
    sort: object
    observed: object
    dropna: object
    group_keys: object
    level: object
    axis: object


_ROWS = (None, 0, "index", "rows")
_OPERATORS = (
    *("eq", "ne", "gt", "ge", "lt", "le", "add", "sub", "mul", "div", "floordiv", "mod", "pow"),
    *("radd", "rsub", "rmul", "rdiv"),
)
_ROW_WISE = ("clip", "where", "mask", "replace")
_ACCEPTED: dict[str, tuple[object, ...]] = {
    "axis": _ROWS,
    "skipna": (True, None),
    "numeric_only": (True, False, None),
    "min_count": (0, -1),
    "dtype": (None,),
    "out": (None,),
    "keepdims": (False,),
    "interpolation": ("linear",),
    "method": ("linear", "single", "pearson"),
    "engine": (None, "cython"),
    "engine_kwargs": (None,),
    "as_index": (True, False),
    "sort": (True, False),
    "observed": (False,),
    "dropna": (True,),
    "group_keys": (True, False),
    "level": (None,),
    "limit": (None,),
    "downcast": (None,),
    "rownames": (None,),
    "colnames": (None,),
    "ascending": (False,),
    "subset": (None,),
    "bins": (None,),
    "inplace": (False,),
    "drop": (True, False),
    "errors": ("raise", "ignore"),
    "ignore_index": (True, False),
    "na_position": ("last", "first"),
    "kind": ("quicksort", "mergesort", "heapsort", "stable", None),
    "key": (None,),
    "thresh": (None,),
    "fill_value": (None,),
    "pivot_table.fill_value": (None, 0),
    "sort_values.na_position": ("last",),  # of the rows of a unit
    "raw": (True, False),
    "result_type": (None,),
    "copy": (True, False, None),
    "astype.errors": ("raise",),
    "left_on": (None,),
    "right_on": (None,),
    "left_index": (False,),
    "right_index": (False,),
    "indicator": (False,),
    "validate": (None,),
    "retbins": (False,),
    "precision": (3,),
    "include_lowest": (True,),
    "duplicates": ("raise",),
    "ordered": (True,),
    "columns": (None,),
    "min_periods": (None,),
    "locale": (None,),
    "ambiguous": ("raise",),
    "nonexistent": ("raise",),
    "prefix_sep": ("_",),
    "dummy_na": (False,),
    "sparse": (False,),
    "freq": (None,),
    "suffix": (None,),
    "fill_method": (None,),
    "na_option": ("keep",),
    "pct": (False,),
    "center": (False,),
    "win_type": (None,),
    "on": (None,),
    "closed": (None,),
    "step": (None,),
    "cumcount.ascending": (True,),
    "percentiles": (None,),
    "include": (None, "number"),
    "exclude": (None,),
}
"""The values of each argument that change nothing here; of one method, under ``method.argument``."""

_ONE_KEY = "the key has the same name in both tables; rename it in the public table, and use on="
_NO_INDEX = "tables are joined on columns; use on=, after .reset_index() of the public table"
_REMEDIES: dict[str, str] = {
    "axis": "values are aggregated over rows; combine columns of one row with arithmetic, as in {number} + {number2}",
    "skipna": "missing values never count; {self}.isna().sum() is their number",
    "observed": "which groups have rows is private, so groups without rows are included; choose groups with keys=[...]",
    "dropna": "missing values are in no group; {category}.isna().sum() is their number",
    "ascending": "groups are in the public order of their values; sort the answer, as in .release(...).sort_values()",
    "method": "only Pearson's correlation and linear quantiles are offered",
    "interpolation": "quantiles are read from a noisy tree, without a choice of interpolation",
    "inplace": "assign the result, as in df = df.drop(columns=[{number_name}])",
    "level": "there is no index; group by columns, as in df.groupby({category_name})",
    "percentiles": "the quartiles are described; use {number}.quantile([...]) for others",
    "include": "only numbers are described; use {category}.value_counts() for categories",
    "dummy_na": "a missing value is in none of the columns; {category}.isna() is a column for it",
    "fill_value": "missing values stay missing; fill them first, as in {self}.fillna(0)",
    "pivot_table.fill_value": "every combination of public values has an estimate",
    "astype.errors": "whether a column can be converted follows from its declared type; {self} stays as it is",
    "left_on": _ONE_KEY,
    "right_on": _ONE_KEY,
    "left_index": _NO_INDEX,
    "right_index": _NO_INDEX,
    "indicator": "with how='left', .isna() of a column of the public table shows which rows have no match",
    "validate": "that each key occurs once in a public table is always checked",
    "retbins": "the edges are public; give them as a list, as in dpnb.cut({number}, [0, 1, 2])",
    "precision": "the names of the bins have the digits of the edges; choose other names with labels=[...]",
    "include_lowest": "the first bin always includes its lower edge; leave values out by a condition, as in "
    "df[{number} > 1]",
    "duplicates": "the edges must differ; remove those that occur twice",
    "ordered": "the bins are always in the order of their edges",
    "columns": "one column is converted at a time, as in dpnb.get_dummies({category})",
    "get_dummies.dtype": "the columns are conditions, which count as 1 and 0; convert one with .astype(int)",
    "prefix_sep": "rename the columns of the result, as in .rename(columns=...)",
    **{f"{verb}.axis": "a column has only rows" for verb in (*_OPERATORS, *_ROW_WISE)},
    **{f"{verb}.inplace": "assign the result, as in df['new'] = {self}." + f"{verb}(...)" for verb in _ROW_WISE},
}
"""What to write instead of other values; for one method, under ``method.argument``."""


def check_options(verb: str, options: Mapping[str, object], examples: Mapping[str, str], *names: str) -> None:
    """Refuse arguments of pandas that are none of `names`, or whose values would change something."""
    for name, value in options.items():
        if name == "population" and name not in names:
            raise PlanError(f"{verb}: population= is of one column; write {examples['number']}.{verb}(population=True)")
        if name not in names:
            accepted = f"the arguments of pandas that are accepted are {', '.join(names)}" if names else "leave it out"
            raise PlanError(f"{verb}: has no argument {name!r}{did_you_mean(name, names)}; {accepted}")
        value = plain(value)
        own = f"{verb}.{name}"
        if not any(value is accepted or (type(value) is type(accepted) and value == accepted)
                   for accepted in _ACCEPTED.get(own) or _ACCEPTED[name]):  # fmt: skip
            remedy = _REMEDIES.get(own, _REMEDIES.get(name, "leave it out")).format_map(examples)
            raise PlanError(f"{verb}: {name}={value!r} is not offered; {remedy}")


AGGREGATION = tuple(AxisOptions.__annotations__)
"""The arguments of aggregations."""

GROUPING = tuple(GroupOptions.__annotations__)
"""The arguments of `groupby`."""

SORTING = ("axis", "inplace", "kind", "na_position", "ignore_index", "key")
"""The arguments of `sort_values` with one value each."""
