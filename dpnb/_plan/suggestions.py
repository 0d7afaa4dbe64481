"""What an error message can name: the public name that was probably meant, and the library that called."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from difflib import get_close_matches
from types import FrameType

MAX_COMPARED = 2_000
"""Largest number of names that are compared: a comparison takes microseconds, and a list of categories may be long."""

MIN_SIMILARITY = 0.65
"""The ratio of `difflib.SequenceMatcher` from which two names are similar."""


def closest(name: object, possible: Iterable[object], similarity: float = MIN_SIMILARITY) -> object | None:
    """The public value that is most similar to a name, ignoring case; None if none is similar.

    `possible` must be public: columns of the schema, declared categories, names of methods; or shown to the curator.

    >>> closest("Wage", ["year", "wage"])
    'wage'
    >>> closest("height", ["year", "wage"])
    """
    if not isinstance(name, str):
        return None
    by_text: dict[str, str] = {}
    for value, _ in zip(possible, range(MAX_COMPARED), strict=False):
        if isinstance(value, str):
            by_text.setdefault(value.casefold().strip(), value)
    matches = get_close_matches(name.casefold().strip(), by_text, n=1, cutoff=similarity)
    return by_text[matches[0]] if matches else None


def did_you_mean(name: object, possible: Iterable[object]) -> str:
    """``"; did you mean 'wage'?"`` to append to an error's text, or an empty text; see `closest`.

    >>> did_you_mean("Wage", ["year", "wage"])
    "; did you mean 'wage'?"
    """
    match = closest(name, possible)
    return "" if match is None else f"; did you mean {match!r}?"


# --- the library that calls -------------------------------------------------------------------------------------------

LIBRARIES = ("pandas", "matplotlib", "seaborn", "plotly", "statsmodels", "patsy", "formulaic", "sklearn", "scipy",
             "lifelines", "polars", "narwhals", "pyarrow", "numpy")  # fmt: skip
"""Libraries whose functions analysts call on a table."""

WRAPPER = "axis_nan_policy_wrapper"
"""The function that scipy wraps most of its tests in."""

_NAMED_BY_CLASS = {name: name for name in ("Table", "Table2x2", "SquareTable", "StratifiedTable")}
"""Classes of statsmodels that are named in a message where they are made from an answer."""

MAX_FRAMES = 60
"""Largest number of stack frames that are looked at."""


def calling_function() -> tuple[str, str] | None:
    """The library and the function that the analyst's code called, if a library's code is calling into dpnb.

    Only names of modules and functions on the call stack are read, never variables, except the name of the function
    that a decorator of scipy's tests wraps, and of the class of a contingency table.
    """
    frame = _called_frame()
    return None if frame is None else (_module_of(frame).partition(".")[0], _name_of(frame))


def calling_test() -> str | None:
    """The function for statistics of scipy or statsmodels that the analyst's code called, by its name, if any."""
    frame = _called_frame()
    if frame is None or not _module_of(frame).startswith(("scipy.stats", "statsmodels.stats")):
        return None
    return f"{_module_of(frame).partition('.')[0]}.{_name_of(frame)}"


def _called_frame() -> FrameType | None:
    """The outermost frame of the libraries that are calling into dpnb."""
    frame: FrameType | None = sys._getframe(2)
    called = None
    for _ in range(MAX_FRAMES):
        if frame is None:
            break
        root = _module_of(frame).partition(".")[0]
        if root in LIBRARIES:
            called = frame
        elif root != "dpnb" or called is not None:
            return called if root != "dpnb" else None  # dpnb itself uses narwhals and numpy
        frame = frame.f_back
    return called


def _module_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _name_of(frame: FrameType) -> str:
    name = frame.f_code.co_name
    if name == "__init__" and (made := _NAMED_BY_CLASS.get(type(frame.f_locals.get("self")).__name__)):
        return made
    return getattr(frame.f_locals.get("hypotest_fun_in"), "__name__", name) if name == WRAPPER else name
