"""What the page shows of the records of a table: its versions, the last copy of its ledger, the last audit, figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dpnb._protocol.cockpit import AuditState, BackupState, ReadFigure, RecordsPage, VersionState
from dpnb.errors import printable
from dpnb.ledger import ChargeSummary, Ledger
from dpnb.ledger.chain import ChainHead
from dpnb.ledger.charge import REQUESTS, TABLE_FILES, VERSION
from dpnb.service.opening import OpenTable
from dpnb.session.backup import last_backup
from dpnb.session.disclosure.versions import changes

MAX_CHANGES = 100
"""Changes of a version that are listed."""


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
