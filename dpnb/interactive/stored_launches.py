"""Requests to launch a mechanism, from the arguments that the ledger stores and that a client sends.

Everything that is charged or derived is computed here, by the same functions that serve a session's methods.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import msgspec

from dpnb._core.accountant.tree import ABOVE_THRESHOLD, GRADIENT_DESCENT, KINDS, NOISE_REDUCTION, PARTITION, Launch
from dpnb._core.core import SessionCore
from dpnb._plan.measurements import RegressionModel, view_from_json
from dpnb._plan.plan import GroupLevel, Plan, TableSource
from dpnb._request import MechanismCode
from dpnb.accounting.budget import Budget
from dpnb.accounting.exact import exact_sqrt, from_text
from dpnb.errors import DpnbError, RequestError
from dpnb.interactive.descent.options import FitArguments, StoredStart, descent_request
from dpnb.interactive.launch_request import LaunchRequest
from dpnb.interactive.noise_reduction import noise_reduction_request
from dpnb.interactive.partition import partition_request_by
from dpnb.interactive.sub_session import sub_session_request
from dpnb.interactive.threshold.options import terms_from


def request_from_stored(
    core: SessionCore, known: Launch | None, kind: MechanismCode, name: str, arguments: Mapping[str, Any]
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
    if request is None or request.stored.arguments != dict(arguments):
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
