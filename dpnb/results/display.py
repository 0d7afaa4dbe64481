"""Display of results: generic functions that the layers above implement for each class.

Values do not import the code that renders them: `dpnb.render` registers text and HTML here, `dpnb.notebook.plots` the
figures of plotly.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import singledispatch
from html import escape
from typing import Any

from dpnb.copying import safe_repr
from dpnb.errors import RequestError

PLOTLY_MISSING = 'plot: figures need plotly, which is not installed; run: pip install "dpnb[lab]"'


@singledispatch
def to_text(value: object) -> str:
    """A value as text for a terminal."""
    return object.__repr__(value)


@singledispatch
def to_html(value: object) -> str:
    """A value as HTML for a notebook; static, so that it needs no kernel."""
    return f"<pre>{escape(to_text(value))}</pre>"


@singledispatch
def to_markdown(value: object) -> str:
    """The table of a value as Markdown."""
    return to_text(value)


@singledispatch
def to_latex(value: object) -> str:
    """The table of a value in LaTeX."""
    raise TypeError(type(value).__name__)


@singledispatch
def to_page(value: object) -> str:
    """A value as one page of HTML that needs nothing else: to read, to print and to hand over."""
    raise TypeError(type(value).__name__)


@singledispatch
def to_picture(value: object, history: bool, title: str | None = None, kind: str | None = None) -> Any:
    """The plotly figure of an answer, or of its history, a text without plotly; `RequestError` without a history.

    `kind` is the name of pandas by which it was asked for.
    """
    raise RequestError(PLOTLY_MISSING)


class Displayed:
    """Base class of values that `to_text` and `to_html` render."""

    __slots__ = ()

    @safe_repr
    def __repr__(self) -> str:
        return to_text(self)

    def _repr_html_(self) -> str:
        return to_html(self)


# --- facts as text ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Explanation(Displayed):
    """A list of facts with a title.

    Parameters
    ----------
    words : str
        The title.
    facts : list of (str, str)
        Name and text of each fact.
    notice : str, optional
        Warning that the session is a rehearsal or not private.

    Examples
    --------
    >>> print(str(session.explain()).splitlines()[1])
    clinic: guarantee and budget
    """

    words: str
    facts: list[tuple[str, str]]
    notice: str | None = None


# --- a description of one group ---------------------------------------------------------------------------------------

MADE = " (made from "
"""With which a description says what a group that the analyst named is made from; see `describe_level`."""

QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'" r'|"(?:[^"\\]|\\.)*"')
"""A constant in a description."""


def without_groups(description: str, names: tuple[str, ...]) -> tuple[str, list[str]]:
    """A description without the groups that it ends or goes on with, and what each of them is made from.

    >>> without_groups("mean of age by old (made from age > 65), sex where age > 3", ("old", "sex"))
    ('mean of age where age > 3', [' (made from age > 65)', ''])
    """
    start = description.find(f" by {names[0]}")
    end, made = start + len(" by "), list[str]()
    for name in names:
        end += 2 * bool(made)  # a comma and a space
        if start < 0 or not description.startswith(name, end):
            return description.replace(f" by {', '.join(names)}", "", 1).rstrip(","), [""] * len(names)
        end += len(name)
        length = _in_parentheses(description[end + 1 :]) + 1 if description.startswith(MADE, end) else 0
        made.append(description[end : end + length])
        end += length
    return (description[:start] + description[end:]).rstrip(","), made


def _in_parentheses(text: str) -> int:
    """The length of the parentheses with which a text begins; those in a quoted constant do not count."""
    bare = QUOTED.sub(lambda quoted: "_" * len(quoted.group()), text)
    depth = 0
    for length, char in enumerate(bare, 1):
        depth += (char == "(") - (char == ")")
        if not depth:
            return length
    return 0
