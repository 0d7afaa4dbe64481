"""Cells, rows and headings of the page's tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

DASH = "–"
GIGABYTE, MEGABYTE = 2**30, 2**20


def shown(seconds: float | None) -> str:
    """Milliseconds, three digits."""
    return DASH if seconds is None else digits(1000 * seconds)


def digits(value: float) -> str:
    """Three digits, or all before the point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def over(one: float | None, other: float | None) -> float | None:
    """One figure divided by another, where both were measured."""
    return None if one is None or not other else one / other


def ratio(one: float | None, other: float | None) -> str:
    """The same in words."""
    found = over(one, other)
    return DASH if found is None else f"{digits(found)}×" if found >= 0.005 else "<0.01×"


def unit(person: bool) -> str:
    """What is protected."""
    return "persons" if person else "rows"


def row(*cells: object) -> str:
    """A row of a table."""
    return "| " + " | ".join(map(str, cells)) + " |"


def heading(*cells: str) -> Iterator[str]:
    """The first lines of a table: words on the left, figures on the right."""
    yield row(*cells)
    yield "|---|" + "---:|" * (len(cells) - 1)


def unmeasured(found: dict[str, Any]) -> str | None:
    """Why something has no figures, if that is so."""
    if "error" in found:
        words = (found["error"].strip().splitlines() or [""])[-1].replace("|", "/")
        return f"Not measured: {words[:100]}."
    return f"Not done after {found['over']} seconds." if "over" in found else None
