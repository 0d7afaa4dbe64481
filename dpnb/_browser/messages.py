"""The messages between kernel and browser, and the state of a budget picker.

The state of a picker contains cost and expected error of every option of the slider, so that the browser looks them up
and performs no privacy computation.

The kernel broadcasts ``{"dpnb": Snapshot}`` after every change, and ``{"dpnb_log": LogChunk}`` when a browser requests
a log.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from dpnb._browser import NonNegative, Proportion, Record
from dpnb._browser.snapshot import LogEntry

VERSION: Final = 7
"""Of the picker's state; raised when a field is renamed, removed or changes its meaning."""


class Option(Record, frozen=True):
    """One position of the slider: a target, with cost and expected error of its release."""

    # Sent back when the option is chosen, for example ``{"mu": "0.24", "at_most": "36/625"}``: the argument first, and
    # the cost as mu squared, which the release must not exceed.
    target: dict[str, str]
    cost: str  # What it costs as a percentage of the budget, in words; without a budget, as a loss.
    loss: str  # The loss of the answer, including earlier observations, for example "mu 0.24".
    confirm: str | None  # What the reader must confirm before the release; None if the cost is small.
    error: str  # The expected error in words, with its unit; of `errors`, what they are and assume.
    # The expected errors of many statistics as a table, whose first row is its head; None where `error` has them.
    errors: list[list[str]] | None
    # The expected error of the worst group as a number; None where it is not known or the units are mixed.
    error_value: float | None
    # For a refinement, the error that one release at the total loss would have had, in words; None if it is unknown.
    in_one_release: str | None
    relative_error: str | None  # The error relative to the current answer, in words.
    after: str  # The budget that would remain, in words; without a budget, the loss so far with this release.
    remaining: Proportion | None  # Fraction of the budget that would remain; None without a budget.
    # How many more queries at this cost would fit afterwards, in words; None without a budget.
    max_repetitions: str | None


class Preset(Record, frozen=True):
    """A button that moves the slider to one option."""

    id: str
    label: str
    meaning: str
    error: str  # The expected error in few words, without what it assumes.
    option: NonNegative  # Index of the option.


class CountStep(Record, frozen=True):
    """The count of rows to release first, after which the expected errors are known."""

    text: str  # Why the expected error is unknown.
    label: str  # Text of the button, with the cost as a percentage of the budget.
    loss: str | None  # The loss of the count; None if it was charged already.
    target: dict[str, str]  # Sent back when the button is pressed.
    confirm: str | None  # As in `Option`.


class Unanswered(Record, frozen=True):
    """A release that was charged and never answered; repeating it is free."""

    target: dict[str, str]
    label: str


class PickerRefusal(Record, frozen=True):
    """Why the last release was refused, with an explanation."""

    title: str
    message: str
    explanation: str  # Id of the explanation.
    text: str


class AskOption(Record, frozen=True):
    """A precision that the curator can be asked for."""

    target: dict[str, str]  # Sent back when it is chosen.
    label: str  # Expected error and cost, in words.


class Ask(Record, frozen=True):
    """What an analyst can ask the curator of a service for."""

    options: list[AskOption]  # From the cheapest to the most precise; at least one.
    start: NonNegative  # Index of the option that is selected at first.
    max_characters: NonNegative  # Of the reason.


class RenderedAnswer(Record, frozen=True):
    """An answer as dpnb renders and escapes it."""

    html: str
    text: str
    hint: str | None  # How to get the answer again in code, in words.


class PickerState(Record, frozen=True):
    """The state of a budget picker."""

    version: Literal[7]  # Version of the state; the browser displays no other.
    phase: Literal["choosing", "answered"]  # "choosing", or "answered" once the answer is shown instead of the slider.
    query: str  # The query in words.
    notice: str | None  # As in the session's snapshot.
    session: str  # Name of the session.
    current: str | None  # The current precision of the answer; None before the first release.
    answer: RenderedAnswer | None  # The current answer.
    refusal: PickerRefusal | None
    unanswered: list[Unanswered]
    # Id, assigned by the browser, of the release whose outcome this state is the first to show.
    completed_request: str | None
    # From the cheapest to the whole remaining budget; empty when nothing remains or a count comes first. Without
    # a budget, up to a fixed loss.
    options: list[Option]
    presets: list[Preset]
    start: NonNegative  # Index of the option that is selected at first.
    facts: list[str]  # Facts that apply to every option.
    # The count to release first; None if the expected errors are known, or if a count is not enough.
    count_step: CountStep | None
    count_answer: RenderedAnswer | None  # The count that was released here.
    ask: Ask | None  # What the curator can be asked for; None unless a cap leaves less than the budget.
    asked: str | None  # The request that was made here, in words; None before one.


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
