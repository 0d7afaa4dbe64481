"""Where the table of a remote session is, and whether the figures shown are up to date."""

from __future__ import annotations

from html import escape
from typing import Protocol

from dpnb.render.page import FAINT, LOUD

LAST_KNOWN = "All figures here are the last known."
"""Follows the state of a connection that is not current; the sentence is true of every output."""

DIMMED = "filter:grayscale(1);opacity:.75"
"""Style of figures that are out of date: without colour, and still readable."""


class ConnectionState(Protocol):
    """A connection, or its record in a snapshot."""

    @property
    def where(self) -> str: ...  # noqa: D102

    @property
    def is_current(self) -> bool: ...  # noqa: D102

    @property
    def text(self) -> str: ...  # noqa: D102


def connection_lines(connection: ConnectionState | None) -> list[str]:
    """Where the table is, and its state; nothing for a local session."""
    if connection is None:
        return []
    where = f"table {connection.where}"
    if connection.is_current:
        return [f"{where}; {connection.text}"]
    return [where, f"{_sentence(connection.text)} {LAST_KNOWN}"]


def connection_html(connection: ConnectionState | None) -> str:
    """The lines as HTML; a state that is not current stands out."""
    if connection is None:
        return ""
    where, *state = connection_lines(connection)
    loud = "".join(f'<div role="status" style="{LOUD}">{escape(line)}</div>' for line in state)
    return f'<div style="{FAINT}">{escape(where)}</div>{loud}'


def _sentence(text: str) -> str:
    """A text as a sentence."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."
