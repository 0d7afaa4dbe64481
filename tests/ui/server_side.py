"""What holds in every Lab whose server runs the cells; the tests of such a Lab inherit it."""

from __future__ import annotations

import math

from playwright.sync_api import Locator, expect

from ui.conftest import CELL
from ui.lab import Lab, expect_reading

RUNS_ON_SERVER = """() => new Promise(resolve => {
  const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
  const listen = (_, message) => {
    if (message.header.msg_type === 'execute_input') {
      kernel.iopubMessage.disconnect(listen);
      resolve(message.parent_header.session !== kernel.clientId);
    }
  };
  kernel.iopubMessage.connect(listen);
  void window.jupyterapp.commands.execute('notebook:run-cell');
})"""


def left(lab: Lab) -> str:
    headroom = float(str(lab.value("session.headroom")))
    return f"{math.floor(1000 * headroom) / 10:.1f}% left"


def cell(lab: Lab, name: str) -> Locator:
    return lab.page.locator(".jp-Cell").nth(CELL[name])


def badge(lab: Lab, name: str) -> Locator:
    return cell(lab, name).locator(".dpnb-badge")


def run_all(lab: Lab) -> None:
    """Run all cells at once, as a queue; none of them fails."""
    lab.write(CELL["refused"], "")
    lab.run_all()


class ServerSideContract:
    """Subclass it in a module whose `lab_url` is that of a server that runs the cells."""

    def test_every_charge_has_its_cell_and_is_not_repeated_after_a_restart(self, lab: Lab) -> None:
        lab.open("cockpit.ipynb")
        assert lab.page.evaluate(RUNS_ON_SERVER) is True
        run_all(lab)
        for name in ("question", "count"):
            expect(cell(lab, name).locator(".dpnb-picker")).to_be_visible()
        expect_reading(lab.cell_gauge("headroom"), left(lab))
        expect(badge(lab, "release")).to_be_visible()
        picker = cell(lab, "count").locator(".dpnb-picker")
        picker.get_by_role("button", name="Release", exact=True).click()
        expect(picker.locator(".dpnb-picker-answer")).to_contain_text("95% noise interval")
        expect(badge(lab, "count")).to_be_visible()
        # The announcement of a cell and the server's request to run it take separate ways to the kernel: the charge has
        # its cell afterwards, whichever comes first.
        lab.write(CELL["spare"], "print(session.frame['mdvis'].max().release(mu=0.01).cost)")
        lab.run(CELL["spare"])
        expect(cell(lab, "spare").locator(".jp-OutputArea-output")).to_contain_text("GDP(mu=0.01)")
        expect(badge(lab, "spare")).to_be_visible()
        cells = ["the-release-cell", "the-count-cell", "the-spare-cell"]
        assert lab.value("session.log['cell_id'].tolist()") == cells
        spent = lab.value("session.spent.mu")
        lab.restart()
        run_all(lab)
        assert lab.value("session.spent.mu") == spent
        expect(cell(lab, "question").locator(".dpnb-picker")).to_be_visible()
        expect(badge(lab, "release")).to_be_visible()
