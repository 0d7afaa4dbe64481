"""Query plans of engines: why the rows of a plan may differ between reads, and plans that are shown as text."""

from __future__ import annotations

import re
from itertools import takewhile

RANDOM = "a random or volatile operation"
LIMITED = "a limit without an order"
ONE_OF_SEVERAL = "one row kept of several, without an order"
NUMBERED = "numbers of rows without an order"
TIME = "the current time"

_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
PlanLine = tuple[int, str]
"""Indentation and text of a line of a plan."""


def lines_of(text: str) -> list[PlanLine]:
    """The lines of a plan without quoted text: one operation per line, its inputs below it, indented further."""
    return [line_of(line) for line in _QUOTED.sub('""', text).splitlines()]


def line_of(line: str) -> PlanLine:
    """One line of a plan."""
    text = line.lstrip(" :+-")
    return len(line) - len(text), text.rstrip()


def inputs_of(lines: list[PlanLine], index: int) -> list[str]:
    """The lines of an operation's inputs."""
    own_indent = lines[index][0]
    return [text for _, text in takewhile(lambda line: line[0] > own_indent, lines[index + 1 :])]
