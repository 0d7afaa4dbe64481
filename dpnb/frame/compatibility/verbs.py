"""Functions that an analyst passes to ``pipe`` and ``apply``, and names of aggregations as in pandas' ``agg``."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from dpnb.errors import DpnbError, PlanError, UnsupportedError

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
