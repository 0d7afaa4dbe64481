"""What curators and auditors do: reading who asked what, without answers, and freezing a table."""

from __future__ import annotations

from dpnb._core.accountant.granting import freeze, unfreeze
from dpnb._core.history import launch_text
from dpnb._core.pricing.stored_request import plan_of, request_of
from dpnb._plan.measurements import PlainView
from dpnb._plan.plan import describe_plan
from dpnb.errors import printable
from dpnb.ledger import Charge
from dpnb.ledger.charge import COMPARISON, RELEASE, TABLE_FILES
from dpnb.ledger.origin import RequestOrigin, requested_by
from dpnb.render.numbers import format_cost_up, format_percent_down
from dpnb.service.opening import OpenTable
from dpnb.wire.acts import AnyAct, AuditPage, AuditRow, Freeze

MAX_ROWS = 200
"""Rows of a page."""


def act(table: OpenTable, actor: str, one: AnyAct) -> None:
    """Do what a curator asks; call in the thread of the table.

    Raises
    ------
    InvalidValueError
        If the reason is empty, too long or not printable.
    """
    core = table.session._core
    with requested_by(RequestOrigin(actor)):
        if isinstance(one, Freeze):
            freeze(core.account, one.why, version=core.version)
        else:
            unfreeze(core.account, version=core.version)


def audit_page(table: OpenTable, after: int) -> AuditPage:
    """The rows after a number, without answers.

    What they say is a function of plans and costs.  Analysts choose these after seeing answers, so what an auditor sees
    is within the guarantee of the table, and is not free of data.
    """
    account = table.session._core.account
    ids = [one.id for one in account.ledger.summaries(after=after)]
    page = ids[:MAX_ROWS]
    hashes = {stored["id"]: str(stored["hash"]) for stored in account.ledger.stored(page)}
    return AuditPage(
        tuple(_row(charge, hashes[charge.id]) for charge in account.ledger.by_id(tuple(page))),
        more=len(ids) > MAX_ROWS,
        spent=f"{format_percent_down(account.filter.headroom)} of the budget is left",
        frozen=account.tree.frozen,
    )


def _row(charge: Charge, chained: str) -> AuditRow:
    return AuditRow(
        charge.id,
        charge.time,
        charge.kind,
        charge.node,
        charge.status,
        printable(words_of(charge)),
        format_cost_up(charge.loss) if charge.loss else "free",
        chained,
        None if charge.origin is None else charge.origin.actor,
    )


def words_of(charge: Charge) -> str:
    """What was requested: never what came of it."""
    if charge.kind == RELEASE:
        return describe_plan(plan_of(charge), request_of(charge).view)
    if charge.kind == COMPARISON:
        return f"comparison of the {describe_plan(plan_of(charge), PlainView())}"
    if charge.kind == TABLE_FILES:
        return "files of the table"
    return launch_text.of(charge)
