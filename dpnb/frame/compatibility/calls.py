"""A call of a library's function as the analyst wrote it, and what to write instead of an operation of pandas.

What to write instead is by the name of an operation that a private table does not offer.  The texts are templates for
`dpnb.frame.compatibility.examples.examples`: each names something that works, with the analyst's columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dpnb._plan.expressions.dtypes import Numeric
from dpnb._plan.expressions.rules import dtype_of
from dpnb._plan.expressions.text import as_code

MAX_WRITTEN = 200
"""Characters of a constant that is repeated."""

_UNKNOWN: Any = object()


class Unwritten(Exception):  # noqa: N818  (caught where counterparts are written)
    """An argument is missing, or cannot be written as code."""


@dataclass(frozen=True)
class Call:
    """A function that was called, with its arguments by name and the variables of the code that called it."""

    library: str
    function: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[str, Any] = field(default_factory=dict)

    @property
    def model(self) -> str:
        """The class whose method was called; empty for a function."""
        names = ("self", "cls", *(["estimator"] if self.library == "sklearn" else []))
        owner = next((self.arguments[name] for name in names if name in self.arguments), None)
        return "" if owner is None else (owner if isinstance(owner, type) else type(owner)).__name__

    @property
    def words(self) -> str:
        """What was called, in a message: a model is made by several methods."""
        public = "" if self.function.startswith("_") or self.model else self.function
        return self.model or public

    def value(self, *names: str) -> Any:
        """The first of some arguments that was given."""
        given = [self.arguments[name] for name in names if self.arguments.get(name) is not None]
        if not given:
            raise Unwritten
        return given[0]

    def code(self, *names: str) -> str:
        """The first of some arguments that was given, as code."""
        return self.written(self.value(*names))

    def option(self, name: str, default: object = None) -> str:
        """``, name=value`` for an argument that differs from its default; otherwise an empty text."""
        value = self.arguments.get(name, default)
        return "" if value is None or value is default or value == default else f", {name}={self.written(value)}"

    def frame(self, value: Any) -> str:
        """The table that a table or a column is of, by the analyst's name for it: ``df`` if several are possible."""
        own = value._view
        same = [
            (other._view is own, name)
            for name, other in self.variables.items()
            if not name.startswith("_") and hasattr(type(other), "_view") and not hasattr(type(other), "_node")
            and getattr(other._view, "source", _UNKNOWN) == own.source
        ]  # fmt: skip
        names = [name for is_own, name in same if is_own] or [name for _, name in same]
        return "df" if not names or "df" in names else names[0]

    def selected(self, value: Any) -> str:
        """That table with the rows that were selected of it."""
        name, where = self.frame(value), value._view.where
        return name if where is None else f"{name}[{as_code(where, name)}]"

    def written(self, value: Any) -> str:
        """A column, a table, several of them, or a constant as code."""
        if hasattr(value, "_node") and hasattr(value, "_view"):
            if value._node not in value._view.columns.values():
                if value._view.where is not None:
                    raise Unwritten
                return f"({as_code(value._node, self.frame(value))})"
            return f"{self.selected(value)}[{own_name(value)!r}]"
        if hasattr(value, "_view"):
            return f"{self.selected(value)}[{list(value._view.columns)!r}]"
        if isinstance(value, list | tuple) and any(hasattr(one, "_view") for one in value):
            return f"[{', '.join(map(self.written, value))}]"
        if isinstance(value, str | int | float | bool | list | tuple) and len(repr(value)) <= MAX_WRITTEN:
            return repr(value)
        raise Unwritten

    def column(self, *names: str) -> Any:
        """A column, which was given itself or by its name in ``data=``."""
        value = self.value(*names)
        if isinstance(value, str):
            value = self.value("data", "data_frame")[value]
        if not hasattr(value, "_node"):
            raise Unwritten
        return value

    def groups(self, *names: str) -> str:
        """A column as the key of groups: numbers in bins."""
        column = self.column(*names)
        if isinstance(dtype_of(column._node, column._view.schema), Numeric):
            return f"dpnb.cut({self.written(column)}, 10)"
        return repr(own_name(column)) if column._node in column._view.columns.values() else self.written(column)


def own_name(column: Any) -> str:
    """The name of a column in its table."""
    for name, node in column._view.columns.items():
        if node == column._node:
            return str(name)
    raise Unwritten


SHOWS_ROWS = (
    "would show rows, which are never shown; release a summary instead, such as {number}.mean(), "
    "{number}.quantile([0.1, 0.9]) or {category}.value_counts()"
)
RUNS_CODE = (
    "would run Python on private rows; write the computation with arithmetic and methods of columns, such as "
    "{number} * 2, {number}.clip(0, 1), {number}.where({number} > 1, 0) or dpnb.cut({number}, 5)"
)
CUT = "dpnb.cut({number}, 5), or with edges dpnb.cut({number}, [0, 10, 100])"
OTHER_UNITS = "would compare rows of different privacy units, so that one could change the values of others; "
WITHIN_UNITS = {
    **{name: f".{name}()" for name in ("diff", "cumsum", "cummax", "cummin", "cumcount", "rank", "ffill")},
    **dict.fromkeys(["cumprod", "ngroup", "expanding", "ewm", "interpolate", "autocorr", "asof"], ".cumsum()"),
    **{"shift": ".shift(1)", "rolling": ".rolling(3).mean()", "bfill": ".ffill()", "pct_change": ".diff()"},
}
"""For operations of ordered rows, what the rows of one unit have."""
ROW_COUNT = (
    "would show the number of rows, which is private; release df.count() or df.count_units(); len(df.columns) is the "
    "number of columns"
)

