"""How far a fit is: one line below the cell, brought up to date in its place."""

from __future__ import annotations

from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from dpnb.notebook import progress


class Shown:
    """Counts what is displayed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.texts: list[str] = []
        self.displayed = 0
        monkeypatch.setattr(progress, "display", self._display)

    def _display(self, shown: dict[str, str], **_: Any) -> Shown:
        self.displayed += 1
        return self.update(shown)

    def update(self, shown: dict[str, str], **_: Any) -> Shown:
        self.texts.append(shown["text/plain"])
        return self


def test_a_line_is_shown_once_and_updated_not_too_often_but_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Shown(monkeypatch)
    line = progress.Line(interval=3600)
    for number in range(1000):
        line(f"step {number}", False)
    line("the end", True)
    assert shown.displayed == 1
    assert shown.texts == ["step 0", "the end"]


def test_what_cannot_be_shown_stops_nothing(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("the browser is gone")

    monkeypatch.setattr(progress, "display", broken)
    progress.Line()("step 1", False)
    assert "RuntimeError" in caplog.text
    assert "browser" not in caplog.text


FIT = """
import numpy as np, pandas as pd, dpnb
table = pd.DataFrame({'x': np.linspace(0, 5, 50), 'y': np.linspace(0, 5, 50)})
schema = {'x': dpnb.Bounded(0, 5), 'y': dpnb.Bounded(0, 5)}
session = dpnb.Session(
    table, name='t', budget=dpnb.Budget.gdp(1), schema=schema, ledger=':memory:', public_size=50
)
fit = session.frame.fit('y', on='x', family='linear', mu='0.1', steps=4, name='line')
"""


def test_in_a_notebook_the_cell_says_how_far_it_is_and_elsewhere_nothing_is_shown() -> None:
    sources = [FIT + "fit.run();", "%load_ext dpnb\nfit.begin(); fit.run();", "fit"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    NotebookClient(notebook, kernel_name="python3").execute()
    silent, told, face = notebook.cells
    assert silent.outputs == []
    (output,) = told.outputs
    assert output.data["text/plain"].startswith("line: step 4 of 4, mu 0.2")
    assert "all steps were taken" in output.data["text/html"]
    assert "step 4 of 4" in face.outputs[0].data["text/html"]
