"""Where the minutes of a run go, by kind and by file: printed after a run, and again by ``make durations``.

What a fixture takes counts for the test that needs it first, so the file that starts a server shows what that costs;
likewise what a process imports, compiles or caches for the first time.  Collecting the tests counts for none.
"""

from __future__ import annotations

import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

KEPT = Path(__file__).resolve().parents[1] / "build" / "test-durations"
KINDS = ("ui", "site", "notebook", "spark", "dask", "statistical", "slow")
LEAST_TESTS = 2000
"""A run of fewer tests keeps nothing: it would hide what a whole run took."""

Row = tuple[str, str, float]
"""File, kind and seconds of one test."""


@dataclass(eq=False)
class Durations:
    """The seconds that each test of a run took with its fixtures, whichever process ran it."""

    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    kinds: dict[str, str] = field(default_factory=dict)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add a phase of a test."""
        self.seconds[report.nodeid] += report.duration
        self.kinds.setdefault(report.nodeid, next((kind for kind in KINDS if kind in report.keywords), "none"))

    def rows(self) -> list[Row]:
        """The tests of the run."""
        return [(name.partition("::")[0], self.kinds[name], seconds) for name, seconds in self.seconds.items()]

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Keep them, and print those of the most expensive files."""
        rows = self.rows()
        if len(rows) >= LEAST_TESTS:
            KEPT.mkdir(parents=True, exist_ok=True)
            (KEPT / f"{os.environ.get('DPNB_TEST_LEVEL', 'thorough')}.json").write_text(json.dumps(rows))
            terminalreporter.section("where the time went (make durations: every file)")
            terminalreporter.line(table(rows, files=10))


def table(rows: Iterable[Row], *, files: int | None = None) -> str:
    """Seconds and tests by kind, and of the most expensive files."""
    by_kind: dict[str, list[float]] = defaultdict(list)
    by_file: dict[str, list[float]] = defaultdict(list)
    for file, kind, seconds in rows:
        by_kind[kind].append(seconds)
        by_file[file].append(seconds)
    total = sum(map(sum, by_kind.values()))

    def lines(groups: dict[str, list[float]], most: int | None) -> list[str]:
        ordered = sorted(groups.items(), key=lambda item: -sum(item[1]))[:most]
        return [
            f"{sum(each):9.1f} s {sum(each) / total or 0:5.1%} {len(each):6} tests  {name}" for name, each in ordered
        ]

    return "\n".join([*lines(by_kind, None), "", *lines(by_file, files)])


def pytest_configure(config: pytest.Config) -> None:
    """Measure where reports arrive: not in the processes of xdist."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Durations(), "durations-of-tests")


if __name__ == "__main__":
    runs = sorted(KEPT.glob("*.json"))
    if not runs:
        sys.exit(f"No run of at least {LEAST_TESTS} tests is kept; run `make test` first")
    for run in runs:
        print(f"{run.stem}:\n{table(json.loads(run.read_text()))}\n")
