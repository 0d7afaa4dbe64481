"""The messages between kernel and browser.

The kernel broadcasts ``{"dpnb": Snapshot}`` after every change, and ``{"dpnb_log": LogChunk}`` when a browser requests
a log.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from dpnb._protocol.snapshot import LogEntry
from dpnb._protocol.types import NonNegative, Record

TARGET: Final = "dpnb.snapshot"
"""The comm target under which the browser finds a kernel process."""


class LogChunk(Record, frozen=True):
    """A part of a session's log."""

    version: Literal[12]  # Version of the snapshot.
    process_id: str  # As in the snapshot.
    session: str  # Id of the session.
    start: NonNegative  # Number of rows of the log before these.
    total: NonNegative  # Number of rows of the log.
    rows: list[LogEntry]  # Oldest first.


class RequestSnapshot(msgspec.Struct, frozen=True, tag="request_snapshot", tag_field="method"):
    """The browser requests a broadcast of the snapshot."""


class RequestWholeLog(msgspec.Struct, frozen=True, tag="request_log", tag_field="method"):
    """The browser requests the whole log of a session."""

    session: str  # Id of the session.


class RequestComparison(msgspec.Struct, frozen=True, tag="compare", tag_field="method"):
    """A page shows all filters and odometers of a session, which the next snapshots then contain; or no longer does."""

    session: str  # Id of the session.
    is_shown: bool  # Whether they are shown.


class FollowLedgers(msgspec.Struct, frozen=True, tag="follow_ledgers", tag_field="method"):
    """A page announces that it shows the kernel, which then follows what other kernels charge; or no longer does."""

    page: str  # Id of the page.
    is_visible: bool  # Whether the page is visible.


class CellScheduled(msgspec.Struct, frozen=True, tag="cell_scheduled", tag_field="method"):
    """A page announces that the server will run a cell, in a request that does not contain the id of the cell."""

    cell_id: str
    code: str


class CellStarted(msgspec.Struct, frozen=True, tag="cell_started", tag_field="method"):
    """A page has seen the request that runs a cell."""

    cell_id: str
    request_id: str  # Id of the request's message.


class CellEnded(msgspec.Struct, frozen=True, tag="cell_ended", tag_field="method"):
    """A cell that was announced has ended, or will not be run."""

    cell_id: str


class Reconnect(msgspec.Struct, frozen=True, tag="reconnect", tag_field="method"):
    """A page requests that the sessions that are out of date try to reach their service now."""


class Refresh(msgspec.Struct, frozen=True, tag="refresh", tag_field="method"):
    """A picker requests a new state."""


class ReleaseOption(msgspec.Struct, frozen=True, tag="release", tag_field="method"):
    """A picker requests a release."""

    # The target of an option; any other target is refused in the picker's state, as is one that costs more now than was
    # displayed.
    target: dict[str, Any]
    id: str  # Returned as `completed_request` in the state that shows the outcome.
    confirmed: bool = False  # Whether the reader has confirmed a large cost.


class ReleaseCount(msgspec.Struct, frozen=True, tag="release_count", tag_field="method"):
    """A picker requests the release of the count that its expected errors depend on; fields as in `ReleaseOption`."""

    target: dict[str, Any]
    id: str
    confirmed: bool = False


class AskCurator(msgspec.Struct, frozen=True, tag="ask_curator", tag_field="method"):
    """A picker requests budget from the curator."""

    target: dict[str, Any]  # The target of an option of `Ask`; any other is refused in the picker's state.
    why: str  # The reason.
    id: str  # As in `ReleaseOption`.


PanelRequest = (
    RequestSnapshot
    | RequestWholeLog
    | RequestComparison
    | FollowLedgers
    | CellScheduled
    | CellStarted
    | CellEnded
    | Reconnect
)
"""What the Lab extension sends to the kernel."""

PickerRequest = Refresh | ReleaseOption | ReleaseCount | AskCurator | Reconnect
"""What a picker sends to the kernel."""
