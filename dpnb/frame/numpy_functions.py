"""numpy's functions of whole arrays, translated to the methods of columns: ``np.mean(column)`` is ``column.mean()``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dpnb.errors import UnsupportedError
from dpnb.frame.callers import refusal_for_caller

_AGGREGATIONS: dict[str, Callable[..., Any]] = {
    "mean": lambda x, **more: x.mean(**more),
    "average": lambda x, **more: x.mean(**more),
    "nanmean": lambda x, **more: x.mean(**more),
    "sum": lambda x, **more: x.sum(**more),
    "nansum": lambda x, **more: x.sum(**more),
    "median": lambda x, **more: x.median(**more),
    "nanmedian": lambda x, **more: x.median(**more),
    "min": lambda x, **more: x.min(**more),
    "amin": lambda x, **more: x.min(**more),
    "nanmin": lambda x, **more: x.min(**more),
    "max": lambda x, **more: x.max(**more),
    "amax": lambda x, **more: x.max(**more),
    "nanmax": lambda x, **more: x.max(**more),
    # numpy divides by the count, pandas by the count less 1.
    "std": lambda x, ddof=0, **more: x.std(ddof=ddof, **more),
    "nanstd": lambda x, ddof=0, **more: x.std(ddof=ddof, **more),
    "var": lambda x, ddof=0, **more: x.var(ddof=ddof, **more),
    "nanvar": lambda x, ddof=0, **more: x.var(ddof=ddof, **more),
    "quantile": lambda x, q, **more: x.quantile(q, **more),
    "nanquantile": lambda x, q, **more: x.quantile(q, **more),
    "percentile": lambda x, q, **more: x.quantile(_hundredths(q), **more),
    "nanpercentile": lambda x, q, **more: x.quantile(_hundredths(q), **more),
}
_ROW_WISE: dict[str, Callable[..., Any]] = {
    "clip": lambda x, a_min=None, a_max=None: x.clip(a_min, a_max),
    "round": lambda x, decimals=0: x.round(decimals),
    "around": lambda x, decimals=0: x.round(decimals),
    "isin": lambda x, test_elements: x.isin(test_elements),
}
_REMEDIES: dict[str, str] = {
    "histogram": "{number}.histogram(20)",
    "corrcoef": "{number}.corr({number2})",
    "cov": "{number}.cov({number2})",
    "unique": "{category}.value_counts()",
    "bincount": "{category}.value_counts()",
    "count_nonzero": "({number} != 0).sum()",
    "any": "{condition}.sum()",
    "all": "{condition}.mean()",
    "ptp": "{number}.max() and {number}.min()",
    "digitize": "dpnb.cut({number}, [...])",
    "where": "np.where({mask}, 1, 0)",
    "select": "{number}.where({number} > 1, 0)",
    "cumsum": "{number}.sum()",
    "diff": "{number}.mean()",
    "sort": "{number}.quantile([0.1, 0.5, 0.9])",
    "argsort": "{number}.quantile([0.1, 0.5, 0.9])",
    "concatenate": "df.merge(other, on=...)",
}


class NumpyFunctions:
    """numpy's protocol for functions of arrays."""

    __slots__ = ()

    def __array_function__(self: Any, function: Any, types: Any, args: tuple[Any, ...], more: Mapping[str, Any]) -> Any:
        name = function.__name__
        if name == "where" and len(args) == 3 and hasattr(args[0], "_chosen"):
            return args[0]._chosen(args[0]._node, args[1], args[2], "numpy.where")
        translation = {**_AGGREGATIONS, **_ROW_WISE}.get(name)
        if translation is not None and args and hasattr(type(args[0]), "__array_function__"):
            try:
                return translation(*args, **more)
            except TypeError:  # other arguments than those that are translated
                pass
        examples = self._examples()
        refusal_for_caller(examples)
        how = " with these arguments" if translation is not None or name == "where" else ""
        remedy = _REMEDIES.get(name, "{number}.mean(), {number}.std() or {number}.quantile([0.1, 0.9])")
        raise UnsupportedError(
            f"numpy.{name}({self._description()}): is not offered{how}; use {remedy.format_map(examples)}"
        )


def _hundredths(percent: Any) -> Any:
    return [one / 100 for one in percent] if isinstance(percent, list | tuple) else percent / 100
