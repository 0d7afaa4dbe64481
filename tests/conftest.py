"""What every test shares: hypothesis profiles, and a loud word about tests for which the machine lacks something."""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

import databases

pytest_plugins = ["browser", "docstring_names", "durations", "leftovers", "offline", "scheduling", "spared"]

UI = Path(__file__).resolve().parent / "ui"
FIRST = "test_assumptions.py"
LONG = (
    *("test_spark.py", "test_leftovers.py", "test_documentation.py", "test_notebooks.py", "test_interrupt_engines.py"),
    *("test_attack_interleaving.py", "test_descent.py", "test_connections.py", "test_process.py", "test_jupyterhub.py"),
    *("test_killed.py", "test_stored.py", "test_gdp_residue.py", "test_filters.py", "test_odometers.py"),
    *("test_quantiles.py", "test_population.py", "test_regression.py", "test_duckdb.py", "test_attack_differencing.py"),
    *("test_newton_coverage.py", "test_pages.py", "test_attack_exhausted.py", "test_same_outcome.py"),
    *("test_kernels.py", "test_polars.py", "test_dask.py", "test_postgresql.py", "test_sqlite.py", "test_memory.py"),
)

# The inherited suites hold asserts too; without this they would fail with a bare "AssertionError".
pytest.register_assert_rewrite("contracts", "ledger.rows", "session.bad_input", "ui.server_side")

# A service keeps the last row of each ledger in the state folder of its user, where those of tests do not belong.
STATE = os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="dpnb-state-")

# `jsonschema` compiles a grammar of IRIs at its import, for two seconds of each process; nothing here checks one.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

# Each process with a session would compile for several seconds; `backends/test_kernels.py` tests what is compiled.
os.environ.setdefault("NUMBA_DISABLE_JIT", "1")

# A deadline measures the machine, not the code.  In CI the same examples run every time, so that a red build means the
# change is wrong; at a desk the examples vary and find new things.  `make test` looks at a quarter of them.
QUICK = os.environ.get("DPNB_TEST_LEVEL") == "quick"
settings.register_profile("desk", deadline=None, max_examples=25 if QUICK else 100)
settings.register_profile("ci", settings.get_profile("desk"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "desk")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what drives a browser, and let it come early: it takes longest, and nothing is to wait for it at the end.

    It waits for the page, as what executes a notebook waits for the kernel. Before it come a few seconds for what the
    guarantee assumes of other libraries, without which the rest says little; after it the files that take a minute or
    more each. Marked too is what reads the built documentation, because one such test is enough for a whole build.
    """
    is_ui = {path: UI in path.parents for path in {item.path for item in items}}
    items.sort(key=lambda item: (item.path.name != FIRST, not is_ui[item.path], item.path.name not in LONG))
    for item in items:
        if is_ui[item.path]:
            item.add_marker(pytest.mark.ui)
        if "site" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.site)
        if any(item.get_closest_marker(name) for name in ("ui", "notebook")):
            item.add_marker(pytest.mark.waits)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Iterator[None]:
    """Leave what is loaded and collected out of the search for garbage: it is much, it stays, and it is searched often.

    A third of the time that collecting takes, and a seventh of the time of tests that make many small objects.  What is
    garbage by then is little, and to find it would take a second.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """After each file, leave out also what its tests have imported and cached, since that stays as well."""
    yield
    if nextitem is not None and nextitem.path != item.path:
        gc.collect()
        gc.freeze()


NEEDED = {
    "ui": (
        "BROWSER",
        "No Chromium was found. Install one (Debian: apt-get install chromium) or name it in DPNB_CHROMIUM.",
    ),
    "spark": (
        "SPARK",
        "No Java was found. Install version 17 or newer (Debian: apt-get install default-jre-headless).",
    ),
    "databases": (
        "DATABASE",
        "No PostgreSQL or no MariaDB was found. Install them (Debian: apt-get install postgresql mariadb-server).",
    ),
}
"""Tests that need what not every machine has: by their mark, what they are called, and the remedy."""


def _not_run(reporter: pytest.TerminalReporter, mark: str) -> list[str]:
    """Names of the tests with a mark that were skipped for what they need."""
    skipped = reporter.stats.get("skipped", [])
    return sorted({report.nodeid for report in skipped if mark in getattr(report, "keywords", {})})


def _let_off(reporter: pytest.TerminalReporter) -> Counter[str]:
    """What the pages of browser tests complained of and was not held against them, and how often."""
    reports = [report for group in reporter.stats.values() for report in group]
    ended = [report for report in reports if getattr(report, "when", "") == "teardown"]
    return Counter(words for report in ended for name, words in report.user_properties if name == "let off")


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say at the very end what was let off, which tests the machine lacks something for, and how to have them run."""
    if let_off := _let_off(terminalreporter):
        terminalreporter.section("errors of JupyterLab's own in the console, not held against dpnb")
        for words, times in let_off.items():
            terminalreporter.line(f"{times} times: {words}")
    for mark, (kind, remedy) in NEEDED.items():
        names = _not_run(terminalreporter, mark)
        if names:
            terminalreporter.section(f"{len(names)} {kind} TESTS WERE NOT RUN", sep="!", red=True, bold=True)
            for name in names:
                terminalreporter.line(name, red=True)
            terminalreporter.line(f"{remedy} With CI=true this is an error.", red=True)


def pytest_configure(config: pytest.Config) -> None:
    """Prepare a process that runs tests, and decide how it ends.

    A process of xdist has done all that it has to when pytest ends: to free a million objects one by one would take
    three seconds, and nothing that was registered earlier has anything to do, such as logging.  Another process frees
    them, or libraries complain, but not earlier: pytest searches for garbage twice when it ends.
    """
    is_worker = hasattr(config, "workerinput")
    if is_worker or not config.getoption("numprocesses", None):
        from dpnb.ledger import sqlite_file  # the process that shows what others have run need not load dpnb

        # What a killed process has written the system still has, so only a power cut could tell the difference; waiting
        # for the disk several times for each charge takes a good part of the time of most tests.
        sqlite_file.SYNCHRONOUS = "OFF"
    atexit.register(_end_at_once, os.getpid()) if is_worker else atexit.register(gc.unfreeze)


def _end_at_once(process: int) -> None:
    if os.getpid() == process:  # and not one that a test has forked
        os._exit(0)


def pytest_unconfigure() -> None:
    """Remove the state folder of the run."""
    shutil.rmtree(STATE, ignore_errors=True)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Under CI such a test that was skipped is a failure: CI must be a place that has Chromium, Java and databases."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    left_out = reporter and any(_not_run(reporter, mark) for mark in NEEDED)
    if exitstatus == pytest.ExitCode.OK and os.environ.get("CI") and left_out:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="session")
def postgresql() -> Iterator[databases.Server]:
    """A server of PostgreSQL, for tests with the mark `databases`."""
    if databases.postgresql_programs() is None:
        pytest.skip("needs PostgreSQL")
    with databases.postgresql() as server:
        yield server


@pytest.fixture(scope="session")
def mariadb() -> Iterator[databases.Server]:
    """A server of MariaDB, for tests with the mark `databases`."""
    if databases.mariadb_programs() is None:
        pytest.skip("needs MariaDB")
    with databases.mariadb() as server:
        yield server


@pytest.fixture
def many_switches() -> Iterator[None]:
    """Threads take turns as often as they can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)
