"""What the curator's page receives from the service: tables, parts of budgets, requests and the log; no answers."""

from __future__ import annotations

from dpnb._protocol.snapshot import Gauge
from dpnb._protocol.types import NonNegative, Proportion, Record


class Login(Record, frozen=True):
    """The answer to a login.

    Parameters
    ----------
    csrf : str
        What the page sends with every further request, beside the cookie.
    name : str
        Name of the person.
    role : str
        "owner", "curator" or "auditor".
    ends : str
        When the login ends; ISO 8601, UTC.
    """

    csrf: str
    name: str
    role: str
    ends: str


class Moment(Record, frozen=True):
    """The state of a budget after a row of the ledger.

    Parameters
    ----------
    id : int
        Number of the row.
    time : str
        ISO 8601, UTC.
    spent : float or None
        Fraction of the budget that was spent, rounded up; None without a budget.
    text : str
        The row in words.
    """

    id: NonNegative
    time: str
    spent: Proportion | None
    text: str


class Amount(Record, frozen=True):
    """An amount of budget in its components, as exact decimals; None where a component is zero.

    Parameters
    ----------
    mu, discovery_delta, pure_epsilon : str or None
    """

    mu: str | None
    discovery_delta: str | None
    pure_epsilon: str | None


class BudgetPart(Record, frozen=True):
    """The part of a budget that a project or an analyst has.

    Parameters
    ----------
    level : str
        "project" or "analyst".
    name : str
    project : str or None
        The project of an analyst.
    ceiling, cap : str or None
        In words; None where there is none.
    limit : Amount
        The cap as it is now, or the ceiling or budget where there is no cap; to fill the fields of a dialog with.
    spent : str
        In words.
    share : float
        Fraction of the cap or ceiling that is spent, rounded up.
    headroom : float
        Fraction that is left, rounded down.
    is_revoked : bool
    has_cap : bool
        Whether its cap can be moved.
    """

    level: str
    name: str
    project: str | None
    ceiling: str | None
    cap: str | None
    limit: Amount
    spent: str
    share: Proportion
    headroom: Proportion
    is_revoked: bool
    has_cap: bool


class AskedQuery(Record, frozen=True):
    """A query that an analyst wants to ask.

    Parameters
    ----------
    words : str
        The plan in words.
    target : str
        What the analyst wants, in words.
    cost : str
        In words.
    error : str
        The expected error in words; empty where none is known.
    """

    words: str
    target: str
    cost: str
    error: str


class AskedBudget(Record, frozen=True):
    """A request for budget.

    Parameters
    ----------
    id : int
        Number of its row in the ledger.
    analyst, time, why : str
        Who asked when, and why.
    queries : list of AskedQuery
    total : str
        What it costs, in words.
    amount : Amount
        The same as numbers.
    digest : str
        Identifies the content: a decision names it.
    state : str
        "pending", "approved", "approved in part", "declined" or "lapsed".
    decision : str or None
        The decision in words.
    after : str or None
        The analyst's cap, and what an approval makes of it, in words; None if it is decided.
    """

    id: NonNegative
    analyst: str
    time: str
    why: str
    queries: list[AskedQuery]
    total: str
    amount: Amount
    digest: str
    state: str
    decision: str | None
    after: str | None


class ExecutedRequest(Record, frozen=True):
    """The request that a table executes.

    Parameters
    ----------
    number : int
        What the act that ends it names.
    analyst, call : str
        Who sent it, and the kind of call.
    seconds : int
        For how long it has been executed.
    """

    number: NonNegative
    analyst: str
    call: str
    seconds: NonNegative


class HeldCharge(Record, frozen=True):
    """A charge that is not answered again before a curator allows it.

    Parameters
    ----------
    row : int
        Number of its row in the ledger.
    analyst, time, words, cost, why : str
        Who requested what when, at which cost, and why it waits.
    """

    row: NonNegative
    analyst: str
    time: str
    words: str
    cost: str
    why: str


class CockpitTable(Record, frozen=True):
    """A table of the service.

    Parameters
    ----------
    name : str
    privacy_unit, guarantee : str
        In words.
    notice : str or None
        Warning that the answers are not real or not private, or that there is no budget.
    mode : str or None
        "reserved" or "pooled"; None where every analyst may use the whole budget.
    version : str
        Of the table.
    frozen : str or None
        Why it is frozen.
    gauges : list of Gauge
    spent, spent_loss : str
        In words.
    n_rows : int
        Rows of its ledger.
    moments : list of Moment
        Oldest first; thinned.
    parts : list of BudgetPart
        Each project is followed by its analysts.
    requests : list of AskedBudget
        Pending ones first.
    running : ExecutedRequest or None
        What is executed now, if for some time.
    waiting : int
        Requests that wait for their turn.
    held : list of HeldCharge
    fault : str or None
        Why the ledger cannot be read; then the other fields are empty.
    """

    name: str
    privacy_unit: str
    guarantee: str
    notice: str | None
    mode: str | None
    version: str
    frozen: str | None
    gauges: list[Gauge]
    spent: str
    spent_loss: str
    n_rows: NonNegative
    moments: list[Moment]
    parts: list[BudgetPart]
    requests: list[AskedBudget]
    running: ExecutedRequest | None
    waiting: NonNegative
    held: list[HeldCharge]
    fault: str | None


class TokenHolder(Record, frozen=True):
    """A person with a valid token.

    Parameters
    ----------
    name, role : str
    created : str
        When the token was made.
    expires : str or None
    may_rotate : bool
        Whether the reader may replace it.
    """

    name: str
    role: str
    created: str
    expires: str | None
    may_rotate: bool


class ServiceState(Record, frozen=True):
    """Everything that the page shows but the log.

    Parameters
    ----------
    time : str
        ISO 8601, UTC.
    name, role : str
        Of the reader.
    may_act : bool
        Whether the reader may do more than read.
    tables : list of CockpitTable
    tokens : list of TokenHolder
        Empty for an auditor.
    """

    time: str
    name: str
    role: str
    may_act: bool
    tables: list[CockpitTable]
    tokens: list[TokenHolder]


class LoggedRow(Record, frozen=True):
    """A row of the ledger, without its answer.

    Parameters
    ----------
    id : int
    time, kind, status, words, cost : str
    actor : str or None
        Who requested it.
    has_plan : bool
        Whether it has plans, which are sent on request.
    """

    id: NonNegative
    time: str
    kind: str
    status: str
    words: str
    cost: str
    actor: str | None
    has_plan: bool


class RowPlans(Record, frozen=True):
    """The whole plans of a row.

    Parameters
    ----------
    plans : list of str
        Each as indented JSON; several for a request for budget.
    """

    plans: list[str]


class LogPage(Record, frozen=True):
    """Rows of a ledger.

    Parameters
    ----------
    rows : list of LoggedRow
        In order.
    more : bool
        Whether there are further rows.
    """

    rows: list[LoggedRow]
    more: bool


class NewToken(Record, frozen=True):
    """A token, which is not shown again.

    Parameters
    ----------
    name, token : str
    """

    name: str
    token: str
