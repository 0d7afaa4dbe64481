"""Which cell a request belongs to where the server runs the cells, and the request does not say so."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pandas as pd
import pytest

import dpnb
from dpnb._browser.messages import CellEnded, CellScheduled, CellStarted, RequestSnapshot
from dpnb._core import open_sessions
from dpnb.notebook import cell_context
from dpnb.notebook.cell_context import MAX_RUNS, CellRuns


class FakeKernel:
    """A kernel that answers requests without the ids of cells."""

    def __init__(self) -> None:
        self.message: dict = {}

    def get_parent(self, channel: str) -> dict:
        return self.message

    def run(self, request_id: str, code: str) -> None:
        header = {"msg_id": request_id, "msg_type": "execute_request"}
        self.message = {"header": header, "metadata": {}, "content": {"code": code}}


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeKernel]:
    kernel = FakeKernel()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=kernel)))
    monkeypatch.setattr(cell_context, "_runs", CellRuns())
    monkeypatch.setattr(cell_context, "_front_ends", set())
    monkeypatch.delenv(cell_context.SERVER_SESSION, raising=False)
    open_sessions.set_cell_provider(cell_context.current_cell, cell_context.when_identified)
    yield kernel
    open_sessions.set_cell_provider(None)


@pytest.fixture
def session() -> dpnb.Session:
    schema = {"x": dpnb.Bounded(0, 5)}
    return dpnb.Session(
        pd.DataFrame({"x": [1.0, 2.0]}), name="s", ledger=":memory:", budget=dpnb.Budget.gdp(1), schema=schema
    )


def test_announced_cell_is_known_when_its_request_comes(kernel: FakeKernel) -> None:
    cell_context.note_message(CellScheduled("a", "x = 1"))
    kernel.run("request-1", "x = 1")
    assert cell_context.current_cell() == "a"
    assert cell_context.current_cell() == "a", "of one request, however often it is read"


def test_cells_of_a_queue_with_the_same_code_are_taken_in_order(kernel: FakeKernel) -> None:
    for cell in ("a", "b", "c"):
        cell_context.note_message(CellScheduled(cell, "x += 1" if cell != "b" else "y"))
    seen = []
    for request, code in (("1", "x += 1"), ("2", "y"), ("3", "x += 1")):
        kernel.run(request, code)
        seen.append(cell_context.current_cell())
        cell_context.note_message(CellStarted(str(seen[-1]), request))
    assert seen == ["a", "b", "c"]


def test_request_of_another_program_has_no_cell(kernel: FakeKernel) -> None:
    cell_context.note_message(CellScheduled("a", "x = 1"))
    kernel.run("request-1", "import something_else")
    assert cell_context.current_cell() is None


def test_cell_that_was_announced_but_not_run_is_not_that_of_a_later_request(kernel: FakeKernel) -> None:
    cell_context.note_message(CellScheduled("cancelled", "x = 1"))
    cell_context.note_message(CellEnded("cancelled"))
    kernel.run("request-1", "x = 1")
    assert cell_context.current_cell() is None


def test_message_that_arrives_after_the_request_moves_its_charges_to_the_cell(
    kernel: FakeKernel, session: dpnb.Session
) -> None:
    kernel.run("request-1", "release")
    session.frame.count().release(mu=0.1)
    assert session.log["cell_id"].tolist() == [None]
    kernel.run("request-2", "something else")
    assert cell_context.note_message(CellStarted("a", "request-1"))
    assert session.log["cell_id"].tolist() == ["a"]
    assert list(session._core.log.cells()) == ["a"]


def test_message_corrects_a_wrong_guess(kernel: FakeKernel, session: dpnb.Session) -> None:
    cell_context.note_message(CellScheduled("guessed", "release"))
    kernel.run("request-1", "release")
    session.frame.count().release(mu=0.1)
    cell_context.note_message(CellStarted("right", "request-1"))
    session.frame["x"].sum().release(mu=0.1)
    assert set(session.log["cell_id"]) == {"right"}


def test_requests_of_a_widget_belong_to_the_run_that_displayed_it(kernel: FakeKernel, session: dpnb.Session) -> None:
    kernel.run("request-1", "query")
    displayed = cell_context.current_run()
    cell_context.note_message(CellStarted("a", "request-1"))
    kernel.run("request-2", "something else")
    with cell_context.in_run(displayed):
        session.frame.count().release(mu=0.1)
    assert session.log["cell_id"].tolist() == ["a"]


@pytest.mark.parametrize("cell", ["", "../a", "vscode-notebook-cell:/c", "x" * 65])
def test_what_is_not_the_id_of_a_cell_is_ignored(kernel: FakeKernel, cell: str) -> None:
    cell_context.note_message(CellScheduled(cell, "x"))
    kernel.run("request-1", "x")
    cell_context.note_message(CellStarted(cell, "request-1"))
    assert cell_context.current_cell() is None


def test_only_the_latest_runs_are_remembered() -> None:
    runs = CellRuns()
    for number in range(3 * MAX_RUNS):
        runs.of(str(number), "x")
        runs.schedule(f"cell-{number}", "never run")
    assert len(runs._runs) == len(runs._scheduled) == MAX_RUNS


def test_live_widgets_are_shown_once_the_extension_has_sent_a_message(kernel: FakeKernel) -> None:
    kernel.run("request-1", "session")
    assert not cell_context.has_live_widgets()
    cell_context.note_message(RequestSnapshot())
    assert cell_context.has_live_widgets()
    assert not cell_context.is_front_end_unknown()


def test_kernel_of_a_servers_session_shows_our_widgets_only_until_a_front_end_is_known(
    kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(cell_context.SERVER_SESSION, "a.ipynb")
    kernel.run("request-1", "session")
    assert cell_context.has_live_widgets()
    assert cell_context.is_front_end_unknown()
