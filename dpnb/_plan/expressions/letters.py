"""Lower and upper case of texts, letter by letter, so that every backend gives the same text.

Libraries disagree where the other case of a letter has several letters (``ß``, ``İ``), or depends on its place in the
word (the Greek final sigma), and they know different versions of Unicode.  So the case of a text column changes only
for letters below U+0590 (Latin, Greek, Cyrillic, Armenian), each into one letter; all other characters stay.  The
number of characters stays the same too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal as OneOf

Case = OneOf["lower", "upper"]

END = 0x590
"""Scripts with a case from here on are rare, and later versions of Unicode add letters to them."""


def _pairs(change: Callable[[str], str]) -> Mapping[str, str]:
    changed = {letter: change(letter) for letter in map(chr, range(END))}
    return {old: new for old, new in changed.items() if new != old and len(new) == 1 and ord(new) < END}


LETTERS: Mapping[Case, Mapping[str, str]] = {"lower": _pairs(str.lower), "upper": _pairs(str.upper)}
"""The letters that change, and what they change to."""

_TABLES = {case: str.maketrans(dict(letters)) for case, letters in LETTERS.items()}


def changed_case(text: str, case: Case) -> str:
    """The text in lower or upper case.

    >>> changed_case("ZOË Straße", "lower"), changed_case("Straße", "upper")
    ('zoë straße', 'STRAßE')
    """
    if text.isascii():  # no letter is special, and this is ten times as fast
        return text.lower() if case == "lower" else text.upper()
    return text.translate(_TABLES[case])
