"""The Lab of a collaborative hub: the server runs the cells, and several pages share one notebook.

Neither is loaded by the server of the other tests.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from ui.conftest import CELL
from ui.lab import Lab, expect_reading
from ui.server_side import ServerSideContract, badge, cell, left, run_all
from ui.tab import Tab


@pytest.fixture(scope="module")
def lab_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a server of this module's own."""
    return tmp_path_factory.mktemp("shared-lab")


@pytest.fixture(scope="module")
def lab_url(chromium: str, lab_home: Path) -> Iterator[str]:
    """Address of a JupyterLab whose notebooks are shared and run by the server."""
    from ui.server import running_lab

    with running_lab(lab_home / "home", lab_home / "root", collaboration=True, server_side=True) as url:
        yield url


@pytest.fixture(scope="module")
def other_tab(browser: Browser) -> Iterator[Tab]:
    """A second browser's tab."""
    tab = Tab(browser)
    yield tab
    tab.close()


@pytest.fixture
def other(other_tab: Tab, lab_url: str, lab_root: Path, kernels: None) -> Iterator[Lab]:
    """A second browser."""
    lab = Lab(other_tab.take(lab_url), lab_url, lab_root.parent, lab_root.name)
    yield lab
    lab.console.close()
    other_tab.give_back(is_as_it_was=not lab.troubles)
    assert lab.troubles == []


class TestSharedNotebooks(ServerSideContract):
    pass


def test_two_notebooks_on_one_kernel_have_their_own_cells(lab: Lab) -> None:
    lab.open("cockpit.ipynb")
    run_all(lab)
    lab.open_on_the_same_kernel("other.ipynb")
    lab.write(0, "hie['mdvis'].sum().release(mu=0.05)\nhie.count_units().release(mu=0.07)")
    lab.run(0)
    expect(
        lab.page.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Cell").first.locator(".dpnb-badge")
    ).to_be_visible()
    first, second = lab.value("session.log['cell_id'].tolist()")  # type: ignore[misc]
    assert first == second != "the-release-cell", "the request was repeated by the other notebook's cell"


def test_two_browsers_see_each_others_releases_and_cells_and_a_query_that_both_release_is_charged_once(
    lab: Lab, other: Lab
) -> None:
    lab.open("cockpit.ipynb")
    other.open("cockpit.ipynb")
    run_all(lab)
    for page in (lab, other):
        for name in ("question", "count"):
            expect(cell(page, name).locator(".dpnb-picker")).to_be_visible()
        expect(badge(page, "release")).to_be_visible()
        expect(page.panel.locator(".dpnb-release")).to_have_count(1)
    buttons = [
        cell(page, "count").locator(".dpnb-picker").get_by_role("button", name="Release", exact=True)
        for page in (lab, other)
    ]
    # At one moment: a page that knows of the other's release has hidden its button, and a click on it would refine.
    at = 1000 * (time.time() + 3)
    for button in buttons:
        button.evaluate("(node, at) => void setTimeout(() => node.click(), at - Date.now())", at)
    for page in (lab, other):
        expect(cell(page, "count").locator(".dpnb-picker-answer")).to_contain_text("95% noise interval")
    assert lab.value("len(session.log)") == 2

    picker = cell(other, "question").locator(".dpnb-picker")
    picker.get_by_role("button", name="Release", exact=True).click()
    words = None
    for page in (lab, other):
        expect(page.panel.locator(".dpnb-release")).to_have_count(3)
        expect(cell(page, "question").locator(".dpnb-picker-answer")).to_contain_text("95% noise interval")
        expect(badge(page, "question")).to_be_visible()
        words = words or left(lab)
        for gauge in (page.panel_gauge("headroom"), page.cell_gauge("headroom")):
            expect_reading(gauge, words)
    lab.screenshot("collaboration")

    other.write(CELL["spare"], "hie['mdvis'].max().release(mu=0.03)")
    other.run(CELL["spare"])
    for page in (lab, other):
        expect(badge(page, "spare")).to_be_visible()
    cells = ["the-release-cell", "the-count-cell", "the-question-cell", "the-spare-cell"]
    assert lab.value("session.log['cell_id'].tolist()") == cells
