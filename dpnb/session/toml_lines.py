"""The line of a TOML file on which each key is stated, which `tomllib` does not report."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

Keys = tuple[str, ...]
"""A key by its path from the top of the file."""


def lines_of(text: str) -> dict[Keys, int]:
    """The line, from 1, on which the statement begins that first names each key.

    A statement of TOML (a header, a key with its value, or nothing but a comment) ends at the end of a line and can be
    read by itself.  So lines are put together until `tomllib` can read them; it knows which lines are inside a text or
    a list.

    Parameters
    ----------
    text : str
        TOML that `tomllib` can read.
    """
    lines: dict[Keys, int] = {}
    table: Keys = ()
    statement, start = "", 1
    for number, line in enumerate(text.split("\n"), 1):
        statement += line + "\n"
        try:
            stated = tomllib.loads(statement)
        except tomllib.TOMLDecodeError:
            continue
        header = statement.lstrip(" \t").startswith("[")
        paths = [*_paths(stated, () if header else table)]
        for path in paths:
            lines.setdefault(path, start)
        if header:
            table = paths[-1]
        statement, start = "", number + 1
    return lines


def _paths(stated: Mapping[str, Any], above: Keys) -> Iterator[Keys]:
    for key, value in stated.items():
        yield (*above, key)
        if isinstance(value, Mapping):
            yield from _paths(value, (*above, key))
