"""Audits of ledgers that are started on the page, each in a process of its own.

It is ``python -m dpnb audit``, which reads a copy of the ledger: however long it takes, analysts do not wait for it,
nor for the interpreter's lock.  One runs at a time.  The results are kept until the service ends.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from dpnb._protocol.cockpit import AuditState
from dpnb.copying import NotCopyable
from dpnb.errors import printable
from dpnb.service.monitoring.log import log
from dpnb.service.opening import OpenTable

MOST_SECONDS = 3600
"""After which an audit is ended."""

MOST_CHARACTERS = 50_000
"""Of a result."""

NICE = 10
"""By how much an audit yields to the requests of analysts."""

ENVIRONMENT = re.compile(r"PATH|HOME|TMPDIR|TZ|LANG|LC_\w+|LD_\w+|PYTHON\w*|VIRTUAL_ENV")
"""What an audit gets of the environment: never tokens, and never the credentials of databases."""

FINE, PROBLEMS = 0, 1
"""The exit codes of an audit that came to its end."""


class Audits(NotCopyable):
    """The last audit of each table; call in the event loop."""

    def __init__(self) -> None:
        self._last: dict[str, AuditState] = {}
        self._tasks = set[asyncio.Task[None]]()
        self._turn = asyncio.Semaphore(1)

    def last(self, table: str) -> AuditState | None:
        """The audit that runs, or the last one."""
        return self._last.get(table)

    def start(self, table: OpenTable, actor: str) -> bool:
        """Start an audit, unless one of the table runs; returns whether it was started."""
        known = self._last.get(table.name)
        if known is not None and known.ended is None:
            return False
        self._last[table.name] = AuditState(actor, _now(), None, is_fine=False, text="")
        path = os.path.realpath(table.session.ledger.path)
        task = asyncio.get_running_loop().create_task(self._run(table.name, path))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return True

    def end(self) -> None:
        """End those that run."""
        for task in self._tasks:
            task.cancel()

    async def _run(self, table: str, path: str) -> None:
        code, text = 2, "The audit was ended before it had a result."
        try:
            async with self._turn, asyncio.timeout(MOST_SECONDS):
                code, text = await _audited(path)
        except (OSError, TimeoutError) as error:
            text = f"The audit failed: {type(error).__name__}."
        finally:
            begun = self._last[table]
            shown = "\n".join(map(printable, text[:MOST_CHARACTERS].splitlines()))
            self._last[table] = msgspec.structs.replace(begun, ended=_now(), is_fine=code == FINE, text=shown)
            log("audited", actor=begun.actor, table=table, is_fine=code == FINE, page="cockpit")


async def _audited(path: str) -> tuple[int, str]:
    """The exit code of an audit, and what it printed."""
    # The folder of this package is the first in which the process looks for one.
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "dpnb", "audit", path),
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
        cwd=Path(__file__).parents[3],
        env={name: value for name, value in os.environ.items() if ENVIRONMENT.fullmatch(name)},
        start_new_session=True,  # a Ctrl-C in the terminal of the service is for the service
    )
    try:
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, process.pid, NICE)
        printed, fault = await process.communicate()
    finally:
        await _ended(process)
    code = process.returncode or 0
    return code, (printed if code in (FINE, PROBLEMS) else fault).decode("utf-8", "backslashreplace")


async def _ended(process: Process) -> None:
    if process.returncode is None:
        process.kill()
        await process.wait()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
