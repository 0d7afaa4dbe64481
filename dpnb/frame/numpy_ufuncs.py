"""numpy's functions of single values, translated to expressions of columns: ``np.log(column)`` is ``column.log()``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dpnb.errors import UnsupportedError

UFUNCS: dict[str, Callable[..., Any]] = {
    "log": lambda x: x.log(),
    "log2": lambda x: x.log2(),
    "log10": lambda x: x.log10(),
    "log1p": lambda x: x.log1p(),
    "exp": lambda x: x.exp(),
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


def applied(ufunc: Any, method: str, inputs: tuple[Any, ...], options: Mapping[str, Any], column: Any) -> Any:
    """The expression that a numpy function means, of which at least `column` is an argument.

    Raises `UnsupportedError` for another function, an array as the other operand, or further options.
    """
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
