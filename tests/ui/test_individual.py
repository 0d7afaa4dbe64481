"""Individual accounting in the Lab: what everybody may know is seen, and questions go on."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from ui.accessible import serious_problems
from ui.conftest import CELL, COCKPIT
from ui.lab import Lab

SESSION = COCKPIT["session"].replace('"cockpit.dpnb",', '"individual.dpnb",\n    accounting="individual",')
WITHIN = "for coins in (0, 25):\n    hie[hie['coins'] == coins].count().release(share=0.3)"
BEYOND = "for coins in (50, 95, 100):\n    answer = hie[hie['coins'] == coins].count().release(mu=0.3)\nanswer"


@pytest.fixture
def individual(cockpit: Lab) -> Lab:
    """The cockpit with a session in which each person has a budget of their own."""
    cockpit.write(CELL["session"], SESSION)
    cockpit.run(CELL["session"])
    return cockpit


def test_panel_says_for_how_many_questions_all_take_part_and_beyond_the_worst_case_the_picker_goes_on(
    individual: Lab,
) -> None:
    individual.write(CELL["spare"], WITHIN)
    individual.run(CELL["spare"])
    for place in individual.places:
        said = place.locator(".dpnb-participation").first
        expect(said).to_contain_text("Every unit certainly took part so far, and takes part in")
        expect(place.locator("[data-gauge=headroom]").first).to_have_attribute("aria-label", "Worst case")
    individual.screenshot("individual-within")
    individual.write(CELL["spare"], BEYOND)
    individual.run(CELL["spare"])
    said = individual.places[0].locator(".dpnb-participation").first
    expect(said).to_contain_text("Every unit certainly took part up to request")
    expect(said).to_contain_text("which, how many, and whether there are any is private")
    expect(individual.status).to_contain_text("some units may be excluded")
    answer = individual.page.locator(".jp-Cell").nth(CELL["spare"])
    expect(answer).to_contain_text("about the units that could still pay for it")
    said.locator("a.dpnb-explanation-link").click()
    expect(individual.panel.locator(".dpnb-explanation[data-explanation=excluded-units]")).to_be_in_viewport()
    individual.screenshot("individual-beyond")
    assert serious_problems(individual.page, ".dpnb-panel") == []
    individual.run(CELL["question"])
    shown = individual.page.locator(".jp-Cell").nth(CELL["question"]).locator(".dpnb-picker")
    expect(shown.get_by_role("slider")).to_be_visible()
    expect(shown.locator(".dpnb-picker-after")).to_contain_text("some units may be excluded")
    before = individual.value("len(session.log)")
    shown.get_by_role("button", name="Release").click()
    expect(shown).to_contain_text("about the units that could still pay for it")
    assert individual.value("len(session.log)") == int(str(before)) + 1


FIT = """\
fit = hie.fit("mdvis", on=["coins"], family="poisson", mu=0.05, steps=25, clip_norm=10.0, learning_rate=0.2)
fit.run()"""


def test_a_fit_says_in_its_cell_and_in_the_panel_how_far_it_is(individual: Lab) -> None:
    individual.write(CELL["spare"], FIT)
    cell = individual.page.locator(".jp-Cell").nth(CELL["spare"])
    with individual.running(CELL["spare"]):
        expect(cell).to_contain_text(re.compile(r"step \d+ of 25"))
    expect(cell).to_contain_text("step 25 of 25")
    expect(cell).to_contain_text("coins == 95")
    expect(cell).to_contain_text("no intervals")
    mechanism = individual.panel.locator(".dpnb-mechanism")
    expect(mechanism.locator(".dpnb-mechanism-text")).to_contain_text("step 25 of 25")
    individual.screenshot("fit")
    spent = individual.value("session.spent.mu")
    individual.run(CELL["spare"])
    expect(cell).to_contain_text("step 25 of 25")
    assert individual.value("session.spent.mu") == spent, "run again, a fit is free"
