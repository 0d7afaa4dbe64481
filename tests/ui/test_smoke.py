"""The quickstart, driven like a newcomer drives it: what the page shows is what the session says."""

from __future__ import annotations

import math
import re

import pytest
from playwright.sync_api import expect

from ui.lab import Lab, expect_reading, reading

NOTEBOOK = "01-quickstart.ipynb"


def number(sources: list[str], *words: str) -> int:
    """Index of the first cell that contains all these words."""
    return next(index for index, source in enumerate(sources) if all(word in source for word in words))


def expect_agreement(lab: Lab) -> float:
    """Check that gauge, panel and status say what the session says; returns the headroom."""
    headroom, spent, budget = lab.value("(session.headroom, session.spent.mu, session.filter.budget.mu)")  # type: ignore[misc]
    share = f"{math.floor(1000 * headroom) / 10:.1f}% left"  # never more than there is
    for gauge in (lab.cell_gauge("headroom"), lab.panel_gauge("headroom")):
        expect_reading(gauge, share)
        assert reading(gauge) == headroom
    expect(lab.status).to_have_text(f"dpnb {share}")
    words = re.match(r"Spent: mu (\S+) of ([\d.]+);", lab.panel.locator(".dpnb-spent-loss").first.text_content() or "")
    assert words is not None
    # Which way the words are rounded is a fact about the session's state, tested there.
    assert float(words[1]) == pytest.approx(spent, rel=1e-3)
    assert float(words[2]) == pytest.approx(budget, rel=1e-3)
    return headroom


@pytest.mark.smoke
def test_quickstart_runs_and_a_release_through_the_picker_moves_gauge_badge_and_status(lab: Lab) -> None:
    lab.open(NOTEBOOK)
    cells = lab.notebook(NOTEBOOK)["cells"]
    sources = ["".join(cell["source"]) if cell["cell_type"] == "code" else "" for cell in cells]
    session, question = number(sources, "dpnb.Session("), number(sources, ".median()")
    for index in range(session + 1):
        if sources[index]:
            lab.run(index)
    assert expect_agreement(lab) == 1, "looking is free"
    lab.run_all()
    expect(lab.page.locator(".jp-OutputArea", has_text="the largest that fits")).to_have_count(1)
    before = expect_agreement(lab)
    assert before < 1

    cell = lab.page.locator(".jp-Cell").nth(question)
    picker, badge = cell.locator(".dpnb-picker"), cell.locator(".dpnb-badge")
    picker.scroll_into_view_if_needed()
    expect(badge).to_have_count(0)
    releases = lab.panel.locator(".dpnb-release")
    asked = releases.count()
    picker.get_by_role("button", name="Release").click()
    expect(picker.locator(".dpnb-picker-answer")).to_contain_text("95% noise interval")
    assert expect_agreement(lab) < before
    expect(releases).to_have_count(asked + 1)
    expect(releases.first).to_contain_text("median of mdvis")
    cost = re.search(r"[\d.]+% of the budget", releases.first.locator(".dpnb-release-cost").text_content() or "")
    assert cost is not None
    expect(badge).to_contain_text(cost[0])

    lab.places[1].scroll_into_view_if_needed()
    lab.screenshot("quickstart")
    lab.save()
    [output] = lab.notebook(NOTEBOOK)["cells"][session]["outputs"]
    for face in ("text/plain", "text/html"):
        assert "100.0% left" in "".join(output["data"][face]), "a still picture is saved beside the live gauges"
