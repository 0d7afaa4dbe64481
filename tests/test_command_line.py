"""``python -m dpnb``: what a curator types, what is read then, and that a notebook gets neither."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from core.people import ask_all, curator
from dpnb.__main__ import main
from dpnb.curator import kernel
from dpnb.curator.kernel import kernel_evidence
from ledger.rows import contents
from waiting import LIMIT


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    session, ledger, file = curator(tmp_path, "skip")
    ask_all(session)
    session.ledger.close()
    return ledger, file


def test_a_statement_is_text_on_the_standard_output(files: tuple[Path, Path]) -> None:
    ledger, file = files
    before = contents(ledger.parent)
    command = [sys.executable, "-m", "dpnb", "statement", str(ledger), "--table", str(file), "--unit", "p1"]
    # A terminal that cannot show everything is no reason to fail.
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        timeout=LIMIT,
    )
    assert done.stderr == ""
    assert done.stdout.startswith("Statement for person p1\nFor this person alone")
    assert done.stdout.count("count of rows") >= 2
    assert contents(ledger.parent) == before


def test_errors_are_a_line_without_a_traceback(files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    ledger, file = files
    for changed, said in (
        (["none.dpnb", "--table", str(file), "--unit", "p1"], "ledger '"),
        ([str(ledger), "--table", "none.csv", "--unit", "p1"], "--table: "),
        ([str(ledger), "--table", str(file), "--unit", "p99"], "--unit: "),
    ):
        assert main(["statement", *changed]) == 1
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith(f"dpnb: {said}")
        assert err.count("\n") == 1
    assert not Path("none.dpnb").exists()


@pytest.mark.parametrize("arguments", [[], ["statement"], ["statement", "x.dpnb", "--unit", "p1"], ["statements"]])
def test_what_is_missing_is_said(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "usage: python -m dpnb" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "whom"),
    [
        ("statement", "For that person alone"),
        ("check", "for the curator alone"),
        ("draft", "for the curator alone"),
    ],
)
def test_help_says_whom_it_is_for(command: str, whom: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    told = capsys.readouterr().out
    assert whom in told
    assert "protects against mistakes" in told


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    told = capsys.readouterr().out
    assert "statement" in told
    assert "check " in told
    assert "draft " in told


# --- in a kernel -----------------------------------------------------------------------------------------------------

SHELL = "!{command}"
BARE = "!env -i PYTHONPATH={path} {command}"
CALL = """
from dpnb.curator.personal_statement import statement
try:
    statement({ledger!r}, [{file!r}], "p1")
except Exception as error:
    print(error)
"""
CALL_CHECK = """
from dpnb.curator.check import check
try:
    print(check({declaration!r}, [{file!r}]).fine)
except Exception as error:
    print(error)
"""


@pytest.fixture
def declaration(tmp_path: Path) -> Path:
    path = tmp_path / "clinic.toml"
    path.write_text('name = "c"\n[budget]\nmu = 1\n[schema]\nvisits = { type = "bounded", low = 0, high = 9 }\n')
    return path


@pytest.mark.notebook
def test_a_real_kernel_is_refused(
    files: tuple[Path, Path], declaration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger, file = files
    checking = f"{sys.executable} -m dpnb check {declaration} {file}"
    main(checking.split()[3:])
    assert "COMPUTED FROM THE ROWS" in capsys.readouterr().out  # control: outside
    command = f"{sys.executable} -m dpnb statement {ledger} --table {file} --unit p1"
    path = os.pathsep.join(filter(None, sys.path))
    sources = [SHELL.format(command=command), CALL.format(ledger=str(ledger), file=str(file))]
    sources += [SHELL.format(command=checking), CALL_CHECK.format(declaration=str(declaration), file=str(file))]
    if Path("/proc").is_dir():  # the variables are gone, the parents are not
        sources += [BARE.format(path=path, command=line) for line in (command, checking)]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    NotebookClient(notebook, kernel_name="python3", timeout=int(LIMIT), startup_timeout=int(LIMIT)).execute()
    told = ["".join(output.text for output in cell.outputs) for cell in notebook.cells]
    reasons = ["JPY_", "this process is a kernel"] * 2 + ["a kernel, process "] * 2
    for text, reason in zip(told, reasons, strict=False):
        assert "must be run outside notebooks" in text
        assert "in the curator's own terminal" in text
        assert reason in text
        assert "Statement for" not in text
        assert "COMPUTED" not in text
        assert "True" not in text


@pytest.mark.parametrize("name", ["JPY_PARENT_PID", "JPY_SESSION_NAME"])
def test_what_a_kernel_gives_its_children_is_enough(
    name: str,
    files: tuple[Path, Path],
    declaration: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ledger, file = files
    assert main(["check", str(declaration), str(file)]) in (0, 1)
    capsys.readouterr()
    monkeypatch.setenv(name, "")
    statement, check = ["statement", str(ledger), "--table", str(file), "--unit", "p1"], ["check", str(declaration)]
    for command, code in ((statement, 1), ([*check, str(file)], 2), ([*check, "none.csv"], 2)):
        assert main(command) == code
        out, err = capsys.readouterr()
        assert out == ""
        assert name in err


@pytest.mark.parametrize(
    ("arguments", "is_kernel"),
    [
        (["python", "-m", "ipykernel_launcher", "-f", "x.json"], True),
        (["/usr/bin/python3", "/lib/ipykernel_launcher.py"], True),
        (["python", "-m", "ipykernel"], True),
        (["xpython", "-f", "/run/jupyter/kernel-0a1b-22.json"], True),
        (["bash"], False),
        (["vi", "ipykernel-notes.txt"], False),
        (["jupyter-lab"], False),
    ],
)
def test_a_kernel_among_the_parents_is_known_by_its_command(
    arguments: list[str], is_kernel: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "PROCESSES", tmp_path)
    monkeypatch.setattr(os, "getppid", lambda: 30)
    for process, parent, command in ((30, 20, ["sh"]), (20, 10, arguments), (10, 1, ["init"])):
        (tmp_path / str(process)).mkdir()
        (tmp_path / str(process) / "cmdline").write_bytes("\0".join([*command, ""]).encode())
        (tmp_path / str(process) / "status").write_text(f"Name:\tx\nPPid:\t{parent}\n")
    around = kernel_evidence()
    assert around == ("a kernel, process 20, started this one" if is_kernel else None)


def test_a_machine_without_a_list_of_processes_goes_by_the_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "PROCESSES", tmp_path)
    assert kernel_evidence() is None
    monkeypatch.setenv("JPY_PARENT_PID", "4")
    assert kernel_evidence() is not None
