"""A notebook on a real service: the page follows it while it stops and starts again."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import statsmodels
from playwright.sync_api import expect

from dpnb.service.access.tokens import new_token
from forked import Forked, python
from ui.conftest import CELL, EXAMPLES
from ui.lab import Lab, expect_reading
from ui.test_connection import connections
from ui.test_picker import picker, released
from ui.test_progress import INTERRUPT
from waiting import wait_until

DATA = Path(statsmodels.__file__).parent / "datasets" / "randhie" / "src" / "randhie.csv"


class Service:
    """A service in a process of its own, which can be stopped and started again."""

    def __init__(self, folder: Path, sockets: Path) -> None:
        self.socket = sockets / "dpnb.sock"
        self.settings = folder / "curator.toml"
        shutil.copy(EXAMPLES / "rand-hie.toml", folder)
        self.settings.write_text(
            f'socket = "{self.socket}"\ntokens = "tokens.json"\nlog = "service.log"\n\n'
            f'[tables.rand-hie]\ndeclaration = "rand-hie.toml"\ndata = "{DATA}"\n',
            encoding="utf-8",
        )
        self._served: Forked | None = None
        self.token = new_token(folder / "tokens.json", "ana")

    def start(self) -> None:
        """Start it, and wait until it listens."""
        self._served = Forked(python, str(self.settings.parent), os.devnull, "-m", "dpnb", "serve")
        wait_until(self.socket.exists, "the socket of the service")

    def stop(self) -> None:
        """Stop it as a curator does."""
        if self._served is not None:
            self._served.terminate()
            self._served.end()
            self._served = None


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with tempfile.TemporaryDirectory(prefix="dpnb-") as sockets:  # paths of sockets must be short
        service = Service(tmp_path, Path(sockets))
        service.start()
        yield service
        service.stop()


@pytest.fixture
def analyst(lab: Lab, service: Service) -> Lab:
    """The analyst's notebook, connected to the service."""
    lab.open("cockpit.ipynb")
    lab.run(CELL["load"])
    lab.write(
        CELL["session"],
        f"session = dpnb.connect('unix://{service.socket}', table='rand-hie', token='{service.token}')\n"
        "hie = session.frame\nsession",
    )
    lab.run(CELL["session"])
    lab.run(CELL["question"])
    return lab


def test_notebook_follows_a_service_that_stops_and_starts(analyst: Lab, service: Service) -> None:
    shown = connections(analyst)
    for one in shown:
        expect(one).to_contain_text("in the curator's process on this machine")
        expect(one.get_by_role("status")).to_have_text("Up to date.")
    expect_reading(analyst.panel_gauge("headroom"), "100.0% left")
    choice = picker(analyst)
    choice.get_by_role("slider").press("ArrowRight")
    expect(released(choice)).to_contain_text("95% noise interval")
    left = analyst.panel_gauge("headroom").get_attribute("aria-valuetext")
    assert left != "100.0% left"
    service.stop()
    for one in shown[:2]:
        expect(one.get_by_role("status")).to_contain_text("Out of date since")
    analyst.screenshot("service-stopped")
    expect_reading(analyst.panel_gauge("headroom"), left or "")
    expect(analyst.status).to_contain_text("out of date")
    service.start()
    for one in shown[:2]:
        expect(one.get_by_role("status")).to_have_text("Up to date.")
    analyst.run(CELL["release"])
    expect(analyst.panel.locator(".dpnb-release")).to_have_count(2)
    expect(analyst.page.locator(".dpnb-badge")).to_have_count(2)


def test_release_that_waits_for_the_service_can_be_interrupted_and_a_closed_session_explains_itself(
    analyst: Lab, service: Service
) -> None:
    service.stop()
    cell = analyst.page.locator(".jp-Cell").nth(CELL["release"])
    with analyst.running(CELL["release"]):
        expect(cell).to_contain_text("waiting for the service")
        analyst.screenshot("service-waiting")
        analyst.page.evaluate(INTERRUPT)
    expect(cell).to_contain_text("KeyboardInterrupt")
    service.start()
    analyst.run(CELL["release"])
    expect(cell.locator(".jp-OutputArea")).to_contain_text("sum of mdvis")
    expect(analyst.panel.locator(".dpnb-release")).to_have_count(1)
    analyst.write(CELL["spare"], "session.close()")
    analyst.run(CELL["spare"])
    for one in connections(analyst):
        expect(one.get_by_role("status")).to_contain_text("Closed")
    analyst.write(CELL["release"], "hie['mdvis'].sum().release(mu=0.1)")
    analyst.run(CELL["release"])
    said = cell.locator(".jp-OutputArea")
    expect(said).to_contain_text("the session was closed; nothing was charged; connect again")
    expect(said).not_to_contain_text("remote/calls.py")
    analyst.screenshot("service-closed")
