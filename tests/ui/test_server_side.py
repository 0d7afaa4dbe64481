"""The Lab whose server runs the cells, with notebooks that are not shared.

The page then shows the outputs of a cell only if its document has not changed since it was scheduled.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from ui.conftest import CELL
from ui.lab import Lab, expect_reading
from ui.test_collaboration import RUNS_ON_SERVER, badge, cell, left, run_all


@pytest.fixture(scope="module")
def lab_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders of a server of this module's own."""
    folder = tmp_path_factory.mktemp("server-side-lab")
    (folder / "home").mkdir()
    (folder / "root").mkdir()
    return folder


@pytest.fixture(scope="module")
def lab_url(chromium: str, lab_home: Path) -> Iterator[str]:
    """Address of a JupyterLab whose server runs the cells."""
    from ui.server import running_lab

    with running_lab(lab_home / "home", lab_home / "root", server_side=True) as url:
        yield url


def test_notebook_has_gauges_and_pickers_and_every_charge_has_its_cell(lab: Lab) -> None:
    lab.open("cockpit.ipynb")
    assert lab.page.evaluate(RUNS_ON_SERVER) is True
    run_all(lab)
    for name in ("question", "count"):
        expect(cell(lab, name).locator(".dpnb-picker")).to_be_visible()
    expect_reading(lab.cell_gauge("headroom"), left(lab))
    expect(badge(lab, "release")).to_be_visible()
    picker = cell(lab, "count").locator(".dpnb-picker")
    picker.get_by_role("button", name="Release", exact=True).click()
    expect(picker.locator(".dpnb-picker-answer")).to_contain_text("95% interval")
    expect(badge(lab, "count")).to_be_visible()
    lab.write(CELL["spare"], "print([session.frame['mdvis'].max().release(mu=0.01).cost, session.log()['cell_id'][3]])")
    lab.run(CELL["spare"])
    expect(cell(lab, "spare").locator(".jp-OutputArea-output")).to_contain_text("the-spare-cell")
    expect(badge(lab, "spare")).to_be_visible()
    assert lab.value("session.log()['cell_id'].tolist()") == ["the-release-cell", "the-count-cell", "the-spare-cell"]


def test_kernel_restarts_and_all_is_run_again_at_no_cost(lab: Lab) -> None:
    lab.open("cockpit.ipynb")
    run_all(lab)
    spent = lab.value("session.spent.mu")
    lab.restart()
    run_all(lab)
    assert lab.value("session.spent.mu") == spent
    expect(cell(lab, "question").locator(".dpnb-picker")).to_be_visible()
    expect(badge(lab, "release")).to_be_visible()
