"""Snapshots of every session of this process, and their logs."""

from __future__ import annotations

from dpnb._core import registry
from dpnb._protocol import snapshot as protocol
from dpnb.errors import DpnbError
from dpnb.ledger import Ledger
from dpnb.session import BaseSession, snapshot

_compared: set[str] = set()
"""Ids of the sessions whose filters and odometers a page compares."""


def live() -> list[BaseSession]:
    """Live sessions, most recently used first."""
    return [session for session in registry.sessions() if isinstance(session, BaseSession)]


def ledgers() -> list[Ledger]:
    """The ledgers of the live sessions, each once."""
    ledgers = [session._core.account.ledger for session in live()]
    return list({id(ledger): ledger for ledger in ledgers}.values())


def log(session_id: str, start: int, max_rows: int) -> tuple[int, list[protocol.LogEntry]]:
    """The number of requests in a session's ledger, and at most `max_rows` of them from `start` on, oldest first."""
    for session in live():
        if session.id == session_id:
            requests = session._core.releases.log
            total = requests.count
            lines = requests.by_id(requests.ids[start : start + max_rows])
            return total, [snapshot.log_entry(line) for line in lines]
    return 0, []


def compare(session_id: str, *, is_shown: bool) -> None:
    """Include all filters and odometers in the snapshots of a session, or no longer."""
    if is_shown:
        _compared.add(session_id)
    else:
        _compared.discard(session_id)


def reconnect() -> None:
    """Let the sessions that are out of date try to reach their service now."""
    connections = [session._core.connection for session in live()]
    for connection in {id(one): one for one in connections if one is not None and not one.is_current}.values():
        connection.refresh()


def sessions() -> list[protocol.SessionSnapshot]:
    """One snapshot for each session, most recently used first; an unreadable session does not hide the others."""
    return [_snapshot(session) for session in live()]


def _snapshot(session: BaseSession) -> protocol.SessionSnapshot:
    try:
        return snapshot.snapshot(session, compared=session.id in _compared)
    except DpnbError as error:
        return snapshot.unreadable_snapshot(session, error)
