"""The code before a cursor: what a bracket or a dot belongs to, and whether a string is open.

The code is incomplete, so it has no syntax tree; its tokens do.
"""

from __future__ import annotations

import io
import tokenize
from dataclasses import dataclass

OPENING, CLOSING = "([{", ")]}"
MARKS = ('"""', "'''", '"', "'")
PREFIXES = ("", "r", "R", "u", "U")
"""Prefixes of a string whose text is what is typed; in others, such as f-strings, nothing is completed."""


@dataclass(frozen=True)
class OpenString:
    """A string that is open at the cursor."""

    text: str  # what was typed of it
    mark: str  # its quotation mark
    compared: str  # code on the left of ``==`` or ``!=``, if the string is on the right; otherwise empty
    owner: str  # code before the innermost bracket that belongs to something: ``df`` of ``df["`` and ``df[["``
    bracket: str  # that bracket; empty if there is none


@dataclass(frozen=True)
class OpenAttribute:
    """An attribute that is typed at the cursor: the code before its dot, and what was typed of its name."""

    owner: str
    text: str


CodeToken = tuple[int, str, int, int]
"""Type, text, and where it begins and ends in the code."""


def at_cursor(code: str) -> OpenString | OpenAttribute | None:
    """What is typed at the end of the code, which is the cell up to the cursor; None for anything else."""
    tokens = _tokens(code)
    start = _open_string(code)
    if start is not None:
        return _string(code, tokens, start)
    if tokens and tokens[-1][0] == tokenize.NAME and tokens[-1][3] == len(code):
        name, before = tokens[-1][1], tokens[:-1]
    else:
        name, before = "", tokens
    if not before or before[-1][1] != "." or before[-1][3] + len(name) != len(code):
        return None
    owner = _primary(code, before[:-1])
    return OpenAttribute(owner, name) if owner else None


def _tokens(code: str) -> list[CodeToken]:
    """The tokens, as far as the code has any; spaces and comments omitted."""
    starts = [0]
    for line in code.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found: list[CodeToken] = []
    skipped = (tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER, tokenize.ENCODING)
    try:
        for token in tokenize.generate_tokens(io.StringIO(code).readline):
            start, end = (starts[min(row - 1, len(starts) - 1)] + col for row, col in (token.start, token.end))
            if token.type not in skipped and token.string.strip(" \t"):
                found.append((token.type, token.string, start, end))
    except (tokenize.TokenError, SyntaxError):  # the end of the code is inside a bracket or a string
        pass
    return found


def _open_string(code: str) -> int | None:
    """Where the string that is open at the cursor begins, with its prefix; None if there is none."""
    at, mark, start, comment = 0, "", 0, False
    while at < len(code):
        if comment:
            comment = code[at] != "\n"
        elif mark:
            if code[at] == "\\":
                at += 1
            elif code.startswith(mark, at):
                at += len(mark) - 1
                mark = ""
            elif code[at] == "\n" and len(mark) == 1:
                mark = ""  # a string that was not closed
        elif code[at] == "#":
            comment = True
        else:
            mark = next((one for one in MARKS if code.startswith(one, at)), "")
            if mark:
                start = at
                at += len(mark) - 1
        at += 1
    if not mark:
        return None
    while start and (code[start - 1].isalnum() or code[start - 1] == "_"):
        start -= 1
    return start


def _string(code: str, tokens: list[CodeToken], start: int) -> OpenString | None:
    begun = code[start:]
    prefix = begun[: len(begun) - len(begun.lstrip("rRuUbBfFtT"))]
    mark = next((one for one in MARKS if begun.startswith(one, len(prefix))), "")
    if prefix not in PREFIXES or not mark:
        return None
    text = begun[len(prefix) + len(mark) :]
    before = [token for token in tokens if token[3] <= start]
    if before and before[-1][1] in ("==", "!="):
        return OpenString(text, mark, _primary(code, before[:-1]), "", "")
    if before and before[-1][1] not in (*OPENING, ",", "=", ":"):
        return None
    owner, bracket = _owner(code, before)
    return OpenString(text, mark, "", owner, bracket)


def _owner(code: str, tokens: list[CodeToken]) -> tuple[str, str]:
    """The code before the innermost open bracket that belongs to something, and that bracket."""
    still_open: list[int] = []
    for index, (_, text, _, _) in enumerate(tokens):
        if text in OPENING:
            still_open.append(index)
        elif text in CLOSING and still_open:
            still_open.pop()
    for index in reversed(still_open):
        owner = _primary(code, tokens[:index]) if tokens[index][1] != "{" else ""
        if owner:
            return owner, tokens[index][1]
    return "", ""


def _primary(code: str, tokens: list[CodeToken]) -> str:
    """The name, with its attributes, calls and subscripts, that the tokens end with; empty for anything else."""
    index = len(tokens) - 1
    while index >= 0:
        kind, text, start, _ = tokens[index]
        if text in (")", "]"):
            depth = 0
            while index >= 0:
                depth += (tokens[index][1] in CLOSING) - (tokens[index][1] in OPENING)
                if depth == 0:
                    break
                index -= 1
            index -= 1
            if index >= 0 and (tokens[index][0] == tokenize.NAME or tokens[index][1] in (")", "]")):
                continue
            if text == ")" and index + 1 < len(tokens):  # an expression in parentheses
                return code[tokens[index + 1][2] : tokens[-1][3]]
            return ""
        if kind != tokenize.NAME:
            return ""
        if index and tokens[index - 1][1] == ".":
            index -= 2
            continue
        return code[start : tokens[-1][3]]
    return ""
