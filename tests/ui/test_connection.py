"""A session whose table is elsewhere: the page shows when its figures are out of date, and when they no longer are."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, expect

from fake_connection import CURRENT, LOST
from ui.conftest import CELL
from ui.lab import HOLD, THEMES, Lab
from ui.test_picker import picker, released

CONNECT = """from fake_connection import FakeConnection
connection = session._core.connection = FakeConnection(session._core.changed)
session"""

# As a real connection: from a thread of its own, while the kernel is idle.
LATER = """import threading, pathlib, waiting
def follow():
    for name, is_current in (("drop", False), ("return", True)):
        waiting.wait_until(pathlib.Path(name).exists, name)
        connection.set(is_current=is_current)
threading.Thread(target=follow, daemon=True).start()"""

STATE = f"O{LOST[1:]}. All figures here are the last known."


@pytest.fixture
def remote(cockpit: Lab) -> Lab:
    """The analyst's notebook; files called "drop" and "return" end and restore the connection of its session."""
    cockpit.write(CELL["session"], CONNECT)
    cockpit.run(CELL["session"])
    cockpit.run(CELL["question"])
    cockpit.run(CELL["release"])
    cockpit.write(CELL["spare"], LATER)
    cockpit.run(CELL["spare"])
    return cockpit


def connections(lab: Lab) -> list[Locator]:
    """Where the panel, the gauges and the picker show the state of the connection."""
    gauges = lab.page.locator(".jp-Cell").nth(CELL["session"])
    return [one.locator(".dpnb-connection") for one in (lab.panel, gauges, picker(lab))]


def drop(lab: Lab) -> None:
    lab.let_go("drop")
    for shown in connections(lab):
        expect(shown.get_by_role("status")).to_have_text(STATE)


def test_lost_connection_is_shown_everywhere_readably_and_recovers_by_itself_or_by_a_button(remote: Lab) -> None:
    for shown in connections(remote):
        expect(shown).to_contain_text("Table on the curator's server, https://dp.example.org.")
        expect(shown.get_by_role("status")).to_have_text(f"U{CURRENT[1:]}.")
        expect(shown.get_by_role("button", name="Reconnect")).to_be_hidden()
    drop(remote)
    for shown in connections(remote):
        expect(shown.get_by_role("button", name="Reconnect")).to_be_visible()
    expect(remote.status).to_contain_text("out of date")
    expect(remote.page.locator(".dpnb-badge")).to_have_attribute("aria-label", re.compile(re.escape(LOST)))
    for theme in THEMES:
        remote.set_theme(theme)
        remote.screenshot(f"out of date, {theme}")
        for shown in connections(remote):
            assert shown.evaluate(CONTRAST) >= 4.5, theme
        headroom = remote.panel_gauge("headroom").locator(".dpnb-gauge-text")
        assert headroom.evaluate(CONTRAST) >= 4.5, theme
    remote.let_go("return")
    for shown in connections(remote):
        expect(shown.get_by_role("status")).to_have_text(f"U{CURRENT[1:]}.")
    expect(remote.status).not_to_contain_text("out of date")
    remote.value("setattr(connection, 'comes_back', True)")
    for shown in connections(remote):
        remote.value("connection.set(is_current=False)")
        expect(shown.get_by_role("status")).to_have_text(STATE)
        shown.get_by_role("button", name="Reconnect").focus()
        remote.page.keyboard.press("Enter")
        for other in connections(remote):
            expect(other.get_by_role("status")).to_have_text(f"U{CURRENT[1:]}.")
        expect(shown).to_be_focused()


def test_change_is_shown_while_a_cell_is_running_and_a_release_while_out_of_date_is_confirmed(remote: Lab) -> None:
    remote.write(CELL["refused"], f"{HOLD}hold()")
    with remote.running(CELL["refused"]):
        drop(remote)
        assert remote.is_running()
        remote.let_go()
    choice = picker(remote)
    choice.get_by_role("button", name="Release", exact=True).click()
    expect(choice.locator(".dpnb-picker-buttons .dpnb-picker-question")).to_contain_text("out of date")
    choice.locator(".dpnb-picker-buttons").get_by_role("button", name="Cancel").click()
    expect(choice.locator(".dpnb-picker-answer")).to_be_hidden()
    expect(released(choice)).to_be_visible()


CONTRAST = """node => {
  const luminance = text => {
    const [r, g, b] = text.match(/[\\d.]+/g).slice(0, 3).map(Number).map(part => part / 255)
      .map(part => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  let ground = node;
  while (['rgba(0, 0, 0, 0)', 'transparent'].includes(getComputedStyle(ground).backgroundColor)) {
    ground = ground.parentElement;
  }
  const one = luminance(getComputedStyle(node).color);
  const other = luminance(getComputedStyle(ground).backgroundColor);
  return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
}"""
"""The contrast between the text of a node and what is behind it, as WCAG defines it."""
