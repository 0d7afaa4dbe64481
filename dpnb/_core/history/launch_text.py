"""Descriptions of the rows of the ledger other than releases: of launches, selections, parts of the budget, ..."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from dpnb._core.accountant import grant as grants
from dpnb._core.accountant.grant import Grant, amount_from_json
from dpnb._core.accountant.tree import KINDS
from dpnb._plan.measurements import Count, Gradient, PlainView
from dpnb._plan.plan import Plan, describe_plan, shortened_words
from dpnb._plan.regression import describe_model
from dpnb._protocol.glossary import IN_THIS_TABLE
from dpnb._request import (
    AnyMechanism,
    CloseMechanism,
    CompareWithThreshold,
    DescendGradient,
    LaunchMechanism,
    PartitionTable,
    ReduceNoise,
    RequestBudget,
    SelectGroups,
    request_from,
)
from dpnb.accounting.exact import from_text
from dpnb.ledger import Charge, refuse_unreadable
from dpnb.ledger.charge import ACT, GRANT
from dpnb.render.numbers import limit_words

RESTORED = "ledger accepted, perhaps an older copy"
"""How the description of such an act begins."""

NOT_HERE = "the answer is not in this copy"
"""Instead of a comparison's answer, in a ledger whose answers were taken out."""

MAX_KEYS = 5
"""Number of selected keys that the log shows."""


def row_in_words(charge: Charge) -> str:
    """The description of a row."""
    with refuse_unreadable(f"row {charge.id}"):
        if charge.kind == GRANT:
            return _grant(Grant.from_details(charge.id, charge.node, charge.launch or {}))
        if charge.kind == ACT:
            return _act(charge.launch or {})
        match request_from(charge.request):
            case LaunchMechanism() as request:
                about = _about(request.mechanism)
                more = f": {about}" if about not in ("", request.name) else ""
                return f"launch of the {KINDS[type(request.mechanism)]} {request.name!r}{more}"
            case CloseMechanism() as request:
                return f"end of the {(charge.launch or {})['kind']} {request.name!r}"
            case SelectGroups() as request:
                return selection_words(request.plan, request.winners)
            case RequestBudget() as request:
                return _budget_request(charge.launch or {}, request.why)
            case CompareWithThreshold() as request:
                return describe_comparison(request.plan, charge.result or {})
        raise TypeError(charge.kind)


def _about(mechanism: AnyMechanism) -> str:
    """What a mechanism reads; empty if that is said by each request to it."""
    match mechanism:
        case PartitionTable(source, by):
            plan = Plan(Count(), group_by=(by,), source=source)
            return shortened_words(plan.scope_description.strip(), plan)
        case ReduceNoise(plan, view):
            return shortened_words(describe_plan(plan, view), plan)
        case DescendGradient(rows, model):
            plan = msgspec.structs.replace(rows, aggregation=Gradient(model, (), 1.0))
            return shortened_words(f"{describe_model(model)}{plan.scope_description}", plan)
    return ""


def _grant(grant: Grant) -> str:
    amount = grant.ceiling or grant.cap
    of = "" if amount is None else f", at most {limit_words(amount)}"
    place = "" if grant.taken_from is None else f", in the place of the unused one of row {grant.taken_from}"
    return f"{grant.mode} part of the budget for the {grant.level} {grant.name}{of}{place}"


def _budget_request(details: Mapping[str, Any], why: str) -> str:
    queries = "; ".join(f"{one['words']} at {one['target']}" for one in details["queries"])
    return f"request for budget: {queries}; because: {why}"


def _act(details: Mapping[str, Any]) -> str:
    cap = amount_from_json(details.get("cap"))
    match details["act"]:
        case "approve":
            until = "" if details.get("until") is None else f" until {details['until']}"
            amount = amount_from_json(details["amount"])
            added = "" if amount is None else f": {limit_words(amount)} added to the cap"
            return f"request {details['request']} approved{added}{until}"
        case "decline":
            return f"request {details['request']} declined"
        case "cap":
            return "cap removed" if cap is None else f"cap moved to {limit_words(cap)}"
        case "freeze":
            return f"table frozen: {details['why']}"
        case "unfreeze":
            return "table no longer frozen"
        case "end":
            return "request ended " + (
                f"that row {details['row']} charged" if "row" in details else "before its charge"
            )
        case "resume":
            return f"row {details['row']} may be answered"
        case grants.LEDGER_RESTORED:
            known = details.get("known")
            lost = "" if known is None else f"; it had at least {known} rows"
            return f"{RESTORED}, which ends with the row before{lost}"
        case grants.REMOVE:
            return "access removed"
        case grants.HAND_OVER:
            return "part of the budget handed over, of which nothing was charged"
        case grants.TAKE_OVER:
            return "part of the budget taken over from another analyst, of which nothing was charged"
        case act:
            return f"part of the budget {act}d"


def describe_comparison(plan: Plan, result: Mapping[str, Any]) -> str:
    """The answer of an above-threshold mechanism."""
    query = describe_plan(plan, PlainView())
    if not result:
        return f"{query}: {NOT_HERE}"
    return (
        f"{query}: {'above' if result['above'] else 'below'} {float(from_text(result['threshold'])):g} {IN_THIS_TABLE}"
    )


def selection_words(plan: Plan, winners: int) -> str:
    """The selection of the largest groups of a count, in words."""
    largest = "largest group" if winners == 1 else f"{winners} largest groups"
    return f"{largest} by {describe_plan(plan, PlainView())}"


def selected_keys(charge: Charge) -> str:
    """The first of the selected keys, the largest group first."""
    with refuse_unreadable(f"row {charge.id}"):
        keys = [", ".join(map(str, key)) for key in (charge.result or {})["largest"]]
        return "; ".join(keys[:MAX_KEYS]) + (f"; and {len(keys) - MAX_KEYS:,} more" if len(keys) > MAX_KEYS else "")
