"""Requests of analysts for a larger cap, and the curator's decisions: rows of the ledger that cost nothing.

A decision names the digest of what the curator was shown, which is computed from the content of the request.  It
depends on no number of a row, so an analyst who receives it learns nothing about the rows of others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from dpnb._core.accountant.grant import amount_from_json
from dpnb._request import Release, RequestBudget, request_from
from dpnb.accounting.losses import PureGDP
from dpnb.errors import LedgerError
from dpnb.ledger import ChargeSummary
from dpnb.ledger.charge import digest

MAX_PENDING = 10
"""Requests of one analyst that are not decided."""

RequestStatus = Literal["pending", "approved", "approved in part", "declined", "lapsed"]


@dataclass(frozen=True)
class RequestedQuery:
    """A query that the budget is requested for, in words, with target, cost and expected error of its release.

    `key` is that of the release and the version of the table, by which equal requests are recognised.
    """

    words: str
    target: str
    cost: PureGDP
    error: str
    key: str


@dataclass(frozen=True)
class Decision:
    """What the curator decided.

    `actor` is empty in the copy of an analyst, who is not told in reserved mode.  `time` and `until`, when an approval
    lapses, are UTC, ISO 8601.  `amount` is what was added to the cap, None if the request was declined.  The analyst
    sees `why`.
    """

    actor: str
    time: str
    act: Literal["approve", "decline"]
    amount: PureGDP | None
    until: str | None
    why: str

    @classmethod
    def from_row(cls, charge: ChargeSummary) -> Decision:
        """Read the row of an act; KeyError, TypeError, ValueError or DpnbError if it cannot be read."""
        details = charge.launch or {}
        act, until, why = details["act"], details.get("until"), details["why"]
        amount = amount_from_json(details.get("amount"))
        if act not in ("approve", "decline") or (amount is None) != (act == "decline"):
            raise ValueError
        if not isinstance(why, str) or not isinstance(until, str | None):
            raise TypeError
        return cls(actor_of(charge), charge.time or "", act, amount, until, why)


@dataclass(frozen=True)
class BudgetRequest:
    """A request of an analyst for a larger cap.

    `id` is that of its row in the ledger, and `part` that of the row that granted the analyst's part; `time` is UTC,
    ISO 8601.  In the analyst's own copy of the ledger, in reserved mode, `analyst` is empty and `part` None.  `total`
    is the sum of the costs; `decision` is None while the request is pending.
    """

    id: int
    node: str
    analyst: str
    part: int | None
    time: str
    why: str
    queries: tuple[RequestedQuery, ...]
    total: PureGDP
    decision: Decision | None = None

    @property
    def digest(self) -> str:
        """SHA-256 of what the curator is shown, by which a decision names the request."""
        shown = [[one.words, one.target, one.cost.to_json(), one.error, one.key] for one in self.queries]
        return digest(["budget request", self.analyst, self.time, self.why, shown, self.total.to_json()])

    def status(self, time: str) -> RequestStatus:
        """What became of it at a time, which is written as in rows of the ledger."""
        decided = self.decision
        if decided is None:
            return "pending"
        if decided.amount is None:
            return "declined"
        if decided.until is not None and decided.until <= time:
            return "lapsed"
        return "approved" if self.total.within(decided.amount) else "approved in part"

    @classmethod
    def from_row(cls, charge: ChargeSummary, part: int | None) -> BudgetRequest:
        """Read the row of a request; KeyError, TypeError, ValueError or DpnbError if it cannot be read."""
        request, details = request_from(charge.request or ""), charge.launch or {}
        if not isinstance(request, RequestBudget):
            raise TypeError(type(request).__name__)
        queries = tuple(
            RequestedQuery(
                _text(one["words"]),
                _text(one["target"]),
                _amount(one["cost"]),
                _text(one["error"]),
                query_digest(charge.table_version, release),
            )
            for one, release in zip(details["queries"], request.releases, strict=True)
        )
        place = charge.id, charge.node, actor_of(charge), part, charge.time or ""
        return cls(*place, request.why, queries, _amount(details["total"]))


def query_digest(version: str, release: Release) -> str:
    """The key of a query that the budget is requested for."""
    return digest([version, release.key])


def request_details(queries: tuple[RequestedQuery, ...], total: PureGDP) -> Mapping[str, Any]:
    """What the ledger stores of a request beside it."""
    stored = [
        {"words": one.words, "target": one.target, "cost": one.cost.to_json(), "error": one.error} for one in queries
    ]
    return {"queries": stored, "total": total.to_json()}


def decided_request(requests: Mapping[int, BudgetRequest], number: object) -> BudgetRequest:
    """The request that an act decides; a `LedgerError` if there is none, or it is decided."""
    request = requests.get(number) if isinstance(number, int) else None
    if request is None or request.decision is not None:
        raise LedgerError(f"ledger: an act must decide a pending request for budget; it names row {number}")
    return request


def actor_of(charge: ChargeSummary) -> str:
    """Who made a row; empty if that is not known."""
    return "" if charge.origin is None else charge.origin.actor


def _amount(stored: Any) -> PureGDP:
    amount = amount_from_json(stored)
    if amount is None:
        raise ValueError
    return amount


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(type(value).__name__)
    return value
