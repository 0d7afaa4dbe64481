"""The example notebooks run against a service, with one cell changed: the one that opens the session on the table."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import nbclient
import nbformat
import pytest

from dpnb.service.access.tokens import new_token
from forked import Forked, python
from kernel_pool.forked_kernels import forking_here
from waiting import LIMIT

pytestmark = [pytest.mark.slow, pytest.mark.notebook, pytest.mark.waits]

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
NOTEBOOKS = ("01-quickstart", "02-filters-and-odometers", "03-exploring", "04-interactive", "05-individual")
OWN_SESSIONS = {"03-exploring": "# Locate the data only", "05-individual": "chance = np.random.default_rng(1)"}
"""The cell from which a notebook has sessions of its own, not on the service: test_documentation.py runs these."""
IMPORTS = "from importlib import resources\nimport pandas as pd\nimport dpnb\n"


def read(name: str) -> tuple[nbformat.NotebookNode, nbformat.NotebookNode, list[str]]:
    """A notebook, its first cell that opens a session, and the lines of that cell."""
    notebook = nbformat.read(EXAMPLES / f"{name}.ipynb", as_version=4)
    cell = next(
        cell for cell in notebook.cells if cell.cell_type == "code" and "session = dpnb.Session(" in cell.source
    )
    return notebook, cell, cell.source.removesuffix("session").rstrip().splitlines()


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """The folder of a service that serves the session of each notebook as a table."""
    path = Path(tempfile.mkdtemp())  # a short path: it is that of a socket
    shutil.copytree(EXAMPLES, path / "examples", ignore=shutil.ignore_patterns("*.dpnb", "images"))
    settings, code = ["time_grid = false\n"], [IMPORTS]
    for number, name in enumerate(NOTEBOOKS):
        settings.append(f'[tables.{name}]\nsession = "tables.py:open_{number}"\n')
        code += [f"def open_{number}():", *(f"    {line}" for line in read(name)[2]), "    return session\n"]
    (path / "curator.toml").write_text("\n".join(settings), "utf-8")
    (path / "tables.py").write_text("\n".join(code), "utf-8")
    with closing(Forked(python, str(path), os.devnull, "-m", "dpnb", "serve", str(path / "curator.toml"))) as service:
        assert "serving at unix://" in service.stdout.readline()
        yield path
        service.terminate()
        service.wait(LIMIT)
    shutil.rmtree(path)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs_with_one_cell_changed(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook, cell, opening = read(name)
    token = new_token(folder / "tokens.json", f"ana-{name}")
    table = [line for line in opening if line.startswith(("table =", "plans ="))]
    cell.source = "\n".join(
        [*table, f'session = dpnb.connect("unix://{folder}/run/dpnb.sock", table="{name}", token="{token}")', "session"]
    )
    if name in OWN_SESSIONS:
        (end,) = (number for number, one in enumerate(notebook.cells) if one.source.startswith(OWN_SESSIONS[name]))
        del notebook.cells[end:]
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    with forking_here():
        nbclient.NotebookClient(
            notebook, timeout=LIMIT, resources={"metadata": {"path": str(folder / "examples")}}
        ).execute()
    assert any("in the curator's process" in str(output) for output in cell.outputs)
