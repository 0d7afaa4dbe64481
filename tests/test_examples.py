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

    assert any(printed(first)), "the example releases nothing as a cell's result"
    again, spent_again = run(folder / name)
    assert spent_again == spent
    assert printed(again) == printed(first)


def printed(notebook: nbformat.NotebookNode) -> list[list[str]]:
    """Plain-text answers of every cell: the same requests give the same ones.

    What a session says of itself is left out, and so are previews: they tell how things stand and what a release would
    cost now, the second time nothing.
    """
    return [
        [
            output.data["text/plain"]
            for output in cell.get("outputs", [])
            if output.output_type == "execute_result"
            and "(not released)" not in output.data["text/plain"]
            and not output.data["text/plain"].startswith("dpnb session ")
        ]
        for cell in notebook.cells
    ]


def test_quickstart_shows_the_published_ordering(folder: Path) -> None:
    """Free care is used most (Manning et al. 1987).

    The noise is real here: at the notebook's budget the smallest lead, over the group that pays all, is 3.8 standard
    deviations, so a correct program fails this about once in 14,000 runs.
    """
    notebook, _ = run(folder / "01-quickstart.ipynb")
    answer = next(text for texts in printed(notebook) for text in texts if text.startswith("mean of mdvis by coins"))
    means = {row.split()[0]: float(row.split()[1]) for row in answer.splitlines()[2:-1]}
    assert list(means) == ["0", "25", "50", "95", "100"]
    assert max(means, key=means.__getitem__) == "0"


def test_exploring_shows_that_visits_fall_from_free_care_to_95_percent(folder: Path) -> None:
    """The published ordering (Manning et al. 1987).

    The noise is real: after the refinement the smaller of the two distances is more than 10 standard deviations.
    """
    notebook, _ = run(folder / "03-exploring.ipynb")
    answers = [text for texts in printed(notebook) for text in texts if text.startswith("mean of mdvis by plan")]
    refined = next(text for text in answers if "looks combined" in text)
    means = {row.split()[0]: float(row.split()[1]) for row in refined.splitlines()[2:-1]}
    assert means["free"] > means["25%"] > means["95%"]
