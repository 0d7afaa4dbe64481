"""Which cell is asking, and whether anybody can see a widget: from the message that the kernel is answering."""

from __future__ import annotations

import sys
import threading
from types import SimpleNamespace

import pytest

from dpnb.notebook import cell_context
from dpnb.notebook.cell_context import CellRun


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> dict:
    """The metadata of the message that a kernel is answering."""
    metadata: dict = {}
    kernel = SimpleNamespace(get_parent=lambda channel: {"metadata": metadata})
    shell = SimpleNamespace(kernel=kernel)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setattr(cell_context, "_front_ends", set())  # other tests of this process have sent messages
    return metadata


def test_browser_tells_its_cell_and_is_shown_widgets(running: dict) -> None:
    running["cellId"] = "3f2a-mean_1"
    assert cell_context.current_cell() == "3f2a-mean_1"
    assert cell_context.has_live_widgets()


def test_program_that_executes_a_notebook_tells_none_and_is_shown_none(running: dict) -> None:
    assert cell_context.current_cell() is None
    assert not cell_context.has_live_widgets()


@pytest.mark.parametrize("sent", ["vscode-notebook-cell:/c%3A/mine/a.ipynb#W0", "\ud800", "", 7, "x" * 65])
def test_what_is_no_id_of_a_cell_is_not_remembered_as_one(running: dict, sent: object) -> None:
    running["cellId"] = sent
    assert cell_context.current_cell() is None


def test_editor_that_sends_an_address_is_shown_widgets(running: dict) -> None:
    running["cellId"] = "vscode-notebook-cell:/c%3A/mine/a.ipynb#W0"
    assert cell_context.has_live_widgets()


def test_widget_asks_for_its_own_cell(running: dict) -> None:
    running["cellId"] = "running"
    with cell_context.in_run(CellRun("of-the-widget")):
        assert cell_context.current_cell() == "of-the-widget"
    assert cell_context.current_cell() == "running"


def test_thread_asks_for_no_cell(running: dict) -> None:
    running["cellId"] = "running"
    asked: list[str | None] = []
    thread = threading.Thread(target=lambda: asked.append(cell_context.current_cell()))
    thread.start()
    thread.join()
    assert asked == [None]


def test_plain_python_has_no_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "IPython", None)
    assert cell_context.current_cell() is None
    assert not cell_context.has_live_widgets()
