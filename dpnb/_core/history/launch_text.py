"""Rows of the ledger that are no plain question, in words: launches, ends, and what a threshold was compared with."""

from __future__ import annotations

from dpnb._core.accountant.tree import KINDS
from dpnb._plan.measurements import PlainView
from dpnb._plan.plan import Plan, describe_plan
from dpnb.accounting.exact import from_text
from dpnb.ledger import Charge, refuse_unreadable
from dpnb.ledger.charge import CLOSE


def of(charge: Charge) -> str:
    """A row in words."""
    with refuse_unreadable(f"row {charge.id}"):
        if charge.launch is not None:
            verb = "end of" if charge.kind == CLOSE else "launch of"
            return f"{verb} the {KINDS[charge.launch['mechanism']]} {charge.launch['name']!r}"
        return describe_comparison(charge)


def describe_comparison(charge: Charge) -> str:
    """What an above-threshold mechanism answered."""
    said = charge.result or {}
    question = describe_plan(Plan.from_json(charge.plan), PlainView())
    return f"{question}: {'above' if said['above'] else 'below'} {float(from_text(said['threshold'])):g}"
