"""How far a fit is: one line below the cell, brought up to date in its place."""

from __future__ import annotations

import os
import re
import signal
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from dpnb._core.execution import executor
from dpnb.notebook import cell_output
from dpnb.progress import Stage
from kernel_pool.forked_kernels import forking_here
from waiting import LIMIT


class Shown:
    """Counts what is displayed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.texts: list[str] = []
        self.displayed = 0
        monkeypatch.setattr("IPython.display.display", self._display)

    def _display(self, shown: dict[str, str], **_: Any) -> Shown:
        self.displayed += 1
        return self.update(shown)

    def update(self, shown: dict[str, str], **_: Any) -> Shown:
        self.texts.append(shown["text/plain"])
        return self


def test_a_line_is_shown_once_and_then_updated_in_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Shown(monkeypatch)
    line = cell_output.begin_line()
    for number in range(10):
        line(f"step {number}", False)
    line("the end", True)
    assert shown.displayed == 1
    assert shown.texts == [*(f"step {number}" for number in range(10)), "the end"]


def test_of_a_line_that_was_never_shown_nothing_is_displayed(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Shown(monkeypatch)
    cell_output.begin_line()("", True)
    assert shown.displayed == 0


def test_a_widget_that_asks_shows_its_own_line(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Shown(monkeypatch)
    told: list[tuple[str, bool]] = []
    with cell_output.shown_by(lambda: lambda text, done: told.append((text, done))):
        cell_output.begin_line()("adding up rows, 1 s", False)
    assert told == [("adding up rows, 1 s", False)]
    assert shown.displayed == 0


FIT = """
import numpy as np, pandas as pd, dpnb
table = pd.DataFrame({'x': np.linspace(0, 5, 50), 'y': np.linspace(0, 5, 50)})
schema = {'x': dpnb.Bounded(0, 5), 'y': dpnb.Bounded(0, 5)}
session = dpnb.Session(
    table, name='t', budget=dpnb.Budget.gdp(1), schema=schema, ledger=':memory:', public_size=50
)
fit = session.frame.fit('y', on='x', family='linear', mu='0.1', steps=4, name='line')
"""


@pytest.mark.notebook
def test_in_a_notebook_the_cell_says_how_far_it_is_and_elsewhere_nothing_is_shown() -> None:
    sources = [FIT + "fit.run();", "%load_ext dpnb\nfit.begin(); fit.run();", "fit"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    with forking_here():
        NotebookClient(notebook, kernel_name="python3").execute()
    silent, told, face = notebook.cells
    assert silent.outputs == []
    (output,) = [one for one in told.outputs if one.output_type != "stream"]  # not for what the promise holds
    assert output.data["text/plain"].startswith("line: step 4 of 4, 4.0% of the budget (mu 0.2)")
    assert "all steps were taken" in output.data["text/html"]
    assert "step 4 of 4" in face.outputs[0].data["text/html"]


SLOW = """
import threading
from dpnb.notebook import cell_output as progress
from dpnb._backends.memory import memory_backend as memory

seen = threading.Event()
tell = progress.ProgressLine.__call__

def telling(line, text, done):
    tell(line, text, done)
    if text.startswith('adding up rows'):
        seen.set()

def slowly(*arguments, **options):
    assert seen.wait(LIMIT), 'nothing is said of a question that lasts'
    return execute(*arguments, **options)

progress.ProgressLine.__call__ = telling
execute, memory.execute = memory.execute, slowly
""".replace("LIMIT", str(LIMIT))


def executed(*sources: str) -> tuple[nbformat.NotebookNode, list[tuple[str, str, str]]]:
    """A notebook after it was run, and each message that displayed something: of which cell, what kind, which text."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    displayed: list[tuple[str, str, str]] = []

    class Client(NotebookClient):
        def process_message(self, msg: Any, cell: Any, cell_index: int) -> Any:
            if msg["msg_type"] in ("display_data", "update_display_data"):
                displayed.append((cell.source, msg["msg_type"], msg["content"]["data"]["text/plain"]))
            return super().process_message(msg, cell, cell_index)

    with forking_here():
        Client(notebook, kernel_name="python3").execute()
    return notebook, displayed


@pytest.mark.notebook
def test_a_slow_question_tells_its_stage_in_its_own_cell_and_leaves_nothing_of_it() -> None:
    slow = "answer = session.frame.count().release(mu='0.1')"
    notebook, displayed = executed("%load_ext dpnb", FIT + SLOW, slow, "session.frame.count().release(mu='0.1');")
    assert {cell for cell, _, _ in displayed} == {slow}
    kinds = [kind for _, kind, _ in displayed]
    assert kinds == ["display_data"] + ["update_display_data"] * (len(kinds) - 1)
    *told, last = [text for _, _, text in displayed]
    assert any(text.startswith("adding up rows, ") for text in told)
    words = "|".join(stage.value for stage in Stage)
    assert all(re.fullmatch(rf"({words}), \d+ s", text) for text in told), told
    assert last == ""
    (output,) = notebook.cells[2].outputs
    assert output.data == {"text/plain": "", "text/html": ""}
    assert notebook.cells[3].outputs == []


ENDLESS = """
from dpnb._backends.memory import memory_backend as memory

def without_end(*arguments, **options):
    while True:
        execute(*arguments, **options)

execute, memory.execute = memory.execute, without_end
"""


@pytest.mark.notebook
def test_a_question_interrupted_in_a_kernel_says_what_stands_and_is_free_when_asked_again() -> None:
    ask = "answer = session.frame.count().release(mu='0.1')"
    sources = [FIT + ENDLESS + "\n%load_ext dpnb", ask, f"memory.execute = execute\n{ask}\n{STANDING}"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    interrupted = []

    class Client(NotebookClient):
        def process_message(self, msg: Any, cell: Any, cell_index: int) -> Any:
            if msg["msg_type"] == "display_data" and not interrupted:
                interrupted.append(cell.source)
                os.kill(self.km.provisioner.pid, signal.SIGINT)
            return super().process_message(msg, cell, cell_index)

    with forking_here():
        Client(notebook, kernel_name="python3", allow_errors=True, timeout=int(LIMIT)).execute()
    assert interrupted == [ask]
    line, error = notebook.cells[1].outputs
    assert line.data["text/plain"] == ""
    assert (error.ename, error.evalue) == ("KeyboardInterrupt", executor.INTERRUPTED)
    assert (
        notebook.cells[2].outputs[0].data["text/plain"] == "([('released', 'mu 0.0'), ('released', 'mu 0.1')], 0.1, [])"
    )


STANDING = """
import sys, traceback
stacks = [traceback.extract_stack(frame) for frame in sys._current_frames().values()]
clocks = [stack for stack in stacks if any(line.filename.endswith('progress/clock.py') for line in stack)]
log = [(row.status, f'mu {row.mu}') for row in session.log.itertuples()]
log, session.spent.mu, clocks
"""
