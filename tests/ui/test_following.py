"""The panel follows what another process charges to the same ledger, while this kernel is idle and while it is busy."""

from __future__ import annotations

from playwright.sync_api import expect

from ui.conftest import CELL, COCKPIT
from ui.lab import HOLD, Lab, expect_reading

ELSEWHERE = "import pandas as pd, dpnb\nfrom importlib import resources\n" + COCKPIT["session"]
"""Another process's session on the same ledger."""


def test_charge_of_a_script_is_shown_while_the_kernel_is_idle_or_busy_and_by_a_page_that_was_hidden(
    cockpit: Lab,
) -> None:
    expect_reading(cockpit.panel_gauge("headroom"), "100.0% left")
    cockpit.run_elsewhere(ELSEWHERE, "hie.count_units().release(mu=0.2)")
    expect(cockpit.panel.locator(".dpnb-release")).to_have_count(1)
    for gauge in (cockpit.panel_gauge("headroom"), cockpit.cell_gauge("headroom")):
        expect_reading(gauge, "80.0% left")
    expect(cockpit.status).to_have_text("dpnb 80.0% left")
    cockpit.write(CELL["spare"], f"{HOLD}hold()")
    with cockpit.running(CELL["spare"]):
        cockpit.run_elsewhere(ELSEWHERE, "hie.count_units().release(mu=0.25)")
        expect_reading(cockpit.panel_gauge("headroom"), "68.9% left")
        assert cockpit.is_running()
        cockpit.let_go()
    cockpit.page.evaluate(
        """() => {
          Object.defineProperty(document, 'visibilityState', { value: 'hidden', configurable: true });
          document.dispatchEvent(new Event('visibilitychange'));
        }"""
    )
    cockpit.run_elsewhere(ELSEWHERE, "hie.count_units().release(mu=0.3)")
    cockpit.page.evaluate(
        """() => {
          delete document.visibilityState;
          document.dispatchEvent(new Event('visibilitychange'));
        }"""
    )
    expect_reading(cockpit.panel_gauge("headroom"), "55.2% left")
