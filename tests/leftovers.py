"""A test run leaves nothing running, however it ends: a pytest plugin, and the watchman that it starts.

Every process of a run inherits the run's name in its environment, so that it can be found whatever has become of its
parents.  The watchman is a small process of its own, which no key and no closed terminal reaches.  It waits until
pytest is gone, which may be by a kill -9, and ends what is still running.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator

import psutil
import pytest

from waiting import LIMIT

RUN = "DPNB_TEST_RUN"
"""The environment variable that names the run; runs within runs, as in test_leftovers.py, add their name to it."""

PATIENCE = "DPNB_TEST_SOON"
"""The environment variable that changes the following seconds, for runs in which nothing is gained by waiting."""

SOON = float(os.environ.get(PATIENCE) or LIMIT / 24)
"""Seconds that processes have after pytest is gone, and to end after they were asked to."""
BY_ITSELF = 12 * SOON
"""Seconds that they have to end by themselves after the end of a run that was not interrupted."""


# ---- processes of a run ----------------------------------------------------------------------------------------------


def running(run: str) -> list[psutil.Process]:
    """Processes that carry the name of a run, and their descendants, which may have an environment of their own."""
    parents, found = {}, {}
    for process in psutil.process_iter():
        # It may be gone by now, or belong to another user.
        with contextlib.suppress(psutil.Error, OSError):
            parents[process] = process.ppid()
            if run in process.environ().get(RUN, "").split() and process.status() != psutil.STATUS_ZOMBIE:
                found[process.pid] = process
    found.pop(os.getpid(), None)
    while more := {p.pid: p for p, parent in parents.items() if parent in found and p.pid not in found}:
        found |= more
    return list(found.values())


def described(process: psutil.Process) -> str:
    """Its number and the beginning of its command."""
    try:
        return f"{process.pid}: {' '.join(process.cmdline())[:150]}"
    except psutil.Error:
        return f"{process.pid}: ended meanwhile"


def left_after(run: str, patience: float) -> list[psutil.Process]:
    """Wait for the processes of a run to end; return those that have not."""
    deadline = time.monotonic() + patience
    while (left := running(run)) and time.monotonic() < deadline:
        time.sleep(0.2)
    return left


def end(run: str, patience: float) -> list[str]:
    """Wait for the processes of a run to end by themselves, then end them; return which had to be ended."""
    left = left_after(run, patience)
    names = [described(process) for process in left]
    strike = psutil.Process.terminate
    while left:
        for process in left:
            with contextlib.suppress(psutil.Error):
                strike(process)
        left = left_after(run, SOON)  # one more, perhaps: a server starts a kernel that has died once more
        strike = psutil.Process.kill
    return names


def watch(run: str, pytest_id: int, make_id: int) -> None:
    """Wait until pytest, which started this process, is gone; then end what it has left.

    Where make or its shell started pytest (a process id of 0: nobody did), pytest ends with them.
    """
    while os.getppid() == pytest_id:
        with contextlib.suppress(psutil.Error):
            if make_id and psutil.Process(pytest_id).ppid() != make_id:
                make_id = 0
                os.kill(pytest_id, signal.SIGTERM)
        time.sleep(0.2)
    for name in end(run, SOON):
        # The terminal may be gone too.
        with contextlib.suppress(OSError):
            print("ended after pytest:", name, file=sys.stderr)


# ---- the plugin ------------------------------------------------------------------------------------------------------


class Leftovers:
    """In the process that the test command starts, not in xdist's workers."""

    def __init__(self) -> None:
        self.run = uuid.uuid4().hex
        self.left: list[str] = []

    def begin(self, config: pytest.Config) -> None:
        """Start the watchman, name the run, and let what ends a process end it as Ctrl-C does."""
        make = os.getppid() if "MAKELEVEL" in os.environ else 0
        capture = config.pluginmanager.get_plugin("capturemanager")
        with capture.global_and_fixture_disabled() if capture else contextlib.nullcontext():
            watchman = subprocess.Popen(
                [sys.executable, __file__, self.run, str(os.getpid()), str(make)],
                env={name: value for name, value in os.environ.items() if name != RUN},
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        if PATIENCE in os.environ:
            from xdist.workermanage import NodeManager

            NodeManager.EXIT_TIMEOUT = SOON  # in place of ten seconds
        watchman.returncode = 0  # it outlives this process, which otherwise warns about it at its end
        os.environ[RUN] = " ".join([*os.environ.get(RUN, "").split(), self.run])
        for name in ("SIGTERM", "SIGHUP"):
            # Under nohup the second is ignored, and stays so.
            if (number := getattr(signal, name, None)) and signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, signal.default_int_handler)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> Iterator[None]:
        """When xdist's workers are gone, nothing may be there; what is, is ended and is a failure.

        In a run of one process, that process may still have helpers: the watchman looks after them.
        """
        yield
        if not session.config.pluginmanager.has_plugin("dsession"):
            return
        in_order = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        self.left = end(self.run, BY_ITSELF if in_order else 0)
        if self.left and exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what was left running and is ended now."""
        if self.left:
            terminalreporter.section(f"{len(self.left)} PROCESSES WERE LEFT RUNNING, AND ENDED", sep="!", red=True)
            for name in self.left:
                terminalreporter.line(name, red=True)


def pytest_configure(config: pytest.Config) -> None:
    # A job in the background ignores Ctrl-C, and so would what tests start and interrupt.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not hasattr(config, "workerinput"):
        plugin = Leftovers()
        config.pluginmanager.register(plugin)
        plugin.begin(config)


if __name__ == "__main__":
    watch(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
