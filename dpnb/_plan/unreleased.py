"""What error messages name: a name that was probably meant; the release of a query that is used as a number."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from types import FrameType
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from dpnb.errors import DpnbError, NotReleasedError

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


OPERATIONS = (
    *("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "divmod", "pow", "and", "or", "xor"),
    *("radd", "rsub", "rmul", "rmatmul", "rtruediv", "rfloordiv", "rmod", "rdivmod", "rpow", "rand", "ror", "rxor"),
    *("lt", "le", "gt", "ge", "neg", "pos", "abs", "invert"),
    *("bool", "int", "float", "complex", "index", "round", "trunc", "floor", "ceil"),
    *("len", "iter", "reversed", "contains", "getitem", "setitem", "delitem", "array", "array_ufunc"),
)
"""The operations of Python and numpy that need a number or a table."""


class NotDrawnError(DpnbError):
    """A query that matplotlib is asked to draw: not a `ValueError`, of which matplotlib makes one of its own."""


NotDrawnError.__name__ = NotDrawnError.__qualname__ = NotReleasedError.__name__  # what an analyst is shown
NotDrawnError.__module__ = NotReleasedError.__module__


def _refusal(operation: str) -> Callable[..., NoReturn]:
    def method(self: Unreleased, *_: object, **__: object) -> NoReturn:
        self._refuse()

    method.__name__ = operation
    return method


class Unreleased:
    """Base class of what has no value before a release: every operation of a number or a table is refused.

    A subclass defines the methods that it does offer, such as the `len` of several previews.
    """

    __slots__ = ()

    _kind: ClassVar[str] = "a query"
    """What the object is, in the message."""

    _release_example: ClassVar[str] = ".release(share=0.01)"
    """A release, for the message."""

    _released_type: ClassVar[type] = object
    """The class of an answer, whose methods the example in the message calls."""

    __pandas_priority__ = 100_000  # pandas leaves operators with its own objects to this class, which refuses them

    if TYPE_CHECKING:  # of each subclass

        @property
        def description(self) -> str:
            """In words."""

    def _query_words(self) -> str:
        """The query in words, for the message."""
        return self.description

    def _head_words(self) -> str:
        """What to call on the answer instead of ``head``."""
        return ".head()"

    def _alternative_words(self, name: str) -> str:
        """What the query itself offers instead of a method of an answer, to be appended to the message."""
        return ""

    def _has_answer(self) -> bool:
        """Whether the object has been released, so that its attribute `answer` is there."""
        return False

    def _refuse(self, method: str = "", alternative: str = "") -> NoReturn:
        """Refuse the use as a number, with an example that calls a method of an answer."""
        test = calling_test()
        if test is not None:
            method, alternative = ".test(...)", f"; {test} would need rows, and does not know of noise"
            if "confint" in test:
                method = "; the answer of a share or mean with population=True has its confidence interval"
        if (calling_function() or ("",))[0] == "matplotlib":
            raise NotDrawnError(
                f"{self._query_words()}: this is {self._kind}, not numbers to draw; its answer has .plot(), "
                f"which draws the intervals too: "
                f"{'.answer' if self._has_answer() else '.release(share=0.05)'}.plot()"
            )
        if self._has_answer():
            raise NotReleasedError(
                f"{self._query_words()}: this is {self._kind}, not a number; it was released: .answer is its "
                f"answer, at no further cost{f', for example .answer{method}' if method else ''}{alternative}"
            )
        release = ".release(...)" if self._kind == "a query" else ".release(...) of its query"
        raise NotReleasedError(
            f"{self._query_words()}: this is {self._kind}, not a number; {release} answers it, for example "
            f"{self._release_example}{method}{alternative}"
        )

    def __format__(self, spec: str) -> str:
        return self._refuse() if spec else str(self)

    def __eq__(self, other: object) -> bool:
        """Whether it is this object, as in a list or a set; any other comparison but with None is refused.

        Two queries are not compared by what they ask, since analysts mean their numbers.
        """
        if self is other:
            return True
        if other is None:
            return NotImplemented
        self._refuse()

    __hash__ = object.__hash__

    if not TYPE_CHECKING:  # a type checker refuses the operations and all other attributes

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_") or name in dir(type(self)) or name in getattr(self, "__dataclass_fields__", ()):
                raise AttributeError(name)  # also while a debugger shows an object whose `__init__` has not finished
            if name == "plot" and self._has_answer():
                return self.answer.plot  # what an analyst does after a release by the picker's button
            if name == "head":
                self._refuse(self._head_words(), self._alternative_words(name))
            offered = getattr(self._released_type, name, None)
            if offered is not None:
                method = f".{name}()" if callable(offered) or name == "plot" else f".{name}"
                self._refuse(method, self._alternative_words(name))
            own = [verb for verb in dir(type(self)) if not verb.startswith("_")]
            close = closest(name, own)
            if close is not None:
                raise NotReleasedError(
                    f".{name} of {self._query_words()}: is not offered by {self._kind}; did you mean .{close}?"
                )
            self._refuse()


for _operation in OPERATIONS:
    setattr(Unreleased, f"__{_operation}__", _refusal(f"__{_operation}__"))
