"""The library function that received a private table or column, and the refusal that names its counterpart here.

Also the assignment to a table that has no name, which would be lost.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from types import CodeType, FrameType, TracebackType
from typing import Any

from dpnb._plan.unreleased import LIBRARIES, calling_function
from dpnb.errors import PlanError, printable
from dpnb.frame.compatibility.calls import Call
from dpnb.frame.compatibility.counterparts import counterpart, is_known

_PROTOCOLS = ("__dataframe__", "__arrow_c_stream__", "__arrow_c_array__", "toPandas", "index", "_get_numeric_data")
"""Attributes by which a library asks for rows."""

_RECOGNISED = ("cut", "qcut", "crosstab", "pivot_table", "get_dummies", "concat", "merge", "isna", "isnull", "notna",
               "to_datetime", "unique", "factorize", "melt", "scatter_matrix", "to_numeric")  # fmt: skip
"""Functions of pandas that look up `_typ` of what they are given, and fail with an error of their own without it."""


ROWS = "needs rows, which a private table never shows"


class LibraryCallError(PlanError):
    """A library's function needs rows; the text repeats what the analyst passed to it.

    The arguments are read from the frames of the traceback when the text is first shown, so that making the error costs
    nothing.  It is not an `AttributeError`, which the library might take for a missing attribute.
    """

    def __init__(self, text: str, call: Call | None = None, examples: Mapping[str, str] | None = None) -> None:
        super().__init__(text)  # the only argument where a library makes the error again
        self._call, self._examples = call, examples

    def __reduce__(self) -> tuple[type[PlanError], tuple[str]]:
        return PlanError, (str(self),)

    def __str__(self) -> str:
        if self._call is None or self._examples is None:
            return super().__str__()
        # Not `self.__traceback__`, which marimo shows shortened.
        whole: TracebackType | None = BaseException.__dict__["__traceback__"].__get__(self)
        found = _called(whole)
        call = self._call if found is None or (is_known(self._call) and not is_known(found)) else found
        name = ".".join(part for part in (call.library, call.words) if part)
        return printable(f"{name}: {ROWS}; use {counterpart(call, self._examples)}")


LibraryCallError.__name__ = LibraryCallError.__qualname__ = PlanError.__name__  # what an analyst is shown, and catches
LibraryCallError.__module__ = PlanError.__module__


def refusal_for_caller(examples: Mapping[str, str]) -> None:
    """Refuse by name if a library's function has received a private object; return if no library is calling.

    `examples` are the columns of `dpnb.frame.compatibility.examples.examples`.
    """
    called = calling_function()
    if called is not None:
        raise LibraryCallError(f"{called[0]}: {ROWS}", Call(*called), examples)


def refuse_request_for_rows(attribute: str, examples: Callable[[], Mapping[str, str]]) -> None:
    """Refuse by name if a library looks up an attribute to find out whether an object has rows.

    A missing attribute would make the library fail with an error of its own, which names no remedy.
    """
    # pandas looks up `_typ` to recognise its own classes, often on objects that it then leaves alone.
    # lifelines and seaborn's regplot ask for the shape first, which others are refused with a remedy of its own.
    library, function = (calling_function() if attribute in ("_typ", "shape") else None) or ("", "")
    asks_for_shape = library in ("lifelines", "seaborn")
    is_asked = (library == "pandas" and function in _RECOGNISED) if attribute == "_typ" else asks_for_shape
    if attribute in _PROTOCOLS or is_asked:
        refusal_for_caller(examples())


_COMPARING = ("seaborn.axisgrid", "statsmodels.formula._manager")
"""Modules that use a table only if it is one of pandas, or look up names of a formula in it, with their own errors."""


def refuse_comparison_with_pandas(caller: FrameType, examples: Callable[[], Mapping[str, str]]) -> None:
    """Refuse by name if the code that asks for the class of a table is that of such a library."""
    if caller.f_globals.get("__name__") in _COMPARING:
        refusal_for_caller(examples())


# --- what was called, from a traceback --------------------------------------------------------------------------------


def _called(traceback: TracebackType | None) -> Call | None:
    """The function of a library that the analyst's code called, with its arguments and the analyst's variables."""
    analyst: FrameType | None = None
    while traceback is not None:
        frame = traceback.tb_frame
        library = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if library in LIBRARIES:
            function, arguments = _bound(frame, library)
            variables = {} if analyst is None else {**analyst.f_globals, **analyst.f_locals}
            return Call(library, function, arguments, variables)
        analyst, traceback = frame, traceback.tb_next
    return None


def _bound(frame: FrameType, library: str) -> tuple[str, dict[str, Any]]:
    """The name and the arguments of the function that a frame runs, or that a wrapper in the frame passes them to."""
    code, local = frame.f_code, frame.f_locals
    named, positional, keywords = _parameters(code)
    arguments = {name: local[name] for name in named if name in local}
    for name in code.co_freevars:
        inner = inspect.unwrap(local[name]) if callable(local.get(name)) else None
        if positional and inspect.isfunction(inner) and inner.__module__.partition(".")[0] == library:
            passed = [*(local[one] for one in named[: code.co_argcount] if one in local), *local.get(positional, ())]
            try:
                bound = inspect.signature(inner).bind_partial(*passed, **local.get(keywords, {}))
            except TypeError:  # not the arguments of this function
                continue
            return inner.__name__, dict(bound.arguments)
    if positional and local.get(positional):
        arguments |= {f"argument {at}": value for at, value in enumerate(local[positional])}
    return code.co_name, {**arguments, **local.get(keywords, {})}


def _parameters(code: CodeType) -> tuple[tuple[str, ...], str, str]:
    """The names of the parameters, that of ``*args`` and that of ``**options``; of what there is not, an empty text."""
    count = code.co_argcount + code.co_kwonlyargcount
    rest = iter(code.co_varnames[count:])
    positional = next(rest, "") if code.co_flags & inspect.CO_VARARGS else ""
    keywords = next(rest, "") if code.co_flags & inspect.CO_VARKEYWORDS else ""
    return code.co_varnames[:count], positional, keywords


# --- assignments to a table without a name ----------------------------------------------------------------------------


class _Assigned:
    """An object that notes how many references there are to it while it is assigned to."""

    references = 0

    def __setitem__(self, key: object, value: object) -> None:
        _Assigned.references = sys.getrefcount(self)


_Assigned()[0] = None  # the number for an object that nothing else refers to


def is_temporary(references: int, assigned: object, caller: FrameType) -> bool:
    """Whether a statement such as ``session.frame["x"] = ...`` changes an object that is gone after it.

    `references` are those that its `__setitem__` counts, and `caller` is the frame that runs the statement: from Python
    3.14 the reference of a local variable is not counted.
    """
    return references <= _Assigned.references and all(one is not assigned for one in caller.f_locals.values())
