"""Every session of this process as the browser's contract describes them."""

from __future__ import annotations

from typing import Any

from dpnb.errors import DpnbError
from dpnb.session import Session, live, state


def log(session_id: str, start: int, most: int) -> tuple[int, list[dict[str, Any]]]:
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
    for session in live.sessions():
        if session.id == session_id:
            requests = session._releases.log
            total = requests.count
            lines = requests.named(requests.ids[start : start + most])
            return total, [state.line(line) for line in lines]
    return 0, []


def sessions() -> list[dict[str, Any]]:
    """One snapshot a session, most recently used first; one that cannot be read hides no other."""
    return [_told(session) for session in live.sessions()]


def _told(session: Session) -> dict[str, Any]:
    try:
        return state.snapshot(session)
    except DpnbError as error:
        return state.unreadable(session, error)
