"""The quickstart, driven like a newcomer drives it: what the page shows is what the session says."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from ui.lab import Lab, expect_reading, reading

NOTEBOOK = "01-quickstart.ipynb"


@pytest.fixture
def sources(lab_root: Path) -> list[str]:
    """The source of every cell; an empty text for those that are not code."""
    cells = json.loads((lab_root / NOTEBOOK).read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) if cell["cell_type"] == "code" else "" for cell in cells]


@pytest.fixture
def quickstart(lab: Lab) -> Lab:
    """The quickstart with nothing run and no ledger."""
    lab.open(NOTEBOOK)
    return lab


def number(sources: list[str], *words: str) -> int:
    """Index of the first cell that contains all these words."""
    return next(index for index, source in enumerate(sources) if all(word in source for word in words))


def make_session(lab: Lab, sources: list[str]) -> None:
    """Run every cell up to the one that makes the session, and the one that opens its frame."""
    for index in range(number(sources, "dpnb.Session(") + 1):
        if sources[index]:
            lab.run(index)
    lab.run(number(sources, "session.frame"))


def expect_agreement(lab: Lab) -> float:
    """Check that gauge, panel and status say what the session says; returns the headroom."""
    headroom, spent, budget = lab.value("(session.headroom, session.spent.mu, session.filter.budget.mu)")  # type: ignore[misc]
    share = f"{math.floor(1000 * headroom) / 10:.1f}% left"  # never more than there is
    for gauge in (lab.cell_gauge("headroom"), lab.panel_gauge("headroom")):
        expect_reading(gauge, share)
        assert reading(gauge) == headroom
    expect(lab.status).to_have_text(f"dpnb {share}")
    words = re.fullmatch(r"Spent: mu (\S+) of (\S+)", lab.panel.locator(".dpnb-spent").first.text_content() or "")
    assert words is not None
    # Which way the words are rounded is a fact about the session's state, tested there.
    assert float(words[1]) == pytest.approx(spent, rel=1e-3)
    assert float(words[2]) == pytest.approx(budget, rel=1e-3)
    return headroom


def test_release_moves_gauge_panel_and_status_and_they_agree_with_the_session(
    quickstart: Lab, sources: list[str]
) -> None:
    make_session(quickstart, sources)
    expect(quickstart.panel).to_be_visible()
    assert expect_agreement(quickstart) == 1
    quickstart.run(number(sources, "persons.release(within=50)"))
    after_count = expect_agreement(quickstart)
    quickstart.run(number(sources, "visits = "))
    assert expect_agreement(quickstart) == after_count < 1, "a preview is free"
    quickstart.run(number(sources, "visits.release"))
    assert expect_agreement(quickstart) < after_count
    questions = quickstart.panel.locator(".dpnb-release")
    expect(questions).to_have_count(2)
    expect(questions.first).to_contain_text("mdvis")


def test_refusal_moves_nothing(quickstart: Lab, sources: list[str]) -> None:
    make_session(quickstart, sources)
    quickstart.run(number(sources, "BudgetExceeded"))
    expect(quickstart.page.locator(".jp-OutputArea", has_text="largest")).to_have_count(1)
    assert expect_agreement(quickstart) == 1


def test_running_everything_again_after_a_restart_spends_nothing(quickstart: Lab) -> None:
    quickstart.run_all()
    first = expect_agreement(quickstart)
    assert first < 1, "nothing was spent, so nothing is shown"
    spent = quickstart.value("repr(session.spent)")
    for theme in ("dark", "light"):
        quickstart.set_theme(f"JupyterLab {theme.title()}")
        quickstart.places[1].scroll_into_view_if_needed()
        quickstart.screenshot(f"quickstart-{theme}")
    quickstart.restart()
    expect(quickstart.panel).to_contain_text("restarted")
    quickstart.run_all()
    assert expect_agreement(quickstart) == first
    assert quickstart.value("repr(session.spent)") == spent


def test_reloaded_page_shows_the_same_budget(quickstart: Lab, sources: list[str]) -> None:
    make_session(quickstart, sources)
    quickstart.run(number(sources, "persons.release(within=50)"))
    before = expect_agreement(quickstart)
    quickstart.save()
    quickstart.reload()
    assert expect_agreement(quickstart) == before


def test_saved_notebook_holds_a_still_picture_beside_the_live_gauges(
    quickstart: Lab, sources: list[str], lab_root: Path
) -> None:
    make_session(quickstart, sources)
    expect_agreement(quickstart)
    quickstart.save()
    cells = json.loads((lab_root / NOTEBOOK).read_text(encoding="utf-8"))["cells"]
    [output] = cells[number(sources, "dpnb.Session(")]["outputs"]
    for face in ("text/plain", "text/html"):
        assert "100.0% left" in "".join(output["data"][face])


def test_budget_moves_while_a_cell_is_still_running(quickstart: Lab, sources: list[str]) -> None:
    make_session(quickstart, sources)
    expect_reading(quickstart.panel_gauge("headroom"), "100.0% left")
    cell = len(sources) - 1
    quickstart.write(cell, "import time\nhie['mdvis'].sum().release(mu=0.1)\ntime.sleep(4)")
    with quickstart.running(cell):
        for gauge in (quickstart.panel_gauge("headroom"), quickstart.cell_gauge("headroom")):
            expect(gauge).not_to_have_attribute("aria-valuetext", "100.0% left", timeout=3_000)
        expect(quickstart.status).not_to_have_text("dpnb 100.0% left", timeout=1_000)
        assert quickstart.is_running(), "the page was told only after the cell"
    expect_agreement(quickstart)
