"""Every example notebook runs, and running it again spends nothing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import nbclient
import nbformat
import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))
CELL_SECONDS = 120

# Put after the last cell of a copy: what every session in the notebook has spent by then.
REPORT_SPENT = """
import json as _json
import dpnb as _dpnb
print(_json.dumps({
    _name: [repr(_value.spent), _value.headroom]
    for _name, _value in list(globals().items())
    if isinstance(_value, _dpnb.Session) and not _name.startswith("_")
}))
"""


def run(path: Path) -> tuple[nbformat.NotebookNode, dict[str, list[object]]]:
    """Run a notebook in a new kernel of this Python; give it back with what its sessions have spent."""
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(REPORT_SPENT))
    client = nbclient.NotebookClient(
        notebook,
        timeout=CELL_SECONDS,
        kernel_name="python3",
        store_widget_state=False,
        resources={"metadata": {"path": str(path.parent)}},
    )
    client.execute()
    report = notebook.cells.pop()
    return notebook, json.loads(report.outputs[0].text)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the examples without any ledger, and no Jupyter settings but the defaults."""
    for name in ("CONFIG", "DATA", "RUNTIME"):
        monkeypatch.setenv(f"JUPYTER_{name}_DIR", str(tmp_path / "jupyter" / name.lower()))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    return Path(
        shutil.copytree(EXAMPLES, tmp_path / "examples", ignore=shutil.ignore_patterns("*.dpnb*", ".ipynb_checkpoints"))
    )


@pytest.mark.parametrize("name", [path.name for path in NOTEBOOKS])
def test_example_runs_and_running_it_again_spends_nothing(name: str, folder: Path) -> None:
    first, spent = run(folder / name)
    assert spent, "the example makes no session that the reader can look at"
    assert any(headroom != 1 for _, headroom in spent.values()), "the example spends nothing, so it shows nothing"
    warned = [
        output.text for cell in first.cells for output in cell.get("outputs", []) if output.get("name") == "stderr"
    ]
    assert warned == []

    again, spent_again = run(folder / name)
    assert spent_again == spent
    assert printed(again) == printed(first)


def printed(notebook: nbformat.NotebookNode) -> list[list[str]]:
    """Plain-text results of every cell, widgets aside: the same requests give the same answers."""
    return [
        [
            output.data["text/plain"]
            for output in cell.get("outputs", [])
            if output.output_type == "execute_result" and not any("widget" in kind for kind in output.data)
        ]
        for cell in notebook.cells
    ]
