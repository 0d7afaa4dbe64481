"""The example notebooks run against a service, with one cell changed: the one that opens the session on the table."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import nbclient
import nbformat
import pytest

from dpnb.service.access.tokens import new_token
from waiting import LIMIT

pytestmark = [pytest.mark.slow, pytest.mark.notebook, pytest.mark.waits]

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
NOTEBOOKS = ("01-quickstart", "02-filters-and-odometers", "03-exploring", "04-interactive", "05-individual")
IMPORTS = "from importlib import resources\nimport pandas as pd\nimport dpnb\n"


@pytest.fixture
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp())  # a short path: it is that of a socket
    shutil.copytree(EXAMPLES, path / "examples", ignore=shutil.ignore_patterns("*.dpnb", "images"))
    yield path
    shutil.rmtree(path)


def opening_cell(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The first cell that opens a session."""
    return next(
        cell for cell in notebook.cells if cell.cell_type == "code" and "session = dpnb.Session(" in cell.source
    )


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs_with_one_cell_changed(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = nbformat.read(folder / "examples" / f"{name}.ipynb", as_version=4)
    cell = opening_cell(notebook)
    opening = cell.source.removesuffix("session").rstrip()
    body = "\n".join(f"    {line}" for line in opening.splitlines())
    (folder / "table.py").write_text(f"{IMPORTS}\ndef open_session():\n{body}\n    return session\n", "utf-8")
    (folder / "curator.toml").write_text(
        'time_grid = false\n[tables.table]\nsession = "table.py:open_session"\n', "utf-8"
    )
    token = new_token(folder / "tokens.json", "ana")

    table = [line for line in opening.splitlines() if line.startswith(("table =", "plans ="))]
    cell.source = "\n".join(
        [*table, f'session = dpnb.connect("unix://{folder}/run/dpnb.sock", table="table", token="{token}")', "session"]
    )
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    command = [sys.executable, "-m", "dpnb", "serve", str(folder / "curator.toml")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder, env=dict(os.environ)) as service:
        try:
            assert service.stdout is not None
            assert "serving at unix://" in service.stdout.readline()
            client = nbclient.NotebookClient(
                notebook, timeout=LIMIT, resources={"metadata": {"path": str(folder / "examples")}}
            )
            client.execute()
        finally:
            service.terminate()
            service.wait(LIMIT)
    assert any("in the curator's process" in str(output) for output in cell.outputs)
