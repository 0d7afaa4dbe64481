"""The expressions of `habits.toml`: how one is run, and which code a message about it has."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import dpnb

TABLE = Path(__file__).with_name("habits.toml")
THEMES: list[dict[str, Any]] = tomllib.loads(TABLE.read_text(encoding="utf-8"))["theme"]
WORKS: list[str] = [code for theme in THEMES for code in theme["works"]]
REFUSED: dict[str, str] = {code: part for theme in THEMES for code, part in theme["refused"].items()}

START = re.compile(
    r"(?<![\w.'\])])"
    r"(?:\(?(?:df|public_table)\[|df = |(?:df|np|pd|dpnb|session)\.\w"  # a table, a library, the session
    r"|\.[a-z_]"  # a method or an attribute of what the sentence is about
    r"|\w+\((?:['\[.{]|columns=))"  # a call with arguments, whereas name() can be part of a description
)
"""Where code begins in a sentence."""

OPERATOR = re.compile(r" (?:[*/+\-<>=&|]|[<>=]=) ")


def run(code: str, names: dict[str, Any]) -> Any:
    """The value of an expression, which gets its own copies of the tables; a statement has none."""
    own = {name: value.copy() if isinstance(value, dpnb.Frame) else value for name, value in names.items()}
    try:
        compiled = compile(code, "habit", "eval")
    except SyntaxError:
        return exec(code, own)
    return eval(compiled, own)


def code_in(text: str) -> list[tuple[int, int]]:
    """Where code is in a sentence: the begin and the end of each piece, with its brackets, attributes and operators."""
    found: list[tuple[int, int]] = []
    at = 0
    while match := START.search(text, at):
        at = _end(text, match.start())
        last, before = text[at - 1], text[at - 2]
        is_mark = last in ":?" or (last == "." and before != ".")  # of the sentence, whereas an ellipsis is code
        found.append((match.start(), at - is_mark))
    return found


def _end(text: str, at: int) -> int:
    """The end of the code: outside brackets at a space that no operator follows, or at punctuation."""
    depth, quote = 0, ""
    while at < len(text):
        char = text[at]
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            if not depth and text[at - 1] != " ":  # the end of a text that the message quotes
                return at
            quote = char
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
            if depth < 0:
                return at
        elif not depth and char in ",;":
            return at
        elif not depth and char == " ":
            follows = OPERATOR.match(text, at)
            if follows is None:
                return at
            at = follows.end() - 1
        at += 1
    return at
