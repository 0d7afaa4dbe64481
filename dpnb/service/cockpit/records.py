"""Audits that are started on the page, and what it shows of the records of a table.

An audit is a process of its own, ``python -m dpnb audit``, which reads a copy of the ledger: however long it takes,
analysts do not wait for it, nor for the interpreter's lock.  One runs at a time.  The results are kept until the
service ends.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from dpnb._browser.curation import AuditState, BackupState, ReadFigure, RecordsPage, VersionState
from dpnb.copying import NotCopyable
from dpnb.errors import printable
from dpnb.ledger import ChargeSummary, Ledger
from dpnb.ledger.chain import ChainHead
from dpnb.ledger.charge import REQUESTS, TABLE_FILES, VERSION
from dpnb.service.monitoring import log
from dpnb.service.opening import OpenTable
from dpnb.session.backup import last_backup
from dpnb.session.disclosure.requests import changes

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


MAX_CHANGES = 100
"""Changes of a version that are listed."""


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


def records(table: OpenTable, audit: AuditState | None, figures: Sequence[tuple[str, str]]) -> RecordsPage:
    """The records of a table, with its last audit and figures; reads the ledger."""
    ledger = table.session.ledger
    with ledger.lock.checked():
        rows, versions, backup = ledger.count, _versions(ledger, table.session._core.version), _backup(ledger)
    return RecordsPage(rows, versions, backup, audit, tuple(ReadFigure(*one) for one in figures))


def _backup(ledger: Ledger) -> BackupState | None:
    found = last_backup(ledger.path)
    if found is None:
        return None
    is_known = found.rows <= ledger.count and ledger.has(ChainHead(found.rows, found.head))
    return BackupState(printable(found.time), max(found.rows, 0), is_known)


def _versions(ledger: Ledger, current: str) -> tuple[VersionState, ...]:
    """The versions in the order of their first rows, and then the current one if it has none; newest first."""
    by_version: dict[str, list[ChargeSummary]] = {}
    for row in ledger.summaries():
        by_version.setdefault(row.table_version, []).append(row)
    times, names = ledger.times(), list(by_version)
    states = []
    for number, (name, rows) in enumerate(by_version.items()):
        before = by_version[names[number - 1]] if number else []
        changed = tuple(map(printable, _changes(ledger, times, before, rows)))[:MAX_CHANGES]
        requests = [times[row.id] for row in rows if row.kind in REQUESTS]
        last = requests[-1] if requests else None
        states.append(VersionState(printable(name), times[rows[0].id], len(requests), last, changed))
    if current not in by_version:
        states.append(VersionState(printable(current), None, 0, None, ()))
    return tuple(reversed(states))


def _changes(
    ledger: Ledger, times: dict[int, str], before: list[ChargeSummary], rows: list[ChargeSummary]
) -> Iterator[str]:
    """What is other than in the version before, or was changed later: the data, where recorded, and the declaration."""
    then, now = _contents(before), _contents(rows)
    if then is not None and now is not None:
        yield "the data are the same" if then == now else "the data are other ones"
    for row in rows:
        if row.kind == VERSION:
            words = changes(ledger.declared_before(row.id), ledger.declared_before(row.id + 1))
            yield from (f"{times[row.id][:10]}: {one}" for one in words)


def _contents(rows: list[ChargeSummary]) -> Any:
    """The digests of the data that were recorded for a version; None for none."""
    return next((row.launch for row in rows if row.kind == TABLE_FILES), None)
