"""Which value of a table counts as which declared category, whether a column holds texts or numbers.

Readers choose a column's type from all of its values: one text turns a column of the numbers 0, 25, 50 into texts.  So
25, 25.0 and ``"25"`` are one category, unless two declared categories would then be one value; these are matched as
they are written.  The values are a finite, public list, so every engine looks them up in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from dpnb._plan.schema import MAX_EXACT_INTEGER, Key, has_allowed_magnitude

DECIMAL = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]{1,3})?", re.ASCII)

TRUTH = {"True": 1, "true": 1, "TRUE": 1, "False": 0, "false": 0, "FALSE": 0}
"""The texts of truth values that readers recognise, as numbers."""

MAX_DIGITS = 100
"""Longer texts are not numbers."""


class CategoryValues(NamedTuple):
    """The code of each value that counts, for columns of texts and of numbers; truth values are the numbers 0 and 1."""

    texts: dict[str, int]
    numbers: dict[int | float, int]


def values_of(categories: Iterable[Key]) -> CategoryValues:
    """The values that count as each category, by its index."""
    exact: dict[Key, int] = {key: code for code, key in enumerate(categories)}
    claims: dict[Key, set[int]] = {}
    for key, code in exact.items():
        number = _number(key) if isinstance(key, str) else key
        for value in () if number is None else (number, *_texts(number)):
            claims.setdefault(value, set()).add(code)
    codes = {value: next(iter(by)) for value, by in claims.items() if len(by) == 1} | exact
    return CategoryValues(
        {value: code for value, code in codes.items() if isinstance(value, str)},
        {value: code for value, code in codes.items() if not isinstance(value, str)},
    )


def _number(text: str) -> int | float | None:
    """The number that a reader makes of a text; None if it makes none, or one that cannot be a category."""
    if text in TRUTH or not DECIMAL.fullmatch(text) or len(text) > MAX_DIGITS:
        return TRUTH.get(text)
    try:
        number: int | float = int(text)
    except ValueError:
        number = float(text)
    return number if abs(number) < 2**63 and has_allowed_magnitude(number) else None


def _texts(number: int | float) -> list[str]:
    """How a number is written: as an integer, and as a library writes a double."""
    texts = [repr(float(number))] if isinstance(number, float) or abs(number) <= MAX_EXACT_INTEGER else []
    if number == number // 1:
        texts.append(str(int(number)))
    return texts + [text for text, truth in TRUTH.items() if truth == number]