REMEDIES: dict[str, str] = {
    **dict.fromkeys(
        ["tz_convert", "tz_localize"],
        "the zone of a column is declared by the curator, as in dpnb.Dates(first, last, zone='Europe/Berlin'), and is "
        "UTC without zone=; its parts, periods and constants are in the local time of that zone; zone= must be "
        "declared before the first charge; afterwards the curator declares a copy of the column with it",
    ),
    **dict.fromkeys(
        ["values", "to_numpy", "array", "head", "tail", "sample", "iloc", "iat", "at", "iterrows", "T",
         "itertuples", "to_list", "tolist", "to_dict", "to_csv", "to_pandas", "to_parquet", "to_json", "to_string",
         "to_excel", "to_markdown", "item", "pop", "index", "transpose", "first", "last", "nth", "xs", "take",
         "explode", "to_frame", "squeeze", "ravel", "flatten", "to_arrow", "to_polars", "iteritems", "truncate",
         "first_valid_index", "style", "to_html", "to_latex", "to_records", "to_sql", "to_clipboard"],
        SHOWS_ROWS,
    ),
    **dict.fromkeys(
        ["apply", "map", "applymap", "combine", "update"],
        RUNS_CODE,
    ),
    "transform": OTHER_UNITS + "{within}.transform('mean'){within_unit}; within a row " + RUNS_CODE.partition("; ")[2],
    **dict.fromkeys(["shape", "size", "empty", "memory_usage", "nbytes", "ndim"], ROW_COUNT),
    "info": "would count the values of each column without noise; df.dtypes and session.schema show the declared "
            "types, and df.notna().sum() is a query of these counts",
    **dict.fromkeys(
        ["nlargest", "nsmallest"],
        "would show the rows with the most extreme values; release {number}.quantile([0.9, 0.99]), {number}.max() or "
        "{number}.min()",
    ),
    **dict.fromkeys(
        ["idxmax", "idxmin", "argmax", "argmin", "argsort", "searchsorted"],
        "would name single rows; release {number}.max() or {number}.min(), or compare groups, as in "
        "df.groupby({category_name})[{number_name}].mean()",
    ),
    "mode": "could be decided by one row if several values are about equally common; "
            "{category}.value_counts().idxmax().release(epsilon=0.1) selects one with noise; for numbers release "
            "{number}.histogram(20), and take the largest",
    "loc": "is not offered; write {self}[{mask}]",
    **dict.fromkeys(
        ["where", "mask"],
        "is offered for columns, as in {number}.where({mask}, 0); rows are selected by df[{mask}]",
    ),
    **dict.fromkeys(["crosstab", "get_dummies", "cut", "qcut"],
        "is a function: dpnb.crosstab({category}, {category2}), dpnb.get_dummies({category}), " + CUT),
    "unique": "would show which values the rows have; {category}.unique() is the list of declared values{common_texts}",
    **dict.fromkeys(
        ["nunique", "is_unique", "groups", "indices", "get_group"],
        "depends on which values occur, which is private; release {category}.value_counts() for declared "
        "values{common_texts}, or df.count_units() for the number of privacy units",
    ),
    **dict.fromkeys(
        ["plot", "boxplot", "kde", "density", "pie"],
        "would draw rows; release a summary and draw that, as in {number}.histogram(20).release(share=0.05).plot()",
    ),
    "duplicated": OTHER_UNITS + "{one_row}df.count_units() counts the privacy units",
    **{name: f"{OTHER_UNITS}{{within}}{method}{{within_unit}}" for name, method in WITHIN_UNITS.items()},
    **dict.fromkeys(
        ["join", "concat", "append", "combine_first", "align", "compare"],
        "is not offered; join tables of a session, or a public table, with df.merge(other, on=...)",
    ),
    **dict.fromkeys(
        ["melt", "stack", "unstack", "wide_to_long", "swaplevel", "droplevel", "reindex", "set_axis",
         "rename_axis", "insert"],
        "changes the layout of rows, which has no effect on a query; name the columns where they are used, as in "
        "df.groupby({category_name})[{number_name}].mean(), or add one with df.assign(new={number} * 2)",
    ),
    "pivot": "changes the layout of rows, and needs none: {within}.diff(){within_unit}, or .first() and .last() for "
             "one row of each; groups have df.groupby({category_name})[{number_name}].mean() and df.pivot_table(...)",
    **dict.fromkeys(
        ["str"], "is for categories and texts; compare other columns with ==, as in {number} == 1, or use .isin([...])"
    ),
    **dict.fromkeys(
        ["skew", "kurt", "kurtosis", "prod", "product", "mad"],
        "is not offered; {number}.var(), {number}.std() and {number}.quantile([0.1, 0.5, 0.9]) are",
    ),
    "sem": "is offered of one column, as {number}.sem(); {number}.mean(population=True) has a population interval",
    **dict.fromkeys(
        ["any", "all"],
        "could be decided by one row; release the number or the share of rows instead, as in "
        "{condition}.sum() or {condition}.mean()",
    ),
    "test": "is a method of released answers, as in df.groupby({category_name})[{number_name}].mean(population=True)"
            ".release(share=0.05).test()",
    "set_index": "is not needed, since rows have no index; group rows by columns, as in "
                 "df.groupby({category_name}){periods}",
    "get": "is not offered; write {self}",
    "discover": "is a method of tables; write df.discover({self_name})",
    "cat": "is not offered; session.schema shows the declared categories, and {category}.value_counts() counts them",
}  # fmt: skip
"""The remedy of each name."""
