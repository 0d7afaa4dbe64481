"""pandas operations that a private table does not offer: refused by name, with what to use instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from dpnb.copying import NotCopyable
from dpnb.errors import PlanError, UnsupportedError

SHOWS_ROWS = "would show rows, which are never shown; release .count(), .mean(), .quantile(), ... instead"
RUNS_CODE = "would run Python on private rows; write it with arithmetic, comparisons, .where(), .clip() or dpnb.cut()"
REMEDIES: dict[str, str] = {
    **dict.fromkeys(
        ["values", "to_numpy", "array", "head", "tail", "sample", "iloc", "loc", "iat", "at", "items", "iterrows",
         "itertuples", "to_list", "tolist", "to_dict", "to_csv", "to_pandas", "to_parquet", "to_json", "to_string",
         "nlargest", "nsmallest", "sort_values", "item", "get", "pop", "index", "T", "plot", "hist", "unique", "mode"],
        SHOWS_ROWS,
    ),
    **dict.fromkeys(["apply", "applymap", "pipe", "transform", "query", "eval"], RUNS_CODE),
    **dict.fromkeys(
        ["shape", "size", "empty", "info", "memory_usage", "nbytes", "ndim"],
        "would show the number of rows, which is private; release .count() or .count_units() instead",
    ),
    **dict.fromkeys(
        ["dtype", "dtypes"], "is what the curator declared; see the session's schema and .columns"
    ),
    **dict.fromkeys(["nunique"], "is not offered; use .value_counts() of declared categories, or dpnb's .discover()"),
    **dict.fromkeys(["drop_duplicates", "duplicated"], "compares rows; .count_units() counts distinct privacy units"),
    **dict.fromkeys(["shift", "diff", "cumsum", "cumprod", "rank", "rolling", "expanding", "pct_change"],
                    "depends on other rows, so one unit could change the values of others; use aggregates instead"),
    **dict.fromkeys(["join", "concat", "append"], "is not offered; join tables of a session with .merge()"),
    **dict.fromkeys(["skew", "kurt", "kurtosis", "sem", "prod", "product"],
                    "is not offered; .var(), .std() and .quantile() are"),
    **dict.fromkeys(["dropna"], "is not needed: missing values never count; select rows with df[df['x'].notna()]"),
}  # fmt: skip


class UnsupportedOperations(NotCopyable):
    """Base of the pandas-like classes: an unsupported name is refused with a remedy; it never acts as an array."""

    __slots__ = ()

    def _description(self) -> str:
        """Name of the object in error messages; by default that of its class."""
        return f"<private {type(self).__name__}>"

    if not TYPE_CHECKING:  # a type checker refuses what is not offered, and names it

        def __getattr__(self, name: str) -> Any:
            remedy = REMEDIES.get(name)
            if remedy is not None:
                raise UnsupportedError(f".{name} of {self._description()}: {remedy}")
            if name.startswith("_"):
                raise AttributeError(name)
            if hasattr(type(self), "columns") and name in self.columns:
                raise UnsupportedError(
                    f".{name} of {self._description()}: write df[{name!r}]; columns are not attributes"
                )
            verbs = [verb for verb in dir(type(self)) if not verb.startswith("_")]
            raise UnsupportedError(f".{name} of {self._description()}: is not offered; it offers: {', '.join(verbs)}")

    def __iter__(self) -> NoReturn:
        raise PlanError(
            f"{self._description()}: cannot be iterated: its rows are never shown; use .count(), .mean(), ..."
        )

    def __len__(self) -> NoReturn:
        raise PlanError(f"{self._description()}: has no len(): the number of rows is private; release .count() instead")

    def __bool__(self) -> NoReturn:
        raise PlanError(f"{self._description()}: its truth value is ambiguous; release an aggregate of it instead")

    def __float__(self) -> NoReturn:
        raise PlanError(f"{self._description()}: is not a number; release an aggregate of it instead")

    __int__ = __float__
    __index__ = __float__

    def __array__(self, *_: object, **__: object) -> NoReturn:
        raise UnsupportedError(f"{self._description()}: is not an array; it {SHOWS_ROWS}")

    def __setitem__(self, key: object, value: object) -> NoReturn:
        raise PlanError(
            f"{self._description()}: is immutable; .assign(name=expression) returns a view with another column"
        )

    def __contains__(self, item: object) -> bool:
        raise PlanError(
            f"in: whether rows of {self._description()} have a value is private; compare with == and release .count(); "
            ".columns lists the columns"
        )
