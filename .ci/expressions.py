"""Write the page of pandas expressions: what each line of ``tests/frame/habits.toml`` gives, or why it is refused.

The tests run every line of that table. Each is run again here, on the same small tables, because the page has whole
messages and the meaning of each expression. Lines with the same meaning form one row of the page.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Hashable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy
import pandas

import dpnb

TESTS = Path(__file__).resolve().parent.parent / "tests"
if str(TESTS) not in sys.path:
    sys.path.insert(0, str(TESTS))

from frame.habits import THEMES, code_in, run  # noqa: E402
from frame.habits_tables import tables  # noqa: E402

LONGEST = {"result": 160, "refusal": 480}  # characters

HEAD = """\
# Expressions, one by one

This page is made from [the table of expressions][table] that the tests keep: they run every line. Search the
page in your browser for what you would type in pandas. The [cheat sheet](cheat-sheet.md) is the short version.

The expressions use three views of private tables: `df` has the wages of men in eight years (the privacy unit is a man,
`nr`), `hm` has mortgage applications, and `sf` has stops by the police. Expressions with the same outcome share a row;
if it is a *query*, it is one and the same query: free until it is released, with one answer for all spellings. A
*column*, *condition* or *table* is a part of a query. *Public* values are those that the curator has declared.

[table]: https://github.com/dpnb/dpnb/blob/main/tests/frame/habits.toml
"""


class Outcome(NamedTuple):
    """What an expression gives: outcomes are equal if the expressions mean the same."""

    text: str
    meaning: Hashable = None


# --- outcomes ---------------------------------------------------------------------------------------------------------


class Outcomes:
    """What expressions give, on the tables of the tests."""

    def __init__(self, folder: Path) -> None:
        self._views = tables(folder)
        self._names = {**self._views, "np": numpy, "pd": pandas, "dpnb": dpnb}

    def result(self, code: str) -> Outcome:
        """What an expression that works gives."""
        value = self._run(code)
        if value is None:
            return Outcome("accepted")
        meaning = None
        if isinstance(value, dpnb.Query):
            meaning = (repr(value.plan), repr(value.view), id(value.runner))
        return Outcome(described(value, self._views.values()), meaning)

    def refusal(self, code: str, part: str) -> Outcome:
        """Why an expression is refused; the part of it that the table has if a library is missing here."""
        try:
            self._run(code)
        except dpnb.errors.DpnbError as error:
            message = str(error)
        except ImportError:
            message = part
        else:
            raise ValueError(f"{code} is listed as refused, but works")
        return Outcome(shortened(without_subject(message, part), LONGEST["refusal"]))

    def _run(self, code: str) -> Any:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            return run(code, self._names)


def described(value: Any, views: Iterable[Any] = ()) -> str:
    """A result in words."""
    text = ", ".join(" ".join(line.split()) for line in repr(value).removesuffix("\ndtype: object").splitlines())
    if found := re.fullmatch(r"<(?:private )?(query|column|condition|table): (.*)>", text):
        kind, words = found.groups()
        if any(repr(view) == repr(value) for view in views):
            return "the same table"
        return f"{kind}: {shortened(words.partition('; .preview()')[0], LONGEST['result'])}"
    text = shortened(text, LONGEST["result"])
    return text if "<" in text else f"public: {text}"


def shortened(text: str, longest: int) -> str:
    """The beginning of a long text."""
    return text if len(text) <= longest else text[:longest].rpartition(" ")[0].rstrip(",") + " ..."


def without_subject(message: str, part: str) -> str:
    """A message without its subject, which is the expression itself."""
    subject, colon, rest = message.partition(": ")
    if colon and "<" not in subject and (subject.startswith(".") or "private" in subject or part in rest):
        return rest
    return message


# --- Markdown ---------------------------------------------------------------------------------------------------------


def page(result: Callable[[str], Outcome], refusal: Callable[[str, str], Outcome]) -> str:
    """The whole page."""
    parts = [HEAD]
    for theme in THEMES:
        works: dict[Outcome, list[str]] = {}
        refused: dict[Outcome, list[str]] = {}
        for code in theme["works"]:
            works.setdefault(result(code), []).append(code)
        for code, part in theme["refused"].items():
            refused.setdefault(refusal(code, part), []).append(code)
        parts.append(f"\n## {theme['name']}\n")
        parts.append(rows("What works", "What it gives", works))
        parts.append(rows("What is refused", "Why, and what to write", refused))
    return "".join(parts)


def rows(left: str, right: str, found: dict[Outcome, list[str]]) -> str:
    """A table whose rows are the expressions that have one outcome."""
    if not found:
        return ""
    lines = [
        f"| {'<br>'.join(map(code_span, codes))} | {marked_up(outcome.text)} |" for outcome, codes in found.items()
    ]
    return "\n".join(["", f"| {left} | {right} |", "|---|---|", *lines, ""])


def code_span(code: str) -> str:
    """Code in a cell of a table."""
    return f"`{code}`".replace("|", "\\|")


def marked_up(text: str) -> str:
    """A text in a cell of a table, with the code in it set as code."""
    parts: list[str] = []
    position = 0
    for begin, end in code_in(text):
        parts += [escaped(text[position:begin]), code_span(text[begin:end])]
        position = end
    return "".join([*parts, escaped(text[position:])])


def escaped(text: str) -> str:
    """Words in which no character is Markdown."""
    return re.sub(r"([\\`*_\[\]<>|$#~])", r"\\\1", text)


def write(path: Path) -> None:
    """Write the page."""
    with tempfile.TemporaryDirectory() as folder:
        outcomes = Outcomes(Path(folder))
        path.write_text(page(outcomes.result, outcomes.refusal), encoding="utf-8")
