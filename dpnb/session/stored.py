"""What was asked, as a row of the ledger has it."""

from __future__ import annotations

from dpnb.ledger import Charge, readable
from dpnb.query.plan import Plan
from dpnb.session.target import Request


def plan_of(charge: Charge) -> Plan:
    """The plan of a row.

    Raises
    ------
    LedgerError
        It does not read as it was written.
    """
    with readable(f"row {charge.id}"):
        return Plan.from_json(charge.plan)


def request_of(charge: Charge) -> Request:
    """How a row's plan was asked.

    Raises
    ------
    LedgerError
        It does not read as it was written.
    """
    with readable(f"row {charge.id}"):
        return Request.from_json(charge.request)
