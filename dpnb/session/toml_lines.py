"""The line number of each key in a TOML file, which `tomllib` does not report."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

KeyPath = tuple[str, ...]
"""A key, as its path from the top of the file."""


def lines_of(text: str) -> dict[KeyPath, int]:
    """For each key, the line (counted from 1) on which the first statement with that key begins.

    A TOML statement (a header, a key with its value, or only a comment) ends at the end of a line and can be parsed
    separately.  So lines are accumulated until `tomllib` can parse them; it knows which lines are inside a string or a
    list.
    """
    lines: dict[KeyPath, int] = {}
    table: KeyPath = ()
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


def _paths(stated: Mapping[str, Any], above: KeyPath) -> Iterator[KeyPath]:
    for key, value in stated.items():
        yield (*above, key)
        if isinstance(value, Mapping):
            yield from _paths(value, (*above, key))
