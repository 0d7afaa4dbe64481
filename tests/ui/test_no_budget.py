"""A session without a budget in the Lab: the warning is at every place, and losses take the place of shares."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from dpnb._core.ledger_metadata import NO_BUDGET
from ui.accessible import serious_problems
from ui.conftest import CELL, COCKPIT
from ui.lab import Lab

SESSION = (
    COCKPIT["session"]
    .replace('"cockpit.dpnb"', '"no-budget.dpnb"')
    .replace("dpnb.Budget(epsilon=2.0, delta=1e-6)", "None")
)


@pytest.fixture
def unlimited(cockpit: Lab) -> Lab:
    """The cockpit with a session without a budget."""
    cockpit.write(CELL["session"], SESSION)
    cockpit.run(CELL["session"])
    return cockpit


def test_absence_of_a_budget_is_marked_wherever_the_user_looks_and_the_picker_offers_losses(unlimited: Lab) -> None:
    unlimited.write(CELL["release"], "hie['mdvis'].sum().release(mu=9)")
    unlimited.run(CELL["release"])
    reading = unlimited.value("__import__('dpnb').session.snapshot.snapshot(session).gauges[1].text")
    assert str(reading).startswith("loss so far at most ")
    for place in unlimited.places:
        expect(place.locator(".dpnb-notice .dpnb-notice-text")).to_have_text(NO_BUDGET)
        expect(place.locator(".dpnb-gauge[data-kind=no-budget]")).to_contain_text("nothing limits the privacy loss")
        expect(place.locator(".dpnb-losses .dpnb-gauge-text")).to_have_text(str(reading))
        expect(place.get_by_role("meter")).to_have_count(0)
        expect(place.locator(".dpnb-budget-over-time")).to_have_count(0)
    expect(unlimited.panel.locator(".dpnb-loss-over-time .dpnb-timeline-curve").first).to_be_visible()
    expect(unlimited.status).to_have_text(f"dpnb {reading} · {NO_BUDGET}")
    expect(unlimited.panel.locator(".dpnb-release-cost").first).to_have_text("mu 9")
    answer = unlimited.page.locator(".jp-Cell").nth(CELL["release"])
    expect(answer).to_contain_text(NO_BUDGET)
    expect(answer.locator(".dpnb-badge")).to_have_text("mu 9, no budget")
    unlimited.screenshot("no-budget")
    assert serious_problems(unlimited.page, ".dpnb-panel") == []
    unlimited.panel.locator(".dpnb-notice a.dpnb-explanation-link").first.click()
    expect(unlimited.panel.locator(".dpnb-explanation[data-explanation=no-budget]")).to_be_in_viewport()
    unlimited.run(CELL["question"])
    shown = unlimited.page.locator(".jp-Cell").nth(CELL["question"]).locator(".dpnb-picker")
    expect(shown.locator(".dpnb-notice")).to_have_text(NO_BUDGET)
    expect(shown.locator(".dpnb-picker-most")).to_have_text("mu 0.5")
    expect(shown.locator(".dpnb-picker-bar")).to_be_hidden()
    expect(shown.locator(".dpnb-picker-after")).to_contain_text("no budget: mu ")
    shown.locator("[data-preset=talk]").click()
    expect(shown.locator(".dpnb-picker-code")).to_contain_text(".release(mu=0.0")
    unlimited.screenshot("no-budget-picker")
    shown.get_by_role("button", name="Release", exact=True).click()
    expect(shown.locator(".dpnb-picker-answer")).to_contain_text("cost mu 0.0")
    assert unlimited.value("len(session.log)") == 2
