"""Checks and executes an untrusted request of a remote session, on the session that holds the table.

It names plans, amounts and launches, and is checked here as the methods of a local session check their arguments;
everything that is charged or derived is computed from it by the same functions.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from dpnb._core.accountant.tree import ABOVE_THRESHOLD
from dpnb._core.core import SessionCore
from dpnb._core.execution.selections import selection_terms
from dpnb._core.pricing.batch_design import describe_batch
from dpnb._core.requesting import request_budget
from dpnb._plan.measurements import PlainView
from dpnb._request import (
    ALWAYS,
    AnyRequest,
    CloseMechanism,
    CompareWithThreshold,
    Conditions,
    DelegateBudget,
    LaunchMechanism,
    Release,
    ReleaseBatch,
    RequestBudget,
    SelectGroups,
)
from dpnb._target import checked_loss, target_of
from dpnb.accounting.filters import FILTERS
from dpnb.errors import RequestError
from dpnb.interactive.launcher import MechanismRegistry
from dpnb.interactive.scan import ThresholdScan
from dpnb.interactive.scan_options import checked_threshold
from dpnb.ledger.origin import is_node

Registry = MechanismRegistry[Any, Any]


def execute(mechanisms: Registry, request: AnyRequest, conditions: Conditions = ALWAYS) -> tuple[int, ...]:
    """Execute a request in one session, sub-session or part, whose mechanisms are given (see `MechanismRegistry.at`).

    Returns the ids of its rows of the ledger; the first is that of its answer.  A refusal is raised as by the method of
    a local session.
    """
    core = mechanisms.core
    _check_conditions(core, conditions)
    match request:
        case LaunchMechanism():
            _refuse_unserved(request)
            return (mechanisms.launched(request).id,)
        case CloseMechanism():
            return (mechanisms.closed(request),)
        case CompareWithThreshold():
            return _compare(mechanisms, request)
        case RequestBudget():
            core.tables.refuse_work([one.plan for one in request.releases], "request_budget")
            return (request_budget(core, [_checked(core, one) for one in request.releases], request.why).id,)
        case Release():
            request = _checked(core, request)
        case ReleaseBatch():
            request = _checked_batch(core, request)
        case SelectGroups():
            core.check(request.plan, PlainView())
            filter_ = core.account.guarantee.initial_filter
            selection_terms(core.tables.compile(request.plan), PlainView(), request.winners, "top", filter_)
            request = replace(request, epsilon=checked_loss(request.epsilon, "epsilon"))
    return tuple(row.id for row in core.executor.run(request, conditions))


def _refuse_unserved(request: LaunchMechanism) -> None:
    name = request.mechanism.filter if isinstance(request.mechanism, DelegateBudget) else None
    if name in FILTERS and not FILTERS[name].is_served:
        raise RequestError(
            f"delegate: a service does not enforce filter={name!r}; got it for {request.name!r}; use 'gdp', or leave "
            "it out"
        )


def _check_conditions(core: SessionCore, conditions: Conditions) -> None:
    inside = conditions.inside
    if inside and not is_node(inside):
        raise RequestError("inside: must be the node of a mechanism; got another text")
    if inside and core.account.tree.path(inside, core.account.root_node) is None:
        raise RequestError("inside: must be the node of a mechanism that was launched in this session; got another one")


def _checked(core: SessionCore, request: Release) -> Release:
    """The release, checked as a local session checks it: a frame of the session could have made its plan."""
    core.check(request.plan, request.view)
    target = request.target
    if (target.amount is None) != bool(target.amounts):
        raise RequestError("target: give one amount, or one for each label; got both or neither")
    checked = target_of(
        target.kind,
        dict(target.amounts) if target.amount is None else target.amount,
        target.confidence,
        target.simultaneous,
        target.final,
        core.tables.group_keys(request.plan, list(target.groups) or None),
    )
    return Release(request.plan, request.view, checked)


def _checked_batch(core: SessionCore, request: ReleaseBatch) -> ReleaseBatch:
    core.tables.refuse_work(
        [one.plan for one in request.releases], describe_batch([(one.plan, one.view) for one in request.releases])
    )
    batch = ReleaseBatch(tuple(_checked(core, one) for one in request.releases))
    targets = {one.target for one in batch.releases}
    options = {replace(one, amount=None, amounts=()) for one in targets}
    is_one = len(targets) == 1 or {one.kind for one in targets} == {"within"}
    if not is_one or len(options) > 1 or any(one.groups for one in targets):
        raise RequestError("plan: a batch has one target, or one half-width for each query; got others")
    return batch


def _compare(mechanisms: Registry, request: CompareWithThreshold) -> tuple[int, ...]:
    core, scan = mechanisms.core, mechanisms.open(request.name)
    if not isinstance(scan, ThresholdScan):
        raise RequestError(f"compare: needs a launch of the kind {ABOVE_THRESHOLD!r}; got the kind {scan.kind!r}")
    core.check(request.plan, PlainView())
    return (scan.compare(request.plan, PlainView(), checked_threshold(request.threshold)).id,)
