"""The public name that was probably meant: "did you mean ...?" in error messages."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

MAX_COMPARED = 2_000
"""Largest number of names that are compared: a comparison takes microseconds, and a list of categories may be long."""

MIN_SIMILARITY = 0.65
"""The ratio of `difflib.SequenceMatcher` from which two names are similar."""


def closest(name: object, possible: Iterable[object]) -> object | None:
    """The public value that is most similar to a name, ignoring case; None if none is similar.

    `possible` must be public: columns of the schema, declared categories, names of methods.

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
    matches = get_close_matches(name.casefold().strip(), by_text, n=1, cutoff=MIN_SIMILARITY)
    return by_text[matches[0]] if matches else None


def did_you_mean(name: object, possible: Iterable[object]) -> str:
    """``"; did you mean 'wage'?"`` to append to an error's text, or an empty text; see `closest`.

    >>> did_you_mean("Wage", ["year", "wage"])
    "; did you mean 'wage'?"
    """
    match = closest(name, possible)
    return "" if match is None else f"; did you mean {match!r}?"
