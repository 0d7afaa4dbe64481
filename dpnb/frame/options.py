"""Keyword arguments of pandas that have no effect here: accepted; any other value of them is refused by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from dpnb._plan.schema import plain
from dpnb._plan.suggestions import did_you_mean
from dpnb.errors import PlanError


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
    "margins_name": ("All",),
    "ascending": (False,),
    "subset": (None,),
    "bins": (None,),
    "deep": (True, False),
    "inplace": (False,),
    "drop": (True, False),
    "errors": ("raise", "ignore"),
    "ignore_index": (True, False),
    "na_position": ("last", "first"),
    "kind": ("quicksort", "mergesort", "heapsort", "stable", None),
    "key": (None,),
    "thresh": (None,),
    "margins": (False,),
    "fill_value": (None, 0),
    "prefix_sep": ("_",),
    "dummy_na": (False,),
    "sparse": (False,),
    "percentiles": (None,),
    "include": (None, "number"),
    "exclude": (None,),
}
"""The values of each argument that change nothing here."""

_REMEDIES: dict[str, str] = {
    "axis": "values are aggregated over rows; combine columns of one row with arithmetic, as in {number} + {number2}",
    "skipna": "missing values never count; {self}.isna().sum() is their number",
    "observed": "which groups have rows is private, so groups without rows are included; choose groups with keys=[...]",
    "dropna": "missing values are in no group; {category}.isna().sum() is their number",
    "ascending": "groups are in the public order of their values; sort the answer, as in .release(...).sort_values()",
    "method": "only Pearson's correlation and linear quantiles are offered",
    "interpolation": "quantiles are read from a noisy tree, without a choice of interpolation",
    "inplace": "assign the result, as in df = df.drop(columns=[{number_name}])",
    "margins": "totals are queries of their own; release df.count() or df[{number_name}].mean() for them",
    "level": "there is no index; group by columns, as in df.groupby({category_name})",
    "percentiles": "the quartiles are described; use {number}.quantile([...]) for others",
    "include": "only numbers are described; use {category}.value_counts() for categories",
    "dummy_na": "a missing value is in none of the columns; {category}.isna() is a column for it",
}
"""What to write instead of other values."""


def check_options(verb: str, options: Mapping[str, object], examples: Mapping[str, str], *names: str) -> None:
    """Refuse arguments of pandas that would change something.

    Parameters
    ----------
    verb : str
        Name of the method, for the message.
    options : mapping
        The arguments.
    examples : mapping
        The columns for examples; see `dpnb.frame.examples.examples`.
    *names : str
        The arguments that the method knows.

    Raises
    ------
    PlanError
        The method has no such argument, or its value would change something.
    """
    for name, value in options.items():
        if name not in names:
            accepted = f"the arguments of pandas that are accepted are {', '.join(names)}" if names else "leave it out"
            raise PlanError(f"{verb}: has no argument {name!r}{did_you_mean(name, names)}; {accepted}")
        value = plain(value)
        if not any(value is accepted or (type(value) is type(accepted) and value == accepted)
                   for accepted in _ACCEPTED[name]):  # fmt: skip
            remedy = _REMEDIES.get(name, "leave it out").format_map(examples)
            raise PlanError(f"{verb}: {name}={value!r} is not offered; {remedy}")


AGGREGATION = tuple(AxisOptions.__annotations__)
"""The arguments of aggregations."""

GROUPING = tuple(GroupOptions.__annotations__)
"""The arguments of `groupby`."""
