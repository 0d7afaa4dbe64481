"""Descriptions of the rows of the ledger other than releases: launches, closes and comparisons with a threshold."""

from __future__ import annotations

from dpnb._core.accountant.tree import KINDS
from dpnb._plan.measurements import PlainView
from dpnb._plan.plan import Plan, describe_plan
from dpnb.accounting.exact import from_text
from dpnb.ledger import Charge, refuse_unreadable
from dpnb.ledger.charge import CLOSE


def of(charge: Charge) -> str:
    """The description of a row."""
    with refuse_unreadable(f"row {charge.id}"):
        if charge.launch is not None:
            event = "end of" if charge.kind == CLOSE else "launch of"
            return f"{event} the {KINDS[charge.launch['mechanism']]} {charge.launch['name']!r}"
        return describe_comparison(charge)


def describe_comparison(charge: Charge) -> str:
    """The answer of an above-threshold mechanism."""
    result = charge.result or {}
    query = describe_plan(Plan.from_json(charge.plan), PlainView())
    return f"{query}: {'above' if result['above'] else 'below'} {float(from_text(result['threshold'])):g}"
