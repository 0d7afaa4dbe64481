"""Queries and previews that are used as a number or a table: refused with one sentence that shows the release."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from dpnb._plan.suggestions import calling_function, calling_test, closest
from dpnb.errors import DpnbError, NotReleasedError

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

        def _query_words(self) -> str:
            """The query in words, for the message."""

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
