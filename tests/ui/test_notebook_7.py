"""Notebook 7 shows what the Lab shows, but for the status bar, which it has not."""

from __future__ import annotations

import math

from playwright.sync_api import expect

from ui.conftest import CELL
from ui.lab import Lab, expect_reading


def test_gauges_picker_badges_and_panel_are_there_too(lab: Lab) -> None:
    lab.open_in_notebook_7("cockpit.ipynb")
    lab.run(CELL["load"])
    lab.run(CELL["session"])
    expect_reading(lab.cell_gauge("headroom"), "100.0% left")
    lab.run(CELL["count"])
    picker = lab.page.locator(".dpnb-picker")
    picker.get_by_role("button", name="Release").click()
    expect(picker.locator(".dpnb-picker-answer")).to_contain_text("95% noise interval")
    words = f"{math.floor(1000 * float(str(lab.value('session.headroom')))) / 10:.1f}% left"
    expect_reading(lab.cell_gauge("headroom"), words)
    expect(lab.page.locator(".dpnb-badge")).to_have_count(1)
    lab.page.evaluate("() => void window.jupyterapp.commands.execute('dpnb:open-panel')")
    expect_reading(lab.panel_gauge("headroom"), words)
    expect(lab.panel.locator(".dpnb-release")).to_have_count(1)
    lab.screenshot("notebook-7")
