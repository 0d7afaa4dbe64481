"""The public state of every session of a kernel process.

Computed from schema, plan, budget, ledger and released answers.  The browser displays it and performs no privacy
computation.
"""

from __future__ import annotations

from typing import Final, Literal

from dpnb._browser import NonNegative, Proportion, Record

OUT_OF_DATE: Final = "out-of-date"
"""Id of the explanation of a `connection` that is not current."""


class ConnectionSnapshot(Record, frozen=True):
    """The connection of a session to the service that has its table."""

    where: str  # Where the table is, in words, for example "on the curator's server, https://dp.example.org".
    # Whether the figures of the session include everything that the service has charged, as far as is known.
    is_current: bool
    text: str  # The state in words: "up to date", or since when and why it is not, and what happens next.


class BudgetAxis(Record, frozen=True):
    """The part of a timeline that shows the budget."""

    label: str
    text: str  # More about it in words; may be empty.


class OdometerAxis(Record, frozen=True):
    """The part of a timeline that shows the odometers."""

    label: str
    # The value at which the scale ends, unless a curve exceeds it; None where the curves alone determine the scale.
    end: float | None
    text: str  # What the scale and the curves mean.


class Curve(Record, frozen=True):
    """One odometer of a timeline."""

    id: str  # Stable name, unique within a timeline.
    label: str


class TimelinePoint(Record, frozen=True):
    """The state of a session at one moment."""

    id: NonNegative  # Number of the last request before this moment; 0 is before the first request.
    spent: Proportion | None  # Fraction of the budget that was spent; None without a budget, for all points.
    bounds: list[float | None]  # What each curve reported, in the order of the curves; None where it reported nothing.
    text: str  # The request in words.


class TimelineChart(Record, frozen=True):
    """The budget and the odometers from request to request; thinned by the kernel, so not every request has a point."""

    budget: BudgetAxis
    odometers: OdometerAxis
    curves: list[Curve]
    points: list[TimelinePoint]  # Oldest first; each has one bound for every curve.


VERSION: Final = 12
"""Of the snapshot; raised when a field is renamed, removed or changes its meaning."""

ODOMETERS_PAUSED: Final = "odometers-paused"
"""Id of the explanation of a session's `odometers_paused`."""

EXCLUDED_UNITS: Final = "excluded-units"
"""Id of the explanation of a session's `participation`."""


class Gauge(Record, frozen=True):
    """A fraction between 0 and 1, with its meaning in words."""

    id: str  # Stable name, unique within a session.
    label: str
    # "remaining": a dial of the budget that is left, whose colour warns when little is left. "loss": the reading of an
    # odometer on a neutral scale of its own. "no-budget": there is no budget, which is a warning. Others are drawn as a
    # neutral dial.
    kind: str
    value: Proportion | None  # None where there is no scale: then only the text is shown.
    text: str  # The value in words, for example "83.0% left".
    # The end of the scale in words, for example "2.616 when the budget is spent"; None where it is 100%.
    end: str | None
    note: str | None  # A sentence that is always shown, which states what the value means; None where it needs none.
    description: str  # A full sentence, for hovering and for screen readers.


class FilterReading(Record, frozen=True):
    """The budget that would remain under one filter after the same history."""

    id: str  # Stable name, unique within a session.
    label: str
    enforced: bool  # Whether this filter is enforced; the others are shown for comparison.
    value: Proportion  # Fraction of its budget that remains; 0 after it would have refused.
    text: str  # What remains in words, for example "83.3% left; 12 more like the last".
    description: str  # A full sentence, for hovering and for screen readers.


class OdometerReading(Record, frozen=True):
    """What one odometer reports about the loss so far."""

    id: str  # Stable name, unique within a session.
    label: str
    kind: str  # How its bound may be used: "time-uniform" or "accumulator". Others are shown by name only.
    text: str  # The bound in words, for example "mu 0.2117".
    description: str  # A full sentence that states what the bound proves.


class Part(Record, frozen=True):
    """One part of an interactive mechanism."""

    name: str
    value: Proportion  # What it has spent, relative to the part with the largest loss.
    text: str  # What it has spent in words, for example "4.0% (mu 0.2)".


class Mechanism(Record, frozen=True):
    """An interactive mechanism: a partition, a sub-session and so on."""

    id: str  # Stable name, unique within a session.
    name: str
    kind: str  # The kind in words, for example "partition".
    # "open", "exhausted", "closed" or "unavailable" (its hidden noise is in another kernel, or gone). Others are shown
    # by name only.
    state: str
    text: str  # Its state and its cost, in words.
    description: str  # Full sentences, for hovering and for screen readers.
    parts: list[Part]  # Empty where the mechanism has no parts.


class Headline(Record, frozen=True):
    """A session's state in a few words, for the status bar."""

    id: str  # "remaining", "spent", "odometer" or "max_repetitions"; a session may lack any of them.
    text: str


