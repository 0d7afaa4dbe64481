"""Executes what a remote session sends, on the session that holds the table.

A call is untrusted: it names plans, amounts and launches, and everything that is charged or derived is computed here,
by the same functions that serve a local session.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from dpnb._core.accountant.tree import ABOVE_THRESHOLD, Launch
from dpnb._core.batch_design import describe_batch
from dpnb._core.core import SessionCore
from dpnb._core.options import checked_loss
from dpnb._core.pricing.target import Target
from dpnb._core.requesting import request_budget
from dpnb._core.selection.terms import selection_terms
from dpnb._plan.measurements import AnyView, PlainView
from dpnb._plan.plan import Plan
from dpnb.accounting.exact import from_text
from dpnb.errors import RequestError
from dpnb.interactive.launcher import MechanismRegistry
from dpnb.interactive.stored_launch import request_from_stored
from dpnb.interactive.threshold.options import checked_threshold
from dpnb.interactive.threshold.scan import ThresholdScan
from dpnb.ledger.node import is_node
from dpnb.wire.calls import (
    AnyCall,
    CloseMechanism,
    CompareWithThreshold,
    LaunchMechanism,
    Release,
    ReleaseBatch,
    RequestBudget,
    SelectGroups,
    TargetArguments,
)

Registry = MechanismRegistry[Any, Any]


def execute_call(mechanisms: Registry, call: AnyCall) -> tuple[int, ...]:
    """Execute a call in one session, sub-session or part, whose mechanisms are given (see `MechanismRegistry.at`).

    Returns the ids of the ledger's rows of the call; the first is that of its answer.  A refusal is raised as by the
    method of a local session.
    """
    match call:
        case Release():
            return _release(mechanisms.core, call)
        case ReleaseBatch():
            return _release_batch(mechanisms.core, call)
        case SelectGroups():
            return _select(mechanisms.core, call)
        case LaunchMechanism():
            return (_launch(mechanisms, call).id,)
        case CloseMechanism():
            return _close(mechanisms, call)
        case CompareWithThreshold():
            return _compare(mechanisms, call)
        case RequestBudget():
            return _request_budget(mechanisms.core, call)


def _release(core: SessionCore, call: Release) -> tuple[int, ...]:
    _check(core, call.plan, call.view)
    if call.inside and not is_node(call.inside):
        raise RequestError("inside: must be the node of a mechanism; got another text")
    if call.inside and core.account.tree.path(call.inside, core.account.root_node) is None:
        raise RequestError("inside: must be the node of a mechanism that was launched in this session; got another one")
    target = _target(core, call.plan, call.target)
    row = core.releases.charge(
        call.plan, call.view, target, inside=call.inside, combined=call.combined, at_most=_limit(call)
    )
    return (row.id,)


def _release_batch(core: SessionCore, call: ReleaseBatch) -> tuple[int, ...]:
    core.tables.refuse_work([plan for plan, _ in call.queries], describe_batch(call.queries))
    for plan, view in call.queries:
        _check(core, plan, view)
    planned = core.batches.plan(call.queries)
    targets = [_target(core, plan, one) for (plan, _), one in zip(planned.queries, call.targets, strict=False)]
    shares_loss = len(set(call.targets)) == 1 and targets[0].kind != "within"
    if len(targets) != len(call.queries) or not (shares_loss or all(one.kind == "within" for one in targets)):
        raise RequestError("plan: a batch has one target, or one half-width for each query; got others")
    return tuple(row.id for row in core.batches.charge(planned, targets, at_most=_limit(call)))


def _request_budget(core: SessionCore, call: RequestBudget) -> tuple[int, ...]:
    core.tables.refuse_work([plan for plan, _, _ in call.queries], "request_budget")
    for plan, view, _ in call.queries:
        _check(core, plan, view)
    requested = [(plan, view, _target(core, plan, target)) for plan, view, target in call.queries]
    return (request_budget(core, requested, call.why).id,)


def _select(core: SessionCore, call: SelectGroups) -> tuple[int, ...]:
    _check(core, call.plan, call.view)
    terms = selection_terms(core.tables.compile(call.plan), call.view, call.winners, call.verb)
    return (core.selections.charge(terms, checked_loss(from_text(call.epsilon), "epsilon")).id,)


def _launch(mechanisms: Registry, call: LaunchMechanism) -> Launch:
    known = mechanisms.named(call.name)
    return mechanisms.launched(request_from_stored(mechanisms.core, known, call.mechanism, call.name, call.arguments))


def _close(mechanisms: Registry, call: CloseMechanism) -> tuple[int, ...]:
    mechanisms.by_id(call.launch).close()
    return ()


def _compare(mechanisms: Registry, call: CompareWithThreshold) -> tuple[int, ...]:
    core, scan = mechanisms.core, mechanisms.by_id(call.launch)
    if not isinstance(scan, ThresholdScan):
        raise RequestError(f"compare: needs a launch of the kind {ABOVE_THRESHOLD!r}; got the kind {scan.kind!r}")
    _check(core, call.plan, PlainView())
    return (scan.compare(call.plan, PlainView(), checked_threshold(from_text(call.threshold))).id,)


def _check(core: SessionCore, plan: Plan, view: AnyView) -> None:
    """Refuse a plan or view that a session's frame could not have made."""
    core.query(plan, view)


def _limit(call: Release | ReleaseBatch) -> Fraction | None:
    """The largest cost, as mu squared."""
    return None if call.at_most is None else from_text(call.at_most)


def _target(core: SessionCore, plan: Plan, arguments: TargetArguments) -> Target:
    """The target, checked as a local session checks it."""
    if (arguments.amount is None) != bool(arguments.amounts):
        raise RequestError("target: give one amount, or one for each label; got both or neither")
    amounts: Any = {label: from_text(amount) for label, amount in arguments.amounts}
    return core.target(
        plan,
        {
            arguments.kind: amounts if arguments.amount is None else from_text(arguments.amount),
            "confidence": from_text(arguments.confidence),
            "simultaneous": arguments.simultaneous,
            "final": arguments.final,
            "groups": list(arguments.groups) or None,
        },
    )
