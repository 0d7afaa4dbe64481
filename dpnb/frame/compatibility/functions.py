"""Functions that an analyst passes to ``pipe`` or ``apply``, and numpy's functions of columns."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Mapping
from operator import methodcaller
from typing import Any

import numpy as np

from dpnb.errors import DpnbError, PlanError, UnsupportedError
from dpnb.frame.compatibility.callers import refusal_for_caller

# --- ``pipe`` and ``apply`` -------------------------------------------------------------------------------------------


class Pipe:
    """The method ``pipe`` of frames, groups and columns."""

    __slots__ = ()

    def pipe(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """``func(self, *args, **kwargs)``: the function receives the view or column, never rows.

        Parameters
        ----------
        func : callable
            Its first argument is this object.
        *args, **kwargs
            Further arguments of the function.

        Examples
        --------
        >>> df.pipe(lambda view: view[view["age"] > 65])
        <private table: age, cost, plan, admitted, note where age > 65>
        >>> df["age"].pipe(lambda column: column.clip(0, 65)).mean().description
        'mean of age.clip(0, 65)'
        """
        if not callable(func):
            raise PlanError(f"pipe: takes a function of the view or column; got {func!r}")
        return func(self, *args, **kwargs)


def applied(
    func: object, receiver: object, args: tuple[Any, ...], options: dict[str, Any], result: type, refusal: str
) -> Any:
    """The expression or query that a function of the analyst builds, for example ``lambda x: x**2`` or ``np.sqrt``.

    A function that cannot use a column, or returns anything but a `result`, could only be computed from the values of
    rows; it is refused with the text `refusal`.
    """
    if callable(func):
        try:
            built = func(receiver, *args, **options)
        except (TypeError, AttributeError, ValueError) as error:
            if isinstance(error, DpnbError):
                raise
            raise UnsupportedError(f"{refusal}; the function raised {type(error).__name__}: {error}") from error
        if isinstance(built, result):
            return built
    raise UnsupportedError(refusal)


# --- names of aggregations as pandas' ``agg`` takes them --------------------------------------------------------------


_FUNCTIONS: dict[object, str] = {
    **{getattr(np, name): name for name in ("mean", "sum", "std", "var", "median", "min", "max")},
    **{getattr(builtins, name): name for name in ("sum", "min", "max")},
    len: "count",
}
_ALIASES = {"average": "mean", "size": "count", "len": "count"}


def verb_name(verb: object) -> str:
    """The name of an aggregation; functions are recognised, never called."""
    if isinstance(verb, str):
        return _ALIASES.get(verb, verb)
    try:
        known = _FUNCTIONS.get(verb)
    except TypeError:  # not hashable
        known = None
    if known is None:
        raise PlanError(
            "agg: takes names such as 'mean' or ['mean', 'std'], since functions would run Python on private rows; got "
            f"{getattr(verb, '__name__', verb)!r}"
        )
    return known


def is_unknown_function(verb: object) -> bool:
    """Whether it is a function that stands for no aggregation, such as a lambda."""
    try:
        return callable(verb) and verb not in _FUNCTIONS
    except TypeError:  # not hashable
        return True


def verb_names(verbs: Iterable[object], where: str) -> list[str]:
    """The names of several aggregations."""
    names = [verb_name(verb) for verb in verbs]
    if not names or len(set(names)) != len(names):
        raise PlanError(f"{where}: needs at least one aggregation, each once; got {names!r}")
    return names


# --- numpy's functions of single values -------------------------------------------------------------------------------


UFUNCS: dict[str, Callable[..., Any]] = {
    **{name: methodcaller(name) for name in ("log", "log2", "log10", "log1p", "exp")},
    "absolute": lambda x: x.abs(),
    "fabs": lambda x: x.abs(),
    "negative": lambda x: -x,
    "positive": lambda x: x,
    "sqrt": lambda x: x**0.5,
    "square": lambda x: x**2,
    "rint": lambda x: x.round(),
    "floor": lambda x: x // 1,
    "ceil": lambda x: -(-x // 1),
    "isnan": lambda x: x.isna(),
    "logical_not": lambda x: ~x,
    "invert": lambda x: ~x,
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "true_divide": lambda x, y: x / y,
    "divide": lambda x, y: x / y,
    "floor_divide": lambda x, y: x // y,
    "remainder": lambda x, y: x % y,
    "power": lambda x, y: x**y,
    "greater": lambda x, y: x > y,
    "greater_equal": lambda x, y: x >= y,
    "less": lambda x, y: x < y,
    "less_equal": lambda x, y: x <= y,
    "equal": lambda x, y: x == y,
    "not_equal": lambda x, y: x != y,
    "logical_and": lambda x, y: x & y,
    "logical_or": lambda x, y: x | y,
    "bitwise_and": lambda x, y: x & y,
    "bitwise_or": lambda x, y: x | y,
    "maximum": lambda x, y: x._extreme(y, ">="),
    "minimum": lambda x, y: x._extreme(y, "<="),
}
"""numpy functions that translate to a row-wise expression."""

_SWAPPED: dict[str, Callable[..., Any]] = {
    "subtract": lambda y, x: x.__rsub__(y),
    "true_divide": lambda y, x: x.__rtruediv__(y),
    "divide": lambda y, x: x.__rtruediv__(y),
    "floor_divide": lambda y, x: x.__rfloordiv__(y),
    "remainder": lambda y, x: x.__rmod__(y),
    "power": lambda y, x: x.__rpow__(y),
    "greater": lambda y, x: x < y,
    "greater_equal": lambda y, x: x <= y,
    "less": lambda y, x: x > y,
    "less_equal": lambda y, x: x >= y,
}
"""The functions that are not symmetric, with a constant on the left."""


def ufunc_result(ufunc: Any, method: str, inputs: tuple[Any, ...], options: Mapping[str, Any], column: Any) -> Any:
    """The expression that a numpy function means, of which at least `column` is an argument."""
    name, described = ufunc.__name__, column._description()
    if method != "__call__" or options or name not in UFUNCS:
        raise UnsupportedError(
            f"numpy.{name}({described}): is not offered; the numpy functions offered are log, log2, log10, log1p, exp, "
            "absolute, sqrt, square, floor, ceil, maximum, minimum and the operators; .round() and .clip() are methods "
            "of the column"
        )
    operands = [one if hasattr(one, "_node") else np.asarray(one) for one in inputs]
    if any(isinstance(one, np.ndarray) and one.ndim for one in operands):
        raise UnsupportedError(f"{described}: the other operand must be a single number; got an array")
    operands = [one[()] if isinstance(one, np.ndarray) else one for one in operands]
    is_swapped = name in _SWAPPED and not hasattr(operands[0], "_node")
    if len(operands) == 2 and not is_swapped and not hasattr(operands[0], "_node"):
        operands = operands[::-1]
    return (_SWAPPED if is_swapped else UFUNCS)[name](*operands)


# --- numpy's functions of whole arrays --------------------------------------------------------------------------------


_AGGREGATIONS: dict[str, Callable[..., Any]] = {
    "mean": lambda x, **more: x.mean(**more),
    "average": lambda x, **more: x.mean(**more),
    "sum": lambda x, **more: x.sum(**more),
    "median": lambda x, **more: x.median(**more),
    "min": lambda x, **more: x.min(**more),
    "amin": lambda x, **more: x.min(**more),
    "max": lambda x, **more: x.max(**more),
    "amax": lambda x, **more: x.max(**more),
    # numpy divides by the count, pandas by the count less 1.
    "std": lambda x, ddof=0, **more: x.std(ddof=ddof, **more),
    "var": lambda x, ddof=0, **more: x.var(ddof=ddof, **more),
    "quantile": lambda x, q, **more: x.quantile(q, **more),
    "percentile": lambda x, q, **more: x.quantile(_hundredths(q), **more),
    "histogram": lambda x, bins=10: x.histogram(bins),
    "polyfit": lambda x, y, deg: x._polynomial(y, deg),
    "count_nonzero": lambda x: (x != 0).sum(),
    "corrcoef": lambda x, y: x._matrix("corr", y),
    "cov": lambda x, y: x._matrix("cov", y, 1),
}
"""Also of the functions whose names begin with ``nan``: missing values never count."""

_ROW_WISE: dict[str, Callable[..., Any]] = {
    "clip": lambda x, a_min=None, a_max=None: x.clip(a_min, a_max),
    "round": lambda x, decimals=0: x.round(decimals),
    "around": lambda x, decimals=0: x.round(decimals),
    "isin": lambda x, test_elements: x.isin(test_elements),
}
_REMEDIES: dict[str, str] = {
    "histogram": "{number}.histogram(20)",
    "average": "{number}.mean()",
    "polyfit": "df.regress({number2_name}, on=[{number_name}])",
    "corrcoef": "{number}.corr({number2})",
    "cov": "{number}.cov({number2})",
    "unique": "{category}.value_counts()",
    "bincount": "{category}.value_counts()",
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
        translation = _ROW_WISE.get(name) or _AGGREGATIONS.get(name.removeprefix("nan"))
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
