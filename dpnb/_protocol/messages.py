"""The messages between kernel and browser.

The kernel broadcasts ``{"dpnb": Snapshot}`` after every change, and ``{"dpnb_log": LogChunk}`` when a browser requests
a log.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from dpnb._protocol.snapshot import LogEntry
from dpnb._protocol.types import Count, Record

TARGET: Final = "dpnb.snapshot"
"""The comm target under which the browser finds a kernel process."""


class LogChunk(Record, frozen=True):
    """A part of a session's log.

    Parameters
    ----------
    version : int
        Version of the snapshot.
    process_id : str
        As in the snapshot.
    session : str
        Id of the session.
    start : int
        Number of rows of the log before these.
    total : int
        Number of rows of the log.
    rows : list of LogEntry
        Oldest first.
    """

    version: Literal[12]
    process_id: str
    session: str
    start: Count
    total: Count
    rows: list[LogEntry]


class RequestSnapshot(msgspec.Struct, frozen=True, tag="request_snapshot", tag_field="method"):
    """The browser requests a broadcast of the snapshot."""


class RequestLog(msgspec.Struct, frozen=True, tag="request_log", tag_field="method"):
    """The browser requests the whole log of a session.

    Parameters
    ----------
    session : str
        Id of the session.
    """

    session: str


class Compare(msgspec.Struct, frozen=True, tag="compare", tag_field="method"):
    """A page shows all filters and odometers of a session, which the next snapshots then contain; or no longer does.

    Parameters
    ----------
    session : str
        Id of the session.
    is_shown : bool
        Whether they are shown.
    """

    session: str
    is_shown: bool


class FollowLedgers(msgspec.Struct, frozen=True, tag="follow_ledgers", tag_field="method"):
    """A page announces that it shows the kernel, which then follows what other kernels charge; or no longer does.

    Parameters
    ----------
    page : str
        Id of the page.
    is_visible : bool
        Whether the page is visible.
    """

    page: str
    is_visible: bool


class CellScheduled(msgspec.Struct, frozen=True, tag="cell_scheduled", tag_field="method"):
    """A page announces that the server will run a cell, in a request that does not contain the id of the cell.

    Parameters
    ----------
    cell_id : str
    code : str
    """

    cell_id: str
    code: str


class CellStarted(msgspec.Struct, frozen=True, tag="cell_started", tag_field="method"):
    """A page has seen the request that runs a cell.

    Parameters
    ----------
    cell_id : str
    request_id : str
        Id of the request's message.
    """

    cell_id: str
    request_id: str


class CellEnded(msgspec.Struct, frozen=True, tag="cell_ended", tag_field="method"):
    """A cell that was announced has ended, or will not be run.

    Parameters
    ----------
    cell_id : str
    """

    cell_id: str


class Reconnect(msgspec.Struct, frozen=True, tag="reconnect", tag_field="method"):
    """A page requests that the sessions that are out of date try to reach their service now."""


class Refresh(msgspec.Struct, frozen=True, tag="refresh", tag_field="method"):
    """A picker requests a new state."""


class Release(msgspec.Struct, frozen=True, tag="release", tag_field="method"):
    """A picker requests a release.

    Parameters
    ----------
    target : dict
        The target of an option; any other target is refused in the picker's state, as is one that costs more now than
        was displayed.
    id : str
        Returned as `completed_request` in the state that shows the outcome.
    confirmed : bool
        Whether the reader has confirmed a large cost.
    """

    target: dict[str, Any]
    id: str
    confirmed: bool = False


class ReleaseCount(msgspec.Struct, frozen=True, tag="release_count", tag_field="method"):
    """A picker requests the release of the count after which its expected errors are known.

    Parameters
    ----------
    target, id, confirmed
        As in `Release`.
    """

    target: dict[str, Any]
    id: str
    confirmed: bool = False


class AskCurator(msgspec.Struct, frozen=True, tag="ask_curator", tag_field="method"):
    """A picker requests budget from the curator.

    Parameters
    ----------
    target : dict
        The target of an option of `Ask`; any other is refused in the picker's state.
    why : str
        The reason.
    id : str
        As in `Release`.
    """

    target: dict[str, Any]
    why: str
    id: str


PanelRequest = (
    RequestSnapshot | RequestLog | Compare | FollowLedgers | CellScheduled | CellStarted | CellEnded | Reconnect
)
"""What the Lab extension sends to the kernel."""

PickerRequest = Refresh | Release | ReleaseCount | AskCurator | Reconnect
"""What a picker sends to the kernel."""
