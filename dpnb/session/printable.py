"""Text of unknown origin for a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text with what moves a terminal's cursor, or turns the direction of writing, written as an escape."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)
