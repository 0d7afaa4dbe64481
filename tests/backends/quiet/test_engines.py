"""What is switched off of an engine elsewhere than in this process."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from dpnb._backends import quiet
from waiting import LIMIT

WORKER = """
import os, sys
from dpnb._backends import quiet as engines
streams = engines
engines.quiet_worker(("another process", 1), {streams.identity(1)} if sys.argv[1] == "shared" else set())
os.write(1, b"to the notebook")
os.write(2, b"to a file of its own")
"""


@pytest.mark.waits
@pytest.mark.skipif(sys.platform == "win32", reason="files have no such identity")
@pytest.mark.parametrize(("started", "shown"), [("shared", b""), ("elsewhere", b"to the notebook")])
def test_a_worker_is_quiet_where_the_process_that_asks_would_show_it(started: str, shown: bytes) -> None:
    command = [sys.executable, "-c", WORKER, started]
    worker = subprocess.run(command, check=True, capture_output=True, timeout=LIMIT)
    assert worker.stdout == shown
    assert worker.stderr == b"to a file of its own"


def test_a_worker_in_this_process_leaves_its_streams(capfd: pytest.CaptureFixture[str]) -> None:
    quiet.quiet_worker((quiet._THIS, os.getpid()), quiet.identities())
    os.write(1, b"shown")
    assert capfd.readouterr().out == "shown"


def test_duckdb_shows_no_progress_after_a_question() -> None:
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.sql("set enable_progress_bar = true")
    relation = connection.sql("select 1 as x")
    setting = connection.sql("select current_setting('enable_progress_bar')")
    assert quiet.run_silently(setting.fetchall, "duckdb", [relation]) == [(False,)]
    assert connection.sql("show tables").fetchall() == []


@pytest.mark.dask
def test_progress_bars_of_dask_are_away_for_a_question_alone() -> None:
    from dask.callbacks import Callback
    from dask.diagnostics import ProgressBar

    with ProgressBar() as bar:
        assert quiet.run_silently(lambda: set(Callback.active), "dask", []) == set()
        assert bar._callback in Callback.active
    assert bar._callback not in Callback.active
