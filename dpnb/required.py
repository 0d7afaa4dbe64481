"""Arguments that are missing or of another kind: what they are, with a line to copy, where Python only names them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import signature
from typing import Any, TypeVar

from dpnb.errors import MissingArgument

F = TypeVar("F", bound=Callable[..., None])

COLUMN_TYPES = "dpnb.Bounded(low, high), dpnb.Categories([...]), dpnb.Dates(first, last) or dpnb.Text()"

BY_TYPE = {
    bool: "dpnb.Categories([True, False])",
    int: "dpnb.Bounded(low, high, integer=True)",
    float: "dpnb.Bounded(low, high)",
    str: "dpnb.Categories([...])",
}
"""What declares a column of the values of a Python type."""


def meant_column(given: object) -> str:
    """What was probably meant by something that is no declaration of a column, to append to an error's text."""
    if isinstance(given, type) and given in BY_TYPE:
        return f"; write {BY_TYPE[given]}"
    if isinstance(given, tuple) and len(given) == 2 and all(type(end) in (int, float) for end in given):
        return f"; write dpnb.Bounded{given!r}"
    return "; write dpnb.Categories([...])" if isinstance(given, list | range) else ""


def explains_missing(
    line: str,
    meanings: Mapping[str, str],
    conceal: Callable[[Any], Any] | None = None,
    remark: Callable[[Any], str] | None = None,
) -> Callable[[F], F]:
    """Decorate a constructor, whose missing arguments are then explained, with a line to copy and their meanings.

    `conceal` is applied to the first of them, since tracebacks of errors in the constructor include this call: a table
    must not be in them.  `remark` says of it what follows the line.
    """

    def decorate(function: F) -> F:
        required = list(meanings)
        parameters = list(signature(function).parameters)[1:]

        @wraps(function)
        def construct(self: object, *arguments: Any, **options: Any) -> None:
            first = arguments[0] if arguments else options.get(required[0])
            if conceal is not None:
                if arguments:
                    arguments = (conceal(arguments[0]), *arguments[1:])
                elif required[0] in options:
                    options[required[0]] = conceal(options[required[0]])
            given = {*parameters[: len(arguments)], *options}
            missing = [name for name in required if name not in given]
            if missing:
                what = "; ".join(f"{name} is missing: {meanings[name]}" for name in missing)
                more = "" if remark is None else remark(first)
                del first, arguments, options  # not in the traceback
                raise MissingArgument(f"{type(self).__name__}: {what}; write for example {line}{more}")
            del first
            function(self, *arguments, **options)

        return construct  # type: ignore[return-value]  # the same signature

    return decorate
