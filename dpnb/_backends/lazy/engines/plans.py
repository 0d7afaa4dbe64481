"""Plans of engines: why the rows of one need not be the same each time, and the text in which some are shown."""

from __future__ import annotations

import re

RANDOM = "something random"
LIMITED = "a limit without an order"
ONE_OF_SEVERAL = "one row kept of several, without saying which"
NUMBERED = "numbers of rows that come in no order"
TIME = "the present time"

_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
PlanLine = tuple[int, str]
"""How far a line of a plan is indented, and what it says."""


def lines_of(text: str) -> list[PlanLine]:
    """A plan as text, without what it quotes: one operation per line, its inputs below it and indented further."""
    return [line_of(line) for line in _QUOTED.sub('""', text).splitlines()]


def line_of(line: str) -> PlanLine:
    """One line of a plan."""
    text = line.lstrip(" :+-")
    return len(line) - len(text), text.rstrip()


def below(lines: list[PlanLine], place: int) -> list[str]:
    """The lines of an operation's inputs."""
    indent, found = lines[place][0], []
    for deep, text in lines[place + 1 :]:
        if deep <= indent:
            break
        found.append(text)
    return found