class NextStep(Record, frozen=True):
    """A suggested next step for a session that has released nothing."""

    text: str
    code: str  # A line of Python.


class LogEntry(Record, frozen=True):
    """One request of the ledger."""

    id: NonNegative
    query: str  # Exact, in words.
    title: str  # As a reader says it: without code as far as there are words for it.
    cost: str  # In words, for example "mu 0.05".
    mu: float  # The cost as a number, to sort by.
    cost_fraction: str | None  # The cost as a fraction of the whole budget, in words; None without a budget.
    # The released answer in words: a number with its interval, or how many groups there are; None without an answer.
    estimate: str | None
    # The number; None, as are the ends of its interval, unless the answer is one number, and if they are not finite.
    value: float | None
    low: float | None
    high: float | None
    # Half-width of the interval in words; None without an answer, or if there is no single half-width.
    error: str | None
    time: str  # ISO 8601, UTC.
    status: str
    cell_id: str | None  # Id of the notebook cell that made the request; None when none did.


class CellBadge(Record, frozen=True):
    """What one notebook cell cost."""

    cell_id: str
    text: str
    description: str  # A full sentence, for hovering and for screen readers.


class Refusal(Record, frozen=True):
    """A request that was refused; nothing was charged for it."""

    id: NonNegative
    query: str  # In words.
    message: str
    explanation: str  # Id of the explanation.
    time: str  # ISO 8601, UTC.
    cell_id: str | None  # Id of the notebook cell that made the request; None when none did.


class BudgetRequestEntry(Record, frozen=True):
    """A request to the curator of a service for a larger cap."""

    id: NonNegative
    queries: list[str]  # The queries in words, with target and expected error.
    cost: str  # What they cost together.
    why: str  # The analyst's reason.
    status: Literal["pending", "approved", "approved-in-part", "declined", "lapsed"]
    # What was decided, in words: what was granted, until when, and the curator's reason; None while it is pending.
    decision: str | None
    time: str  # ISO 8601, UTC.
    analyst: str | None  # Who requests it, where analysts share a budget; None otherwise.


class ExplanationText(Record, frozen=True):
    """The explanation of a refusal or a warning."""

    id: str  # Stable name, used in links.
    title: str
    text: str


class SessionSnapshot(Record, frozen=True):
    """The public state of one session."""

    id: str
    name: str
    privacy_unit: str  # In words.
    engine: str  # Name of the engine that holds the table's rows, for example "DuckDB"; "memory" for none.
    # Warning that the answers are not real or not private, or that there is no budget; None otherwise.
    notice: str | None
    notice_explanation: str | None  # Id of the explanation of `notice`; None when there is no notice.
    connection: ConnectionSnapshot | None  # None if the table is in the kernel.
    guarantee: str  # Exact, in words.
    promise: (
        str  # The guarantee for a reader who knows none of its terms; the guarantee itself where there is no budget.
    )
    headlines: list[Headline]  # The first replaces a selected headline that is absent.
    filter: str  # Id of the filter that is enforced; "none" without a budget.
    gauges: list[Gauge]
    # The enforced one; after `RequestComparison`, the others too.  Empty without a budget.
    filters: list[FilterReading]
    # The session's own; after `RequestComparison`, the others too, as in the timeline.
    odometers: list[OdometerReading]
    odometers_paused: str | None  # Why the time-uniform odometers have stopped; None while they go on.
    is_compared: bool  # Whether the others are included, or there are none to be computed.
    participation: str | None  # Which units take part, under individual accounting; None under worst-case accounting.
    mechanisms: list[Mechanism]  # In display order, except that open mechanisms come first.
    spent: str  # The share of the budget that is spent, in words, for example "6.7% spent"; without a budget, the loss.
    # The loss and the budget in the filter's measure, for example "mu 0.1158 of 0.4483"; "no budget" without one; empty
    # where unknown.
    spent_loss: str
    ledger: str  # Name of the ledger's file.
    next_steps: list[NextStep]  # Empty as soon as something was released.
    timeline: TimelineChart
    n_requests: NonNegative  # Number of requests in the ledger; `log` may contain only the newest of them.
    log: list[LogEntry]  # Newest first.
    cell_costs: list[CellBadge]  # Cells that cost nothing are left out.
    refusals: list[Refusal]  # Newest first.
    budget_requests: list[BudgetRequestEntry]  # Newest first.


class Snapshot(Record, frozen=True):
    """The state of all sessions of one kernel process."""

    version: Literal[12]  # Version of the protocol; the browser displays no other.
    process_id: str  # Opaque id; a different value means that the kernel process was replaced.
    seq: NonNegative  # Increases with every message of one process.
    time: str  # ISO 8601, UTC.
    sessions: list[SessionSnapshot]  # The most recently used first.
    explanations: list[ExplanationText]  # Of refusals and warnings.
