"""Names of aggregations as pandas' ``agg`` takes them: strings, and some functions that stand for them."""

from __future__ import annotations

import builtins
from collections.abc import Iterable

import numpy as np

from dpnb.errors import PlanError

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
