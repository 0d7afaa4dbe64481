"""Detect whether this process belongs to a notebook, where a curator's output must not be shown.

This protects a curator against mistakes, such as ``!python -m dpnb statement`` in a cell, whose output would stay in
the notebook.  It does not protect against somebody who circumvents it: anyone who can read the table and the ledger can
compute what the commands show.  Only the files' permissions prevent that.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from dpnb.errors import DpnbError

VARIABLES = ("JPY_PARENT_PID", "JPY_SESSION_NAME")
"""Environment variables that Jupyter sets for its kernels, and that their child processes inherit."""

LAUNCHERS = {"ipykernel", "ipykernel_launcher", "colab_kernel_launcher"}
CONNECTION = re.compile(r"kernel-[0-9a-f-]+\.json")
"""Name of the connection file that is passed to a kernel of any language."""

PROCESSES = Path("/proc")
MOST_ANCESTORS = 100


def kernel_evidence() -> str | None:
    """The evidence, in words, that this process is a notebook kernel or was started from one; None if there is none.

    Without ``/proc`` the parent processes are unknown, and only the environment variables are checked.
    """
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if any(cls.__name__ == "ZMQInteractiveShell" for cls in type(shell).__mro__):
        return "this process is a kernel"
    for name in VARIABLES:
        if name in os.environ:
            return f"a kernel started this process: {name} is set"
    process = os.getppid()
    for _ in range(MOST_ANCESTORS):
        if process <= 1:
            break
        if _is_kernel(_arguments(process)):
            return f"a kernel, process {process}, started this one"
        process = _parent(process)
    return None


def refuse_in_kernel(command: str, why: str, error: type[DpnbError]) -> None:
    """Raise `error` if the process belongs to a notebook, which must not show a command's output; `why` says why."""
    evidence = kernel_evidence()
    if evidence is not None:
        raise error(
            f"{command}: must be run outside notebooks, because {why}; {evidence}; run python -m dpnb {command} in the "
            "curator's own terminal, outside Jupyter"
        )


def _is_kernel(arguments: list[str]) -> bool:
    names = [Path(argument).name for argument in arguments]
    return any(name.removesuffix(".py") in LAUNCHERS or CONNECTION.fullmatch(name) for name in names)


def _arguments(process: int) -> list[str]:
    try:
        return (PROCESSES / str(process) / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


def _parent(process: int) -> int:
    """Id of the parent process; 0 if it is unknown."""
    try:
        lines = (PROCESSES / str(process) / "status").read_text(encoding="utf-8", errors="replace").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("PPid:"))
    except (OSError, StopIteration, ValueError, IndexError):
        return 0
