"""Executes what a remote session sends, on the session that holds the table.

A call is untrusted: it names plans, amounts and launches, and everything that is charged or derived is computed here,
by the same functions that serve a local session.  Arguments of a launch that these functions would have stored
otherwise are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import msgspec

from dpnb._core.accountant.tree import ABOVE_THRESHOLD, GRADIENT_DESCENT, KINDS, NOISE_REDUCTION, PARTITION, Launch
from dpnb._core.core import SessionCore
from dpnb._core.execution.protocol import ReleaseRequest
from dpnb._core.execution.selection_terms import selection_terms
from dpnb._core.pricing.batch_design import describe_batch
from dpnb._core.requesting import request_budget
from dpnb._plan.measurements import AnyView, PlainView, RegressionModel, view_from_json
from dpnb._plan.plan import GroupLevel, Plan, TableSource
from dpnb._target import Target, checked_loss, target_of
from dpnb.accounting.budget import Budget
from dpnb.accounting.exact import exact_sqrt, from_text
from dpnb.accounting.filters import FILTERS
from dpnb.errors import DpnbError, RequestError
from dpnb.interactive.descent.options import FitArguments, StoredStart, descent_request
from dpnb.interactive.launch_request import LaunchRequest
from dpnb.interactive.launcher import MechanismRegistry
from dpnb.interactive.noise_reduction import noise_reduction_request
from dpnb.interactive.partition import partition_request_by
from dpnb.interactive.sub_session import sub_session_request
from dpnb.interactive.threshold.options import checked_threshold, terms_from
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

# --- launch requests from the arguments that the ledger stores --------------------------------------------------------


def request_from_stored(
    core: SessionCore, known: Launch | None, kind: str, name: str, arguments: Mapping[str, Any]
) -> LaunchRequest:
    """The request to launch a mechanism, from arguments that are JSON values.

    `core` is that of the session in which it is launched, `known` the earlier launch of that name.  Arguments that are
    not those of such a launch raise `RequestError`; otherwise the errors are those of the method of a local session.
    """
    make = {
        PARTITION: _partition,
        NOISE_REDUCTION: _noise_reduction,
        GRADIENT_DESCENT: _gradient_descent,
        ABOVE_THRESHOLD: _above_threshold,
    }.get(KINDS[kind], _sub_session)
    request = None
    try:
        request = make(core, known, name, arguments)
    except DpnbError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, msgspec.MsgspecError):
        pass  # refused below, without the text of an error that may repeat the arguments
    if request is None or request.stored_arguments != dict(arguments):
        raise RequestError(
            f"launch: the arguments must be those that a session stores for a launch of the kind {KINDS[kind]!r}; got "
            "others; use the version of dpnb that the service uses"
        )
    return request


def _partition(core: SessionCore, known: Launch | None, name: str, arguments: Mapping[str, Any]) -> LaunchRequest:
    parts = arguments["parts"]
    group = msgspec.convert(parts["by"], GroupLevel)
    source: TableSource = msgspec.convert(parts["source"], TableSource)
    limit = msgspec.convert(parts["max_parts_per_unit"], int | None)
    return partition_request_by(core, group, name, source, limit)


def _sub_session(core: SessionCore, known: Launch | None, name: str, arguments: Mapping[str, Any]) -> LaunchRequest:
    filter_ = msgspec.convert(arguments["filter"], str)
    if filter_ in FILTERS and not FILTERS[filter_].is_served:
        raise RequestError(
            f"delegate: a service does not enforce filter={filter_!r}; got it for {name!r}; use 'gdp', or leave it out"
        )
    if "share" in arguments:
        return sub_session_request(core, known, name, filter_, share=from_text(arguments["share"]))
    return sub_session_request(core, known, name, filter_, Budget.from_json(arguments["budget"]))


def _above_threshold(core: SessionCore, known: Launch | None, name: str, arguments: Mapping[str, Any]) -> LaunchRequest:
    is_laplace = arguments["noise"] == "laplace"
    return terms_from(
        from_text(arguments["threshold"]),
        epsilon=from_text(arguments["loss"]["epsilon"]) if is_laplace else None,
        max_positives=arguments["max_positives"] if is_laplace else 1,
        monotonic=arguments["monotonic"] if is_laplace else False,
        return_values=arguments["return_values"] if is_laplace else False,
        mu=None if is_laplace else _root(arguments["loss"]["mu_squared"]),
        max_queries=None if is_laplace else arguments["max_queries"],
    ).request(name)


def _noise_reduction(core: SessionCore, known: Launch | None, name: str, arguments: Mapping[str, Any]) -> LaunchRequest:
    plan, view = Plan.from_json(arguments["plan"]), view_from_json(arguments["view"])
    core.check(plan, view)
    initial, largest = arguments["initial_mu_squared"], arguments["max_mu_squared"]
    return noise_reduction_request(core, lambda _: known, plan, view, name, _root(initial), _root(largest))


def _root(squared: str | None) -> Fraction | None:
    """The mu whose square was stored; None for None."""
    return None if squared is None else exact_sqrt(from_text(squared))


def _gradient_descent(
    core: SessionCore, known: Launch | None, name: str, arguments: Mapping[str, Any]
) -> LaunchRequest:
    options = {key: value for key, value in arguments.items() if key not in ("rows", "model", "terms")}
    for key in ("mu", "check_mu", "learning_rate"):
        options[key] = None if options[key] is None else from_text(options[key])
    if options["start"] is not None:
        options["start"] = StoredStart(msgspec.convert(options["start"], tuple[float, ...]))
    terms = msgspec.convert(arguments["terms"], tuple[str, ...])
    model = msgspec.convert(arguments["model"], RegressionModel)
    return descent_request(core, Plan.from_json(arguments["rows"]), model, terms, name, FitArguments(**options))


# --- calls of a remote session ----------------------------------------------------------------------------------------


Registry = MechanismRegistry[Any, Any]


def execute_call(mechanisms: Registry, call: AnyCall) -> tuple[int, ...]:
    """Execute a call in one session, sub-session or part, whose mechanisms are given (see `MechanismRegistry.at`).

    Returns the ids of the ledger's rows of the call, none for closing; the first is that of its answer.  A refusal is
    raised as by the method of a local session.
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
    request = ReleaseRequest(call.plan, call.view, target, call.inside, call.combined, _limit(call))
    return (core.releases.charge(request).id,)


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
    core.check(plan, view)


def _limit(call: Release | ReleaseBatch) -> Fraction | None:
    """The largest cost, as mu squared."""
    return None if call.at_most is None else from_text(call.at_most)


def _target(core: SessionCore, plan: Plan, arguments: TargetArguments) -> Target:
    """The target, checked as a local session checks it."""
    if (arguments.amount is None) != bool(arguments.amounts):
        raise RequestError("target: give one amount, or one for each label; got both or neither")
    amounts: Any = {label: from_text(amount) for label, amount in arguments.amounts}
    return target_of(
        arguments.kind,
        amounts if arguments.amount is None else from_text(arguments.amount),
        from_text(arguments.confidence),
        arguments.simultaneous,
        arguments.final,
        core.tables.group_keys(plan, list(arguments.groups) or None),
    )
