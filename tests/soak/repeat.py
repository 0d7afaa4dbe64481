"""``python -m soak.repeat``: the tests that wait for something, again and again, with every core kept busy by others.

In the folder ``tests``.  Arguments that it does not know go to pytest.  It ends with an error if any test failed, and
says which, how often, and where the output of those rounds is.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree

from waiting import LIMIT

ROOT = Path(__file__).resolve().parents[2]
WAITING = "waits and not spark and not site"
"""Spark's start takes longer than all that waits for it, and its tests wait as Dask's do. So does building the site."""


def spin(parent: int) -> None:
    """Work for nothing, for as long as the process that wants it is there."""
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, signal.SIG_IGN)  # the parent ends it
    while os.getppid() == parent:
        sum(range(100_000))


@contextmanager
def busy(cores: int) -> Iterator[None]:
    """As many processes that do nothing but work, as nice as the tests are."""
    context = multiprocessing.get_context("fork" if sys.platform != "win32" else "spawn")
    load = [context.Process(target=spin, args=(os.getpid(),), daemon=True) for _ in range(cores)]
    try:
        for one in load:
            one.start()
        yield
    finally:
        for one in load:
            one.kill()
            one.join()


def round_of(arguments: list[str], report: Path, output: Path) -> int:
    """Run pytest once; its exit code."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *arguments]
    with output.open("wb") as file:
        tests = subprocess.Popen(command, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT)
        try:
            return tests.wait()
        finally:
            if tests.poll() is None:  # interrupted: so are the tests, which end what they have started
                tests.terminate()  # as Ctrl-C, which a process that was started in the background may ignore
                try:
                    tests.wait(LIMIT)
                except subprocess.TimeoutExpired:
                    tests.kill()
                    tests.wait()


def files_of(arguments: list[str]) -> list[str]:
    """The files of the tests, unless the arguments name some: collecting the others takes longer than a round."""
    if any((ROOT / argument.partition("::")[0]).exists() for argument in arguments):
        return []
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--collect-only", *arguments]
    listing = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
    return sorted({line.partition("::")[0] for line in listing.splitlines() if "::" in line})


def outcomes(report: Path) -> tuple[Counter[str], list[str]]:
    """How many tests ended how, and the names of those that failed."""
    found: Counter[str] = Counter()
    failed = []
    for case in ElementTree.parse(report).iter("testcase") if report.exists() else ():
        kinds = {child.tag for child in case} & {"failure", "error", "skipped"}
        found[min(kinds, default="passed")] += 1
        if kinds & {"failure", "error"}:
            failed.append(f"{case.get('classname')}::{case.get('name')}")
    return found, failed


class Rounds:
    """Rounds of the tests, and what came of them."""

    def __init__(self) -> None:
        self.total: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.made, self.bad, self.began = 0, 0, time.monotonic()
        self.folder = Path(tempfile.mkdtemp(prefix="dpnb-repeat-"))

    def one(self, arguments: list[str]) -> None:
        """Make another round and say how it ended; keep its output if it failed."""
        number, start = self.made + 1, time.monotonic()
        report, output = (self.folder / f"{number}.{kind}" for kind in ("xml", "txt"))
        code = round_of(arguments, report, output)
        found, names = outcomes(report)
        self.made, self.bad, self.total = number, self.bad + bool(code), self.total + found
        self.failed.update(names or (["no test; see its output"] if code else []))
        if not code:
            output.unlink()
        seconds = time.monotonic() - start
        print(f"round {number}: {said(found)}; exit code {code}, {seconds:.0f} s {' '.join(names)}", flush=True)

    def end(self, times: int) -> int:
        """Say what came of all of them; the exit code."""
        minutes = (time.monotonic() - self.began) / 60
        print(f"\n{self.made} of {times} rounds in {minutes:.1f} minutes, {self.bad} of them with failures")
        print(f"tests: {said(self.total)}")
        for name, often in self.failed.most_common():
            print(f"{often:5} failures of {name}")
        if self.bad or self.made < times:
            print(f"output of the rounds that failed: {self.folder}")
            return 1
        shutil.rmtree(self.folder)
        return 0


def said(found: Counter[str]) -> str:
    kinds = ("passed", "skipped", "failure", "error")
    return ", ".join(f"{found[kind]} {kind}" for kind in kinds if found[kind]) or "none"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m soak.repeat", description=__doc__, allow_abbrev=False)
    parser.add_argument("--times", type=int, default=60, help="rounds, each in a new process (default 60)")
    parser.add_argument("--busy", type=int, default=os.cpu_count() or 1, help="busy processes (default: the cores)")
    given, arguments = parser.parse_known_args()
    arguments = arguments if "-m" in arguments else ["-m", WAITING, *arguments]
    arguments += files_of(arguments)
    rounds = Rounds()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with busy(given.busy):
            while rounds.made < given.times:
                rounds.one(arguments)
    except KeyboardInterrupt:
        print("interrupted")
    return rounds.end(given.times)


if __name__ == "__main__":
    sys.exit(main())
