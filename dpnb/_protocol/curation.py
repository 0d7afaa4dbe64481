"""A table as curators and auditors see it, in a terminal and on the cockpit's page; no answers.

All texts are without control characters.  Times are ISO 8601, UTC.
"""

from __future__ import annotations

from dpnb._protocol.snapshot import Gauge
from dpnb._protocol.types import NonNegative, Proportion, Record


class Amount(Record, frozen=True):
    """An amount of budget; all its fields are rounded up where it is a cost, and down where it is a limit."""

    words: str  # To a few digits.
    mu: str | None  # An exact decimal; None where the component is zero.
    discovery_delta: str | None
    pure_epsilon: str | None


class Moment(Record, frozen=True):
    """The state of a budget after a row of the ledger."""

    id: NonNegative  # Number of the row.
    time: str
    spent: Proportion | None  # Fraction of the budget that was spent, rounded up; None without a budget.
    text: str  # The row in words.


class PartState(Record, frozen=True):
    """The part of the budget of a project or an analyst."""

    level: str  # "project" or "analyst".
    name: str
    project: str | None  # The project of an analyst.
    ceiling: Amount | None
    cap: Amount | None
    limit: Amount  # The cap as it is now, or the ceiling or budget where there is no cap.
    spent: Amount
    share: Proportion  # Fraction of the ceiling that is spent, in pooled mode of the cap or the budget; rounded up.
    headroom: Proportion  # Fraction of the same that is left within all limits of the part itself; rounded down.
    is_revoked: bool  # Whether it can no longer be charged.
    has_cap: bool  # Whether its cap can be moved.
    of: Amount  # What a cap is a share of: the ceiling, in pooled mode the cap of the project or the budget.
    cap_share: Proportion | None  # The share that the cap is of each component, rounded down; None also for others.
    spent_share: Proportion  # The share that is spent, of the largest component; rounded up.
    is_removed: bool = False  # Whether its analyst can no longer open the table.
    is_unused: bool = False  # Whether it can be handed over: in reserved mode, an analyst's own, nothing charged.
    free: Proportion | None = None  # Of a reserved project: the fraction that is left for further ceilings.


class RequestedQueryState(Record, frozen=True):
    """A query of a request for budget."""

    words: str  # The plan in words.
    target: str  # What the analyst wants, in words.
    cost: Amount
    error: str  # The expected error in words; empty where none is known.


class RequestState(Record, frozen=True):
    """A request for budget, and what was decided."""

    number: NonNegative  # Of its row in the ledger.
    analyst: str
    time: str
    why: str  # The reason of the analyst.
    queries: tuple[RequestedQueryState, ...]
    total: Amount  # The sum of the costs.
    largest: Amount  # The largest decimals that an approval can grant: the sum, rounded down.
    digest: str  # Identifies the content: a decision names it.
    status: str  # "pending", "approved", "approved in part", "declined" or "lapsed".
    spent: Amount | None = None  # Of the analyst's part; None once it is decided, like the next two.
    cap: Amount | None = None  # Of the analyst now; None also for none.
    cap_after: Amount | None = None  # After an approval of all that was requested.
    decided_by: str | None = None
    decided: str | None = None
    until: str | None = None  # When the approval lapses.
    granted: Amount | None = None  # What the approval added to the cap.
    reason: str = ""  # The curator's.


class RunningState(Record, frozen=True):
    """The request that a table executes."""

    number: NonNegative  # Since the service started; the act that ends it names it.
    analyst: str
    call: str  # The kind of call.
    seconds: NonNegative  # For how long it has been executed.


class HeldState(Record, frozen=True):
    """A charge that is not answered again before a curator allows it."""

    row: NonNegative  # Number of its row in the ledger, which the act names.
    analyst: str
    time: str
    words: str  # What was requested.
    cost: str
    why: str  # Why it waits.


class TableState(Record, frozen=True):
    """A table of the service."""

    name: str
    privacy_unit: str  # In words.
    guarantee: str  # In words.
    notice: str | None  # Warning that the answers are not real or not private, or that there is no budget.
    version: str  # Of the table.
    mode: str | None = None  # "reserved" or "pooled"; None where every analyst may use the whole budget.
    frozen: str | None = None  # Why it is frozen.
    gauges: tuple[Gauge, ...] = ()
    headroom: Proportion | None = None  # Fraction of the budget that is left, rounded down; None without a budget.
    spent: str = "unknown"  # In words.
    spent_loss: str = ""  # In words.
    free: Proportion | None = None  # In reserved mode, the fraction that is left for further ceilings; rounded down.
    rows: NonNegative = 0  # Number of rows of the ledger.
    head: str = ""  # Hash of the last row.
    moments: tuple[Moment, ...] = ()  # Oldest first; thinned.
    parts: tuple[PartState, ...] = ()  # Each project is followed by its analysts.
    requests: tuple[RequestState, ...] = ()  # Pending, oldest first; then at most 100 decided, newest first.
    running: RunningState | None = None
    waiting: NonNegative = 0  # Number of requests that wait for their turn.
    held: tuple[HeldState, ...] = ()  # Oldest first, at most 100.
    fault: str | None = None  # Why the ledger cannot be read; then the fields with defaults are left at these.


class AuditRow(Record, frozen=True):
    """A row of the ledger, without its answer."""

    id: NonNegative  # Number of the row.
    time: str
    kind: str
    node: str
    status: str  # "released", "reserved" or "failed"; of a request for budget as in `RequestState`; else "recorded".
    words: str  # What was requested.
    cost: str  # In words.
    hash: str  # Chained to the row before.
    actor: str | None  # Who requested it; None in a local session.
    has_plan: bool  # Whether it has plans, which are sent on request.


class AuditPage(Record, frozen=True):
    """Rows of a ledger."""

    rows: tuple[AuditRow, ...]  # In order.
    more: bool = False  # Whether there are further rows.


class PlanPage(Record, frozen=True):
    """The whole plans of a row."""

    row: NonNegative  # Number of the row.
    plans: tuple[str, ...]  # Each with its arguments, as indented JSON; several for a request for budget.
