"""What curators and auditors see of tables and of the service, in a terminal and on the cockpit's page; no answers.

All texts are without control characters.  Times are ISO 8601, UTC.
"""

from __future__ import annotations

from dpnb._browser import NonNegative, Proportion, Record
from dpnb._browser.snapshot import Gauge


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


class Login(Record, frozen=True):
    """The answer to a login."""

    csrf: str  # What the page sends with every further request, beside the cookie.
    name: str  # Name of the person.
    role: str  # "owner", "curator" or "auditor".
    ends: str  # When the login ends; ISO 8601, UTC.


class TokenHolder(Record, frozen=True):
    """A person with a valid token."""

    name: str
    role: str
    created: str  # When the token was made.
    expires: str | None
    may_rotate: bool  # Whether the reader may replace and revoke it.
    may_extend: bool  # Whether the reader may let it expire at another time.


class ServiceState(Record, frozen=True):
    """Everything that the page shows but the log."""

    time: str  # ISO 8601, UTC.
    name: str  # Of the reader.
    role: str  # Of the reader.
    may_act: bool  # Whether the reader may do more than read.
    tables: list[TableState]
    tokens: list[TokenHolder]  # Empty for an auditor.


class VersionState(Record, frozen=True):
    """A version of a table."""

    name: str
    since: str | None  # Time of the first row of the ledger with it; None if there is none yet.
    requests: NonNegative  # Charged ones.
    last: str | None  # Time of the last of them.
    changes: tuple[str, ...]  # What is other than in the version before, or was changed later, in words.


class BackupState(Record, frozen=True):
    """The last copy of a ledger that `python -m dpnb backup` has made."""

    time: str
    rows: NonNegative  # Number of the last row that was copied.
    is_known: bool  # Whether that row is in the ledger; otherwise the copy is of another ledger, or of a later state.


class AuditState(Record, frozen=True):
    """An audit of a ledger that somebody started on the page."""

    actor: str
    begun: str
    ended: str | None  # None while it runs.
    is_fine: bool  # Whether it found no problem.
    text: str  # As `python -m dpnb audit` prints it.


class ReadFigure(Record, frozen=True):
    """A figure for Prometheus, to be read by a person."""

    words: str
    value: str


class RecordsPage(Record, frozen=True):
    """What is kept of a table and its ledger, and figures of its service."""

    rows: NonNegative  # Of the ledger.
    versions: tuple[VersionState, ...]  # Newest first.
    backup: BackupState | None
    audit: AuditState | None
    figures: tuple[ReadFigure, ...]  # Empty for an auditor.


class PeopleChanged(Record, frozen=True):
    """What there is after an act about an analyst of a table."""

    table: TableState
    token: str | None  # A new token of the person who came, which is not shown again; None if none was made.


class NewToken(Record, frozen=True):
    """A token, which is not shown again."""

    name: str
    token: str  # Empty if none was made.
