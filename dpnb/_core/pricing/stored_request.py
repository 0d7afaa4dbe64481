"""The plan and the arguments of a request, read from a row of the ledger."""

from __future__ import annotations

from dpnb._core.pricing.target import StoredRequest
from dpnb._plan.plan import Plan
from dpnb.ledger import Charge, refuse_unreadable


def plan_of(charge: Charge) -> Plan:
    """The plan of a row."""
    with refuse_unreadable(f"row {charge.id}"):
        return Plan.from_json(charge.plan)


def request_of(charge: Charge) -> StoredRequest:
    """The arguments of a row."""
    with refuse_unreadable(f"row {charge.id}"):
        return StoredRequest.from_json(charge.arguments)
