"""What was asked, as a row of the ledger has it."""

from __future__ import annotations

from dpnb._core.pricing.target import StoredRequest
from dpnb._plan.plan import Plan
from dpnb.ledger import Charge, refuse_unreadable


def plan_of(charge: Charge) -> Plan:
    """The plan of a row.

    Raises
    ------
    LedgerError
        It does not read as it was written.
    """
    with refuse_unreadable(f"row {charge.id}"):
        return Plan.from_json(charge.plan)


def request_of(charge: Charge) -> StoredRequest:
    """How a row's plan was asked.

    Raises
    ------
    LedgerError
        It does not read as it was written.
    """
    with refuse_unreadable(f"row {charge.id}"):
        return StoredRequest.from_json(charge.arguments)
