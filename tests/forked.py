"""Services and commands as processes that are forked from one which has imported the slow parts.

`Forked` stands in for `subprocess.Popen`. To import what a command needs takes a second of a core, and most commands
take little more; that they import it themselves is shown where they are started as a terminal does.
"""

from __future__ import annotations

import os
import resource
import runpy
import signal
import sys
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from pathlib import Path

from kernels import CONTEXT
from waiting import LIMIT


def _run(work: Callable[..., int], output: Connection, files: int, variables: Mapping[str, str], *given: str) -> int:
    """What the process does: it writes to `output`, has the variables, and may open that many files."""
    os.dup2(output.fileno(), 1)
    output.close()
    os.environ.clear()
    os.environ.update(variables)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    raise SystemExit(work(*given))


def python(folder: str, errors: str, *arguments: str) -> int:
    """What Python does with these arguments in a folder; what it writes to stderr goes to a file."""
    os.chdir(folder)
    with open(errors, "w") as file:
        os.dup2(file.fileno(), 2)
    sys.path.insert(0, folder)
    option, *sys.argv = arguments if arguments[0] in ("-m", "-c") else ("", *arguments)
    if option == "-m":
        sys.modules.pop(f"{sys.argv[0]}.__main__", None)  # as it is before a module is run
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    elif option == "-c":
        exec(sys.argv[0], {"__name__": "__main__"})
    else:
        runpy.run_path(sys.argv[0], run_name="__main__")
    return 0


class Forked:
    """A process that runs ``work(*given)``, which returns its exit code."""

    def __init__(
        self, work: Callable[..., int], *given: str, files: int = 1024, variables: Mapping[str, str] | None = None
    ) -> None:
        output, theirs = CONTEXT.Pipe(duplex=False)
        self._process = CONTEXT.Process(
            target=_run, args=(work, theirs, files, {**os.environ, **(variables or {})}, *given)
        )
        self._process.start()
        theirs.close()
        with output:
            self.stdout = open(os.dup(output.fileno()), encoding="utf-8")  # noqa: SIM115  (closed by `close`)
        self.pid = self._process.pid or 0

    def poll(self) -> int | None:
        """Its exit code; None while it is running."""
        return self._process.exitcode

    def wait(self, timeout: float) -> int | None:
        """Its exit code; None if it runs on for longer than the timeout in seconds."""
        self._process.join(timeout)
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill -9."""
        self.send_signal(signal.SIGKILL)

    def end(self) -> int | None:
        """Wait for its end, and give its exit code; None if it has not ended in time."""
        code = self.wait(LIMIT)
        self.close()
        return code

    def close(self) -> None:
        """Kill it, if it is still there, and wait for its end."""
        self._process.kill()
        self._process.join()
        self.stdout.close()


def ran(folder: Path, code: str, *given: str) -> tuple[int | None, str]:
    """The exit code of a program in a folder, and what it printed; what it wrote to stderr is in the file `errors`."""
    process = Forked(python, str(folder), str(folder / "errors"), "-c", code, *given)
    printed = process.stdout.read()
    return process.end(), printed
