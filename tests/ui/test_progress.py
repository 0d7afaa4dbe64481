"""Work that lasts says below its cell what it is doing, and can be interrupted there."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from ui.conftest import CELL
from ui.lab import HOLD, START, Lab

UNBOUNDED = """
import time
from dpnb._backends.memory import memory_backend as memory
def without_end(*arguments):
    while True:
        execute(*arguments)
        time.sleep(0.05)
execute, memory.execute = memory.execute, without_end"""
ASK = "count = session.frame.count().release(mu=0.05)\ncount"
OTHER = "count = hie[hie['mdvis'] > 2].count().release(mu=0.05)\ncount"
DOING = re.compile(r"adding up rows, [1-9]\d* s")
INTERRUPT = "void window.jupyterapp.commands.execute('notebook:interrupt-kernel')"


HELD = f"""{HOLD}
from dpnb._backends.memory import memory_backend as memory
def held(*arguments):
    hold()
    return execute(*arguments)
execute, memory.execute = memory.execute, held"""


def test_work_that_lasts_says_so_in_its_cell_and_in_its_picker_leaves_no_gap_and_is_free_after_an_interrupt(
    cockpit: Lab,
) -> None:
    cockpit.write(CELL["spare"], UNBOUNDED)
    cockpit.run(CELL["spare"])
    cockpit.write(CELL["spare"], ASK)
    cell = cockpit.page.locator(".jp-Cell").nth(CELL["spare"])
    cockpit.page.evaluate(START, ["notebook:run-cell", CELL["spare"]])
    expect(cell).to_contain_text(DOING)
    cockpit.screenshot("progress")
    cockpit.page.evaluate(INTERRUPT)
    expect(cell).to_contain_text("KeyboardInterrupt: after the query was charged; the charge stands")
    expect(cell).not_to_contain_text("adding up rows, ")
    cockpit.wait_until_idle()
    expect(cockpit.panel).to_contain_text("mu 0.05")
    cockpit.screenshot("progress-interrupted")
    spent = cockpit.value("session.spent.mu")
    cockpit.write(CELL["spare"], f"memory.execute = execute\n{ASK}")
    cockpit.run(CELL["spare"])
    expect(cell).to_contain_text("95% noise interval")
    assert cockpit.value("session.spent.mu") == spent
    assert cockpit.value("len(session.log)") == 1
    cockpit.screenshot("progress-answered")

    cockpit.write(CELL["spare"], HELD)
    cockpit.run(CELL["spare"])
    cockpit.write(CELL["spare"], OTHER)
    with cockpit.running(CELL["spare"]):
        expect(cell).to_contain_text(DOING)
        cockpit.let_go()
    outputs = cell.locator(".jp-OutputArea-child")
    expect(outputs).to_have_count(2)
    expect(outputs.last).to_contain_text("95% noise interval")
    box = outputs.first.bounding_box()
    cockpit.screenshot("progress-gone")
    assert box is None or box["height"] < 12

    cockpit.hold_on()
    cockpit.run(CELL["question"])
    picker = cockpit.page.locator(".jp-Cell").nth(CELL["question"]).locator(".dpnb-picker")
    picker.get_by_role("button", name="Release").click()
    expect(picker.locator(".dpnb-picker-progress")).to_have_text(DOING)
    cockpit.screenshot("progress-picker")
    cockpit.let_go()
    expect(picker.locator(".dpnb-picker-answer")).to_contain_text("95% noise interval")
    expect(picker.locator(".dpnb-picker-progress")).to_have_text("")
