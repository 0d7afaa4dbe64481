"""Whether this process belongs to a notebook: what one person may see is not to be shown where an analyst works.

It keeps a curator from a mistake, such as ``!python -m dpnb statement`` in a cell, whose output would stay in the
notebook.  It does not keep out somebody who means to get round it: who can read the table and the ledger can work out
what this shows.  Against them only the files' permissions help.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from dpnb.errors import DpnbError

VARIABLES = ("JPY_PARENT_PID", "JPY_SESSION_NAME")
"""Jupyter gives them to its kernels, and what a kernel starts inherits them."""

LAUNCHERS = {"ipykernel", "ipykernel_launcher", "colab_kernel_launcher"}
CONNECTION = re.compile(r"kernel-[0-9a-f-]+\.json")
"""The file that a kernel of any language is told to read."""

PROCESSES = Path("/proc")
MOST_ANCESTORS = 100


def kernel_around() -> str | None:
    """By what this process is known to be a notebook's kernel, or to be started from one, in words; None if by nothing.

    A machine without ``/proc`` does not tell whose child a process is; there the variables have to do.
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
    """Refuse a curator's command where an analyst works.

    Parameters
    ----------
    command : str
        Of ``python -m dpnb``.
    why : str
        Why a notebook must not show it.
    error : type
        The error to raise.

    Raises
    ------
    DpnbError
        Of that type.
    """
    around = kernel_around()
    if around is not None:
        raise error(
            f"{command}: must be run outside notebooks, because {why}; {around}; open a terminal of the curator's own, "
            f"outside Jupyter, and run python -m dpnb {command} there"
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
    """0 where nobody can tell."""
    try:
        lines = (PROCESSES / str(process) / "status").read_text(encoding="utf-8", errors="replace").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("PPid:"))
    except (OSError, StopIteration, ValueError, IndexError):
        return 0
