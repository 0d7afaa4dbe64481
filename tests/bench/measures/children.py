"""Functions of the benchmark in processes of their own, none of which runs for longer than it may."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

SPEED = Path(__file__).resolve().parents[1] / "speed.py"
ONE_THREAD = ("POLARS_MAX_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS")


def child(what: str, *, seconds: int = 300, one_core: bool = False, **how: Any) -> dict[str, Any]:
    """What a function of the benchmark measured in a process of its own.

    Parameters
    ----------
    what : str
        Module and function, like ``"measures.costs.costs"``; it is called with the remaining arguments.
    seconds : int
        After these it is ended; the answer is then what it `told` by then, and ``"over"``: these seconds.
    one_core : bool
        Whether the process, with polars in it, has one core and one thread.

    Returns
    -------
    dict
        With ``"error"`` if the function failed.
    """
    line = [sys.executable, str(SPEED), "--child", what, json.dumps(how)]
    environment = os.environ | (dict.fromkeys(ONE_THREAD, "1") if one_core else {})
    # A session of its own, so that ending it ends what it started too, for example a cluster.
    process = subprocess.Popen(line, stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True)
    if one_core:
        os.sched_setaffinity(process.pid, {min(os.sched_getaffinity(0))})  # before its interpreter starts a thread
    try:
        said, late = process.communicate(timeout=seconds)[0], {}
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        said, late = process.communicate()[0], {"over": seconds}
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    found = _last(said)
    if found is None:
        found = {} if late else {"error": f"its process ended with code {process.returncode}"}
    elif not late and process.returncode:
        found = {**found, "error": f"its process ended with code {process.returncode}"}
    return found | late


def _last(said: str) -> dict[str, Any] | None:
    for line in reversed(said.splitlines()):
        try:
            found = json.loads(line)
        except ValueError:
            continue  # a library's own words, or the line during which it was ended
        if isinstance(found, dict):
            return found
    return None


def tell(found: dict[str, Any]) -> None:
    """Say what was measured by now, in case that the process has to be ended."""
    print(json.dumps(found), flush=True)


def be_child(what: str, how: dict[str, Any]) -> None:
    """Call one function and answer the process that started this one."""
    module, _, function = what.rpartition(".")
    try:
        found = getattr(import_module(f"bench.{module}"), function)(**how)
    except Exception as error:  # noqa: BLE001  (a part that fails leaves the others alone)
        print(f"{what} {how}: {error!r}", file=sys.stderr)
        found = {"error": f"{type(error).__name__}: {error}"[:160]}
    tell(found)
