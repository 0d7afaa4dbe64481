"""Filters and odometers that are compared only when the reader opens the accounting details."""

from __future__ import annotations

from playwright.sync_api import expect

from ui.conftest import CELL
from ui.lab import Lab

COMPARED = 6
"""Filters that can enforce the budget of the session."""


def test_filters_are_compared_when_the_details_are_opened_and_follow_a_busy_kernel(cockpit: Lab) -> None:
    cockpit.run(CELL["release"])
    details = cockpit.panel.locator(".dpnb-accounting")
    rows, missing = details.locator("tr.dpnb-filter"), details.locator(".dpnb-not-compared")
    expect(rows).to_have_count(1)  # the enforced one, which is folded away
    cockpit.write(CELL["spare"], "from fake_session import hold\nhold()")
    with cockpit.running(CELL["spare"]):
        details.locator("summary").click()
        expect(missing).to_be_visible()
        expect(rows).to_have_count(1)
        cockpit.screenshot("not-compared")
        cockpit.let_go()
    expect(rows).to_have_count(COMPARED)
    expect(missing).to_be_hidden()
    cockpit.screenshot("compared")
    left = rows.nth(1).locator(".dpnb-filter-text")
    before = left.text_content()
    cockpit.write(CELL["release"], "hie['mdvis'].sum().release(mu=0.06)")
    cockpit.run(CELL["release"])
    expect(left).not_to_have_text(before or "")
    details.locator("summary").click()
    expect(rows).to_have_count(1)
