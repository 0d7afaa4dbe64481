"""Rows of the ledger that are no plain question, in words: launches, ends, and what a threshold was compared with."""

from __future__ import annotations

from dpnb.accounting.exact import from_text
from dpnb.ledger import Charge, readable
from dpnb.query.aggregations import Plain
from dpnb.query.plan import Plan, question_words


def of(charge: Charge) -> str:
    """A row in words."""
    with readable(f"row {charge.id}"):
        if charge.launch is not None:
            verb = "end of" if "closes" in charge.launch else "launch of"
            return f"{verb} the {charge.launch['kind']} {charge.launch['name']!r}"
        return comparison_words(charge)


def comparison_words(charge: Charge) -> str:
    """What an above-threshold mechanism answered."""
    said = charge.said or {}
    question = question_words(Plan.from_json(charge.plan), Plain())
    return f"{question}: {'above' if said['above'] else 'below'} {float(from_text(said['threshold'])):g}"
