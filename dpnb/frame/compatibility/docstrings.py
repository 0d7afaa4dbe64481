"""Parts that many docstrings of pandas-like methods have in common, added when their class is made."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

C = TypeVar("C")
Method = TypeVar("Method", bound=Callable[..., Any])

DESCRIPTIONS = {
    "axis": 'axis : {0, "index", "rows"}, default 0\n    Values are aggregated over rows.',
    "**options": "**options\n    Arguments of pandas, with the values that change nothing here.",
}
"""Parameters that mean the same in most methods of pandas-like classes."""


def describe_options(cls: type[C]) -> type[C]:
    """Describe `axis` and `options` in the docstrings of a class that have such a parameter and leave it out."""
    for name, method in vars(cls).items():
        text = inspect.cleandoc(getattr(method, "__doc__", None) or "")
        if name.startswith("_") or not inspect.isfunction(method) or "\nExamples\n" not in text:
            continue
        added = [
            description
            for parameter, description in DESCRIPTIONS.items()
            if parameter.strip("*") in method.__annotations__ and parameter not in text
        ]
        if added:
            first, others = re.split(r"\n\n(?=(?:Raises|Examples)\n)", text, maxsplit=1)
            heading = [] if "\nParameters\n" in text else ["\nParameters\n----------"]
            method.__doc__ = "\n".join([first, *heading, *added, "", others])
    return cls


def with_examples(*examples: tuple[str, str]) -> Callable[[Method], Method]:
    """Add examples to the docstring of a method: calls, and what they show."""

    def decorate(method: Method) -> Method:
        shown = "\n".join(f">>> {call}\n{result}" for call, result in examples)
        method.__doc__ = f"{inspect.cleandoc(method.__doc__ or '')}\n\nExamples\n--------\n{shown}\n"
        return method

    return decorate


def with_queries(call: str, described: str) -> Callable[[Method], Method]:
    """Add examples to the docstring of an aggregation: a call on the frame ``df``, and the same on its groups."""
    grouped = f'df.groupby("plan"){call}.description', repr(f"{described} by plan")
    return with_examples((f"df{call}.description", repr(described)), grouped)
