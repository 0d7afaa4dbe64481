"""What pandas has and a private table has not: refused by name, with what to do instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from dpnb.copying import NotCopyable
from dpnb.errors import PlanError, UnsupportedError

SHOWS_ROWS = (
    "would show rows, which never leave but through noise; ask .count(), .mean(), .quantile(), ... and release it"
)
RUNS_CODE = "would run Python on private rows; write it with arithmetic, comparisons, .where(), .clip() or dpnb.cut()"
REMEDIES: dict[str, str] = {
    **dict.fromkeys(
        ["values", "to_numpy", "array", "head", "tail", "sample", "iloc", "loc", "iat", "at", "items", "iterrows",
         "itertuples", "to_list", "tolist", "to_dict", "to_csv", "to_pandas", "to_parquet", "to_json", "to_string",
         "nlargest", "nsmallest", "sort_values", "item", "get", "pop", "index", "T", "plot", "hist", "unique", "mode"],
        SHOWS_ROWS,
    ),
    **dict.fromkeys(["apply", "map", "applymap", "pipe", "transform", "query", "eval"], RUNS_CODE),
    **dict.fromkeys(
        ["shape", "size", "empty", "info", "memory_usage", "nbytes", "ndim"],
        "would tell the number of rows, which is private; ask .count() or .count_units() and release it",
    ),
    **dict.fromkeys(
        ["dtype", "dtypes"], "is what the curator declared; the session's schema and .columns say it"
    ),
    **dict.fromkeys(["nunique"], "is not offered; ask .value_counts() of declared categories, or dpnb's .discover()"),
    **dict.fromkeys(["drop_duplicates", "duplicated"], "compares rows; .count_units() counts distinct privacy units"),
    **dict.fromkeys(["shift", "diff", "cumsum", "cumprod", "rank", "rolling", "expanding", "pct_change"],
                    "looks at other rows, so that one unit could change what others give; ask aggregates instead"),
    **dict.fromkeys(["join", "concat", "append"], "is not offered; join tables of a session by .merge()"),
    **dict.fromkeys(["str"], "is not offered; compare texts by == or .isin([...]), and group them by given keys"),
    **dict.fromkeys(["skew", "kurt", "kurtosis", "sem", "prod", "product"],
                    "is not offered; .var(), .std() and .quantile() are"),
    **dict.fromkeys(["dropna"], "is not needed: what is missing never counts; keep rows by df[df['x'].notna()]"),
}  # fmt: skip


class UnsupportedOperations(NotCopyable):
    """Base of what looks like pandas: a name that it has not is refused with a remedy; it never pretends to be data."""

    __slots__ = ()

    def _said(self) -> str:
        """What a refusal calls it; those with a better name than their class's say it."""
        return f"<private {type(self).__name__}>"

    if not TYPE_CHECKING:  # a type checker refuses what is not offered, and names it

        def __getattr__(self, name: str) -> Any:
            remedy = REMEDIES.get(name)
            if remedy is not None:
                raise UnsupportedError(f".{name} of {self._said()}: {remedy}")
            if name.startswith("_"):
                raise AttributeError(name)
            if hasattr(type(self), "columns") and name in self.columns:
                raise UnsupportedError(f".{name} of {self._said()}: write df[{name!r}]; columns are not attributes")
            verbs = [verb for verb in dir(type(self)) if not verb.startswith("_")]
            raise UnsupportedError(f".{name} of {self._said()}: is not offered; what is: {', '.join(verbs)}")

    def __iter__(self) -> NoReturn:
        raise PlanError(f"{self._said()}: cannot be iterated: its rows are never shown; ask .count(), .mean(), ...")

    def __len__(self) -> NoReturn:
        raise PlanError(
            f"{self._said()}: has no len(): how many rows there are is private; ask .count() and release it"
        )

    def __bool__(self) -> NoReturn:
        raise PlanError(f"{self._said()}: is neither true nor false; ask a question of it and release it")

    def __float__(self) -> NoReturn:
        raise PlanError(f"{self._said()}: is no number; ask a question of it and release it")

    __int__ = __float__
    __index__ = __float__

    def __array__(self, *_: object, **__: object) -> NoReturn:
        raise UnsupportedError(f"{self._said()}: is no array; {SHOWS_ROWS}")

    def __setitem__(self, key: object, value: object) -> NoReturn:
        raise PlanError(f"{self._said()}: never changes; .assign(name=expression) gives a view with one more column")

    def __contains__(self, item: object) -> bool:
        raise PlanError(
            f"in: whether rows of {self._said()} have a value is private; compare with == and ask .count(); .columns "
            "lists the columns"
        )
