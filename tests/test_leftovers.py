"""A test run that is interrupted leaves no process running and nothing in the working tree.

Each test starts a run of its own (``tests/ui/held.py``), with a JupyterLab server, its kernel and a process of a fork
server, and interrupts it in its middle.  Server and kernel are real where nothing interrupts a run, or Ctrl-C or a kill
does, and such a run has all plugins of the tests, by their ``conftest.py``.  Elsewhere server and kernel are stand-ins
that are harder to end, and a run has the plugin alone.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

import leftovers
from waiting import LIMIT, wait_until

if sys.platform == "win32":
    pytest.skip("needs process groups and their signals", allow_module_level=True)

pytestmark = [pytest.mark.slow, pytest.mark.waits]

ROOT = Path(__file__).resolve().parent.parent
EXPECTED = ("jupyterlab", "forked_kernels", "multiprocessing.forkserver")
# The documentation may be built while these tests run.
CACHES = ("build/", "cache/", "__pycache__/", ".hypothesis/", "screenshots/")

REAL = {
    leftovers.PATIENCE: str(leftovers.SOON / 4),  # one kernel without work is all that the server must end
    "DPNB_TEST_HELD_JUPYTER": "yes",
}
STAND_INS = {
    leftovers.PATIENCE: str(leftovers.SOON / 40),  # there is nothing that they must put in order
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    "PYTHONPATH": os.pathsep.join([str(ROOT / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])]),
}
WITH_JUPYTER = ("Ctrl-C", "killed")

IN_ORDER = {int(pytest.ExitCode.INTERRUPTED)}
INTERRUPTS: dict[str, tuple[Callable[[int, int], None], list[int], set[int]]] = {
    "Ctrl-C": (os.killpg, [signal.SIGINT], IN_ORDER),
    # The second may reach pytest in its own clean-up, or in a lock written in Python: both then raise something.
    "Ctrl-C twice": (
        os.killpg,
        [signal.SIGINT, signal.SIGINT],
        {*IN_ORDER, -signal.SIGINT, 1, int(pytest.ExitCode.INTERNAL_ERROR)},
    ),
    "closed terminal": (os.killpg, [signal.SIGHUP], IN_ORDER),
    "terminated": (os.kill, [signal.SIGTERM], IN_ORDER),
    "killed": (os.kill, [signal.SIGKILL], {-signal.SIGKILL}),
    "all killed": (os.killpg, [signal.SIGKILL], {-signal.SIGKILL}),
}
"""Whether all processes are sent the signals, as by a terminal, or the first one alone; and how that one may end."""


class Held(NamedTuple):
    """A run in its middle."""

    pytest: subprocess.Popen[bytes]
    watchman: psutil.Process | None
    name: str
    folder: Path

    def running(self) -> str:
        """What is running of it; the word by which a test finds it is in the environment of all of it."""
        return "\n".join(map(leftovers.described, leftovers.running(self.name)))

    def said(self) -> str:
        return (self.folder / "output").read_text(encoding="utf-8")

    def wait(self) -> None:
        """Until the run is over, and its watchman too."""
        self.pytest.wait(LIMIT)
        if self.watchman:
            self.watchman.wait(LIMIT)


def watchman_of(process: subprocess.Popen[bytes]) -> psutil.Process | None:
    children = psutil.Process(process.pid).children(recursive=True)
    return next((child for child in children if leftovers.__file__ in child.cmdline()), None)


def hear_of_a_closed_terminal() -> None:
    """Under nohup the tests ignore this signal, and what they start would too."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@contextmanager
def held(folder: Path, *, within: Sequence[str] = (), jupyter: bool = False, plugin: bool = True) -> Iterator[Held]:
    """A run in its middle; whatever a test shows, nothing of it is there after the block."""
    name = uuid.uuid4().hex
    flags = [] if jupyter else ["--noconftest", "-p", "xdist", *(("-p", "leftovers") if plugin else ())]
    command = [*within, sys.executable, "-m", "pytest", *flags, "--numprocesses=1", "--dist=loadscope"]
    # The run opens no page, so any program will do for a browser.
    changes = {leftovers.RUN: name, "DPNB_TEST_HELD": str(folder), "DPNB_CHROMIUM": sys.executable}
    changes |= REAL if jupyter else STAND_INS
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            [*command, f"--basetemp={folder / 'temporary'}", "tests/ui/held.py"],
            cwd=ROOT,
            env={**os.environ, **changes},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=hear_of_a_closed_terminal,
        )
    run = Held(process, None, name, folder)
    try:
        wait_until(lambda: (folder / "up").exists() or process.poll() is not None, "the run's middle", run.said)
        assert [part for part in EXPECTED if part not in run.running()] == [], run.said()
        yield run._replace(watchman=watchman_of(process))
    finally:
        leftovers.end(name, 0)
        process.wait(LIMIT)


def working_tree() -> set[str]:
    """Files that git does not know, also those that it ignores; but no caches and no build."""
    command = ["git", "-c", "safe.directory=*", "status", "--porcelain", "--ignored"]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if listing.returncode != 0:
        pytest.skip("not a git clone")
    unknown = {line[3:] for line in listing.stdout.decode().splitlines() if line.startswith(("??", "!!"))}
    return {name for name in unknown if not name.endswith(CACHES) and not name.startswith(".coverage")}


@pytest.mark.parametrize("interrupt", INTERRUPTS)
def test_interrupted_run_leaves_nothing(interrupt: str, tmp_path: Path) -> None:
    before = working_tree()
    send, numbers, codes = INTERRUPTS[interrupt]
    with held(tmp_path, jupyter=interrupt in WITH_JUPYTER) as run:
        assert run.watchman is not None
        for number in numbers:
            send(run.pytest.pid, number)
        run.wait()
        assert run.running() == ""
        assert run.pytest.returncode in codes, run.said()
    assert working_tree() <= before


def test_run_ends_with_the_shell_in_which_make_runs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAKELEVEL", "1")
    with held(tmp_path, within=["sh", "-c", '"$0" "$@"; exit $?']) as run:
        assert run.watchman is not None
        run.pytest.terminate()
        run.wait()
        assert run.running() == ""
        assert "KeyboardInterrupt" in run.said()


@pytest.mark.parametrize("interrupt", ["terminated", "killed"])
def test_without_the_plugin_much_is_left(interrupt: str, tmp_path: Path) -> None:
    send, numbers, _ = INTERRUPTS[interrupt]
    with held(tmp_path, plugin=False) as run:
        for number in numbers:
            send(run.pytest.pid, number)
        run.wait()
        assert "multiprocessing.forkserver" in run.running()


def test_undisturbed_run_leaves_nothing(tmp_path: Path) -> None:
    with held(tmp_path, jupyter=True) as run:
        (tmp_path / "go on").touch()
        assert run.pytest.wait(LIMIT) == pytest.ExitCode.OK, run.said()
        assert run.running() == ""


def test_undisturbed_run_fails_if_a_test_leaves_something(tmp_path: Path) -> None:
    with held(tmp_path) as run:
        (tmp_path / "leave").touch()
        (tmp_path / "go on").touch()
        assert run.pytest.wait(LIMIT) == pytest.ExitCode.TESTS_FAILED, run.said()
        assert run.running() == ""
        assert "1 PROCESSES WERE LEFT RUNNING" in run.said()
        assert "a forgotten process" in run.said()
