"""Interactive mechanisms in the Lab: alive at once, seen as they are, and the odometers that pause meanwhile."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, expect

from dpnb.render.numbers import format_percent_down
from ui.accessible import serious_problems
from ui.conftest import CELL
from ui.lab import THEMES, Lab

LAUNCHES = """\
plans = session.partition("coins", max_parts_per_unit=1)
colleague = session.delegate(mu=0.05, name="colleague")
scan = session.above_threshold(1000, name="scan", epsilon=0.05, max_positives=2, monotonic=True)
for number, coins in enumerate(list(plans)[:3]):
    plans[coins].frame.count().release(mu=0.02 * (number + 1))
scan.ask(session.frame[session.frame["mdvis"] > 9].count())
"""
NAMES = ("by coins", "colleague", "scan")


@pytest.fixture
def launched(cockpit: Lab) -> Lab:
    cockpit.write(CELL["spare"], LAUNCHES)
    cockpit.run(CELL["spare"])
    return cockpit


def mechanism(lab: Lab, name: str) -> Locator:
    return lab.panel.locator(".dpnb-mechanism", has=lab.page.locator(".dpnb-mechanism-name", has_text=name))


def test_panel_shows_what_is_open_and_what_it_costs_and_a_part_has_gauges_of_its_own(launched: Lab) -> None:
    expect(launched.panel.locator(".dpnb-mechanism")).to_have_count(3)
    told = launched.value("[one['text'] for one in session._mechanisms.entries()]")
    assert isinstance(told, list)
    for name, text in zip(NAMES, told, strict=True):
        expect(mechanism(launched, name).locator(".dpnb-mechanism-state")).to_have_text("open")
        expect(mechanism(launched, name).locator(".dpnb-mechanism-text")).to_have_text(text)
    parts = mechanism(launched, "by coins").locator(".dpnb-part")
    expect(parts).to_have_count(3)
    expect(parts.nth(2)).to_contain_text("mu 0.06")
    for theme in THEMES:
        launched.set_theme(theme)
        assert serious_problems(launched.page, ".dpnb-panel", only_colours=theme != THEMES[-1]) == [], theme
        launched.screenshot(f"mechanisms-{theme.split()[-1].lower()}")
    launched.write(CELL["refused"], "plans[25]")
    launched.run(CELL["refused"])
    gauge = launched.page.locator(".jp-Cell").nth(CELL["refused"]).locator("[role=meter][data-gauge=headroom]")
    before = gauge.get_attribute("aria-valuetext")
    launched.write(CELL["spare"], "plans[25].frame['mdvis'].sum().release(mu=0.1)")
    launched.run(CELL["spare"])
    expect(gauge).not_to_have_attribute("aria-valuetext", before or "")
    expect(gauge).to_have_attribute(
        "aria-valuetext", f"{format_percent_down(launched.value('plans[25].headroom'))} left"
    )
    expect(launched.places[0].locator(".dpnb-paused")).not_to_be_visible()
    launched.write(CELL["spare"], "for one in session.mechanisms.values():\n    one.close()")
    launched.run(CELL["spare"])
    launched.open_folds()
    for place in launched.places:
        expect(place.locator("[data-gauge=mixture]").first).to_be_visible()
    expect(launched.panel.locator(".dpnb-mechanism[data-state=closed]")).to_have_count(3)


def test_a_restart_and_run_all_spends_nothing_and_shows_the_scan_elsewhere(launched: Lab) -> None:
    spent = launched.value("session.spent.mu")
    launched.restart()
    for name in ("load", "session", "spare"):
        launched.run(CELL[name])
    assert launched.value("session.spent.mu") == spent
    assert launched.value("scan.state") == "unavailable"
    expect(mechanism(launched, "scan").locator(".dpnb-mechanism-state")).not_to_have_text("open")
    expect(mechanism(launched, "by coins").locator(".dpnb-mechanism-state")).to_have_text("open")
