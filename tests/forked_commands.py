"""Processes forked from one that has imported dpnb, which takes more than a second of a core: commands, and code."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path

from kernels import CONTEXT
from waiting import LIMIT


class Command:
    """A command that runs in a folder; `output` is what it prints."""

    def __init__(self, folder: Path, *arguments: str, variables: Mapping[str, str] | None = None) -> None:
        ours, theirs = CONTEXT.Pipe(duplex=False)
        self._process = CONTEXT.Process(target=_run, args=(theirs, str(folder), arguments, dict(variables or {})))
        self._process.start()
        theirs.close()
        self.output = open(os.dup(ours.fileno()), encoding="utf-8")  # noqa: SIM115  (open until the command ends)
        ours.close()

    def stop(self) -> None:
        """Ask it to end, as a curator does, and wait until it has."""
        self._process.terminate()
        self.end()

    def end(self) -> int | None:
        """Wait for its end and give its exit code."""
        self._process.join(LIMIT)
        code = self._process.exitcode
        self._process.kill()
        self._process.join()
        self._process.close()
        self.output.close()
        return code


def _run(output: Connection, folder: str, arguments: tuple[str, ...], variables: dict[str, str]) -> None:
    from dpnb.__main__ import main

    os.dup2(output.fileno(), sys.stdout.fileno())
    output.close()
    os.chdir(folder)
    os.environ.update(variables)
    sys.exit(main(arguments))


def run_code(folder: Path, code: str) -> None:
    """Run code in a folder; it must not fail."""
    process = CONTEXT.Process(target=_execute, args=(str(folder), code))
    process.start()
    process.join(LIMIT)
    assert process.exitcode == 0, code


def _execute(folder: str, code: str) -> None:
    os.chdir(folder)
    exec(code, {})
