"""Widgets of ours that are shown when their kernel is gone, or not heard of yet.

JupyterLab's widget manager looks for a widget for two seconds and then writes "widget model not found" into the page
and the console.  In each of these notebooks there is also a slider of ipywidgets, to which just that happens: it shows
that the two seconds are over, and that what happened to it would have happened to ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Locator, expect

from ui.conftest import CELL
from ui.lab import Lab
from ui.server import TOKEN
from waiting import LIMIT_MS, wait_until

if TYPE_CHECKING:
    from playwright.sync_api import WebSocketRoute

FOREIGN = "import ipywidgets\nipywidgets.IntSlider()"
NOT_FOUND = "Error displaying widget: model not found"

# A busy machine: the pauses between two looks of the widget manager end when the test says so.
LATE = """
const { setTimeout } = window;
const late = [];
window.dpnbTestIsLate = () => late.length > 0 && late.every(({ since }) => Date.now() - since > 2000);
window.dpnbTestLookNow = () => late.forEach(({ look }) => look());
window.setTimeout = (callback, pause, ...rest) => {
  if (pause === 100 && /get_model/.test(new Error().stack)) {
    late.push({ look: callback, since: Date.now() });
    return 0;
  }
  return setTimeout(callback, pause, ...rest);
};
"""

# A promise is no condition to wait for: it is true before it is fulfilled.
FIND_MANAGER = """async () => {
  const { rendermime } = window.jupyterapp.shell.currentWidget.content;
  const renderer = rendermime.createRenderer('application/vnd.jupyter.widget-view+json');
  window.dpnbTestManager = await renderer._manager.promise;
}"""

ASK_KERNEL = """() => {
  const { kernel } = window.jupyterapp.shell.currentWidget.sessionContext.session;
  kernel.requestKernelInfo().catch(() => undefined);
}"""


@pytest.fixture
def saved(cockpit: Lab) -> Lab:
    """A saved notebook with gauges, a picker, and a widget that is not ours."""
    cockpit.run(CELL["count"])
    cockpit.write(CELL["spare"], FOREIGN)
    cockpit.run(CELL["spare"])
    expect(outputs(cockpit, "spare").locator(".widget-slider")).to_be_visible()
    cockpit.save()
    return cockpit


def outputs(lab: Lab, cell: str) -> Locator:
    return lab.page.locator(".jp-Cell").nth(CELL[cell]).locator(".jp-OutputArea")


def expect_only_the_other_is_lost(lab: Lab) -> None:
    expect(outputs(lab, "spare")).to_contain_text(NOT_FOUND, timeout=LIMIT_MS)
    complaints = [trouble for trouble in lab.troubles if "widget model not found" in trouble]
    assert len(complaints) == 1, "one of the slider, and none of ours"
    lab.troubles.remove(complaints[0])


def test_picker_is_inactive_when_somebody_else_restarts_the_kernel(cockpit: Lab, lab_url: str) -> None:
    cockpit.run(CELL["count"])
    picker = outputs(cockpit, "count").locator(".dpnb-picker")
    release = picker.get_by_role("button", name="Release")
    expect(release).to_be_enabled()
    kernel = cockpit.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.id")
    address = f"{lab_url}/api/kernels/{kernel}/restart"
    assert cockpit.page.request.post(address, headers={"Authorization": f"token {TOKEN}"}).ok
    # The page may be connected to the new process too late for its first messages; whatever it asks brings others.
    status = picker.locator(".dpnb-picker-status")
    wait_until(lambda: cockpit.page.evaluate(ASK_KERNEL) or status.inner_text(), "a message of the new process")
    expect(status).to_contain_text("Run this cell again")
    expect(release).to_be_disabled()
    for cell in ("load", "session", "count"):
        cockpit.run(CELL[cell])
    expect(release).to_be_enabled()


def test_widgets_of_a_kernel_that_is_gone_show_their_still_faces_and_those_restored_in_the_last_moment_are_live(
    saved: Lab,
) -> None:
    saved.shut_down()
    saved.reload()
    expect_only_the_other_is_lost(saved)
    expect(outputs(saved, "session")).to_contain_text("100.0% left")
    expect(outputs(saved, "session").locator(".dpnb-session")).to_have_count(0)
    expect(outputs(saved, "count")).to_contain_text("not released")
    expect(outputs(saved, "count").locator(".dpnb-picker")).to_have_count(0)
    for cell in ("load", "session", "count"):
        saved.run(CELL[cell])
    expect(outputs(saved, "count").locator(".dpnb-picker").get_by_role("slider")).to_be_visible()
    expect(outputs(saved, "session").locator(".dpnb-session")).to_be_visible()
    saved.run(CELL["spare"])
    expect(outputs(saved, "spare").locator(".widget-slider")).to_be_visible()
    saved.save()

    kept: list[tuple[WebSocketRoute, str | bytes]] = []
    saved.has_changed_the_tab = True
    saved.page.route_web_socket("**/channels*", lambda page: keep_states(page, kept))
    saved.page.add_init_script(LATE)
    saved.reload()
    saved.wait_for("window.dpnbTestIsLate()")
    for page, message in kept:
        page.send(message)
    saved.page.evaluate(FIND_MANAGER)
    saved.wait_for("window.dpnbTestManager.restoredStatus")
    saved.page.evaluate("window.dpnbTestLookNow()")
    expect_only_the_other_is_lost(saved)
    expect(outputs(saved, "session").locator(".dpnb-session")).to_be_visible()
    expect(outputs(saved, "count").locator(".dpnb-picker").get_by_role("slider")).to_be_visible()


def keep_states(page: WebSocketRoute, kept: list[tuple[WebSocketRoute, str | bytes]]) -> None:
    """Pass on whatever the kernel says but the states of all widgets, which a reloaded page asks for."""
    server = page.connect_to_server()

    def on_message(message: str | bytes) -> None:
        text = message if isinstance(message, str) else message.decode("utf-8", "replace")
        if '"update_states"' in text:
            kept.append((page, message))
        else:
            page.send(message)

    server.on_message(on_message)
