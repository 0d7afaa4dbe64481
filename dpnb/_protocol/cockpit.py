"""What the curator's page receives from the service: tables, parts of budgets, requests and the log; no answers."""

from __future__ import annotations

from dpnb._protocol.snapshot import Gauge
from dpnb._protocol.types import NonNegative, Proportion, Record


class Login(Record, frozen=True):
    """The answer to a login."""

    csrf: str  # What the page sends with every further request, beside the cookie.
    name: str  # Name of the person.
    role: str  # "owner", "curator" or "auditor".
    ends: str  # When the login ends; ISO 8601, UTC.


class Moment(Record, frozen=True):
    """The state of a budget after a row of the ledger."""

    id: NonNegative  # Number of the row.
    time: str  # ISO 8601, UTC.
    spent: Proportion | None  # Fraction of the budget that was spent, rounded up; None without a budget.
    text: str  # The row in words.


class Amount(Record, frozen=True):
    """An amount of budget in its components, as exact decimals; None where a component is zero."""

    mu: str | None
    discovery_delta: str | None
    pure_epsilon: str | None


class BudgetPart(Record, frozen=True):
    """The part of a budget that a project or an analyst has."""

    level: str  # "project" or "analyst".
    name: str
    project: str | None  # The project of an analyst.
    ceiling: str | None  # In words; None where there is none.
    cap: str | None  # In words; None where there is none.
    # The cap as it is now, or the ceiling or budget where there is no cap; to fill the fields of a dialog with.
    limit: Amount
    spent: str  # In words.
    share: Proportion  # Fraction of the cap or ceiling that is spent, rounded up.
    headroom: Proportion  # Fraction that is left, rounded down.
    is_revoked: bool
    has_cap: bool  # Whether its cap can be moved.


class AskedQuery(Record, frozen=True):
    """A query that an analyst wants to ask."""

    words: str  # The plan in words.
    target: str  # What the analyst wants, in words.
    cost: str  # In words.
    error: str  # The expected error in words; empty where none is known.


class AskedBudget(Record, frozen=True):
    """A request for budget."""

    id: NonNegative  # Number of its row in the ledger.
    analyst: str
    time: str
    why: str  # The reason of the analyst.
    queries: list[AskedQuery]
    total: str  # What it costs, in words.
    amount: Amount  # The same as numbers.
    digest: str  # Identifies the content: a decision names it.
    state: str  # "pending", "approved", "approved in part", "declined" or "lapsed".
    decision: str | None  # The decision in words.
    after: str | None  # The analyst's cap, and what an approval makes of it, in words; None if it is decided.


class ExecutedRequest(Record, frozen=True):
    """The request that a table executes."""

    number: NonNegative  # What the act that ends it names.
    analyst: str
    call: str  # The kind of call.
    seconds: NonNegative  # For how long it has been executed.


class HeldCharge(Record, frozen=True):
    """A charge that is not answered again before a curator allows it."""

    row: NonNegative  # Number of its row in the ledger.
    analyst: str
    time: str
    words: str
    cost: str
    why: str  # Why it waits.


class CockpitTable(Record, frozen=True):
    """A table of the service."""

    name: str
    privacy_unit: str  # In words.
    guarantee: str  # In words.
    notice: str | None  # Warning that the answers are not real or not private, or that there is no budget.
    mode: str | None  # "reserved" or "pooled"; None where every analyst may use the whole budget.
    version: str  # Of the table.
    frozen: str | None  # Why it is frozen.
    gauges: list[Gauge]
    spent: str  # In words.
    spent_loss: str  # In words.
    n_rows: NonNegative  # Rows of its ledger.
    moments: list[Moment]  # Oldest first; thinned.
    parts: list[BudgetPart]  # Each project is followed by its analysts.
    requests: list[AskedBudget]  # Pending ones first.
    running: ExecutedRequest | None  # What is executed now, if for some time.
    waiting: NonNegative  # Requests that wait for their turn.
    held: list[HeldCharge]
    fault: str | None  # Why the ledger cannot be read; then the other fields are empty.


class TokenHolder(Record, frozen=True):
    """A person with a valid token."""

    name: str
    role: str
    created: str  # When the token was made.
    expires: str | None
    may_rotate: bool  # Whether the reader may replace it.


class ServiceState(Record, frozen=True):
    """Everything that the page shows but the log."""

    time: str  # ISO 8601, UTC.
    name: str  # Of the reader.
    role: str  # Of the reader.
    may_act: bool  # Whether the reader may do more than read.
    tables: list[CockpitTable]
    tokens: list[TokenHolder]  # Empty for an auditor.


class LoggedRow(Record, frozen=True):
    """A row of the ledger, without its answer."""

    id: NonNegative
    time: str
    kind: str
    status: str
    words: str
    cost: str
    actor: str | None  # Who requested it.
    has_plan: bool  # Whether it has plans, which are sent on request.


class RowPlans(Record, frozen=True):
    """The whole plans of a row."""

    plans: list[str]  # Each as indented JSON; several for a request for budget.


class LogPage(Record, frozen=True):
    """Rows of a ledger."""

    rows: list[LoggedRow]  # In order.
    more: bool  # Whether there are further rows.


class NewToken(Record, frozen=True):
    """A token, which is not shown again."""

    name: str
    token: str
