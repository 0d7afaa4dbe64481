"""What axe finds on a page."""

from __future__ import annotations

from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from ui.lab import IS_STILL

SERIOUS = ("serious", "critical")
ALL = {"resultTypes": ["violations"]}
"""Every rule; of those that are kept, the names alone."""
COLOURS = {**ALL, "runOnly": ["color-contrast", "link-in-text-block"]}
"""The rules that depend on colours: all that can change where a page that was looked at has another scheme."""


def problems(page: Page, *places: str, only_colours: bool = False) -> list[tuple[str, str, list[str]]]:
    """Problems of a page, or of the elements at some selectors: each rule, its weight and the elements."""
    page.wait_for_function(IS_STILL)  # colours glide
    context = {"include": [[place] for place in places]} if places else None
    found: Any = Axe().run(page, context=context, options=COLOURS if only_colours else ALL).response
    assert len(found["passes"] + found["violations"]) > (0 if only_colours else 5), "axe looked at nothing"
    return [
        (rule["id"], rule["impact"], [f"{node['html'][:200]} {node['failureSummary']}" for node in rule["nodes"]])
        for rule in found["violations"]
    ]


def serious_problems(page: Page, *places: str, only_colours: bool = False) -> list[tuple[str, str, list[str]]]:
    """The problems that keep somebody from using it."""
    return [found for found in problems(page, *places, only_colours=only_colours) if found[1] in SERIOUS]
