"""An analyst asks the curator from the picker, and the answer appears in the panel without a reload."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from dpnb.service.access.tokens import new_token
from forked import Forked, python
from ui.conftest import CELL
from ui.lab import Lab
from ui.test_picker import picker, released
from ui.test_service import Service

DIVISION = """
mode = "reserved"

[tables.rand-hie.analysts.ana]
ceiling = { share = 0.5 }
cap = { share = 0.01 }
"""


class DividedService(Service):
    """A service whose analyst has a small cap, and the curator's terminal."""

    def __init__(self, folder: Path, sockets: Path) -> None:
        super().__init__(folder, sockets)
        with self.settings.open("a", encoding="utf-8") as settings:
            settings.write(DIVISION)
        self._curator = new_token(folder / "tokens.json", "carl", role="curator")

    def decide(self, command: str, *arguments: str) -> str:
        """Type a command of the curator's."""
        address = f"unix://{self.socket}"
        variables = {"DPNB_SERVICE": address, "DPNB_TOKEN": self._curator}
        words = ("-m", "dpnb", command, address, "rand-hie", *arguments)
        typed = Forked(python, str(self.settings.parent), os.devnull, *words, variables=variables)
        shown = typed.stdout.read()
        assert typed.end() == 0, shown
        return shown


@pytest.fixture
def service(tmp_path: Path) -> Iterator[DividedService]:
    with tempfile.TemporaryDirectory(prefix="dpnb-") as sockets:  # paths of sockets must be short
        service = DividedService(tmp_path, Path(sockets))
        service.start()
        yield service
        service.stop()


def test_an_answer_of_the_curator_appears_in_the_panel_and_the_picker(lab: Lab, service: DividedService) -> None:
    lab.open("cockpit.ipynb")
    lab.run(CELL["load"])
    lab.write(
        CELL["session"],
        f"session = dpnb.connect('unix://{service.socket}', table='rand-hie', token='{service.token}')\n"
        "hie = session.frame\nsession",
    )
    lab.run(CELL["session"])
    lab.write(CELL["spare"], "answer = hie['meddol'].sum().release(share=1)")
    lab.run(CELL["spare"])  # nothing is left of the cap
    lab.run(CELL["count"])
    choice = picker(lab, "count")
    refusal = choice.locator(".dpnb-picker-refusal")
    expect(refusal).to_be_visible()
    why = choice.get_by_label("Reason, which the curator reads")
    expect(why).to_be_visible()
    ask = choice.get_by_role("button", name="Ask the curator")
    expect(ask).to_be_disabled()
    why.fill("<b>for</b> the report on visits")
    lab.screenshot("ask-the-curator")
    why.press("Enter")
    expect(choice.locator(".dpnb-picker-asked")).to_contain_text("was sent to the curator")
    requests = lab.panel.get_by_role("region", name="Requests for budget")
    expect(requests.get_by_text("pending", exact=True)).to_be_visible()
    expect(requests).to_contain_text("<b>for</b> the report on visits")
    lab.screenshot("request-pending")
    shown = service.decide("requests")
    assert "1 request to decide" in shown
    (number,) = [line.split()[1] for line in shown.splitlines() if line.startswith("request")]
    service.decide("approve", number, "--yes", "--until", "30d", "--why", "start with the count")
    expect(requests.get_by_text("approved", exact=True)).to_be_visible()
    expect(requests).to_contain_text("start with the count")
    expect(choice.get_by_role("slider")).to_be_visible()  # what was refused can be chosen now
    expect(refusal).to_be_hidden()
    lab.screenshot("request-approved")
    expect(released(choice)).to_contain_text("95% noise interval")
