"""Snapshots of every session of this process, and their logs."""

from __future__ import annotations

from dpnb._core import registry
from dpnb._protocol import snapshot as protocol
from dpnb.errors import DpnbError
from dpnb.session import BaseSession, snapshot


def live() -> list[BaseSession]:
    """Live sessions, most recently used first."""
    return [session for session in registry.sessions() if isinstance(session, BaseSession)]


def log(session_id: str, start: int, most: int) -> tuple[int, list[protocol.LogEntry]]:
    """How many requests a session's ledger holds, and some of them, oldest first.

    Parameters
    ----------
    session_id : str
        As in its snapshot.
    start : int
        How many to leave out.
    most : int
        How many to return at most.
    """
    for session in live():
        if session.id == session_id:
            requests = session._core.releases.log
            total = requests.count
            lines = requests.named(requests.ids[start : start + most])
            return total, [snapshot.log_entry(line) for line in lines]
    return 0, []


def sessions() -> list[protocol.Session]:
    """One snapshot a session, most recently used first; one that cannot be read hides no other."""
    return [_snapshot(session) for session in live()]


def _snapshot(session: BaseSession) -> protocol.Session:
    try:
        return snapshot.snapshot(session)
    except DpnbError as error:
        return snapshot.unreadable_snapshot(session, error)
