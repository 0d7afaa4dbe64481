"""What an analyst's session asks the service to do: everything that charges the budget or reads rows.

Whatever is free (previews, explanations, gauges, logs, combined answers) is computed by the analyst's session from its
copy of the ledger, with the same code as in a local session, and is never sent.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from dpnb._plan.measurements import AnyView
from dpnb._plan.plan import Plan
from dpnb._plan.schema import Key

Label = Key | tuple[Key, ...]
TargetKind = Literal["mu", "rho", "epsilon", "share", "within"]
MechanismCode = Literal["partition", "sub_session", "above_threshold", "noise_reduction", "gradient_descent"]


class Call(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="call"):
    """Base class of the calls."""


class TargetArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The target of a release: the fields of `dpnb._core.pricing.target.Target`, with exact amounts as text.

    Parameters
    ----------
    kind : {"mu", "rho", "epsilon", "share", "within"}
        Kind of target.
    amount : str or None
        Exact amount, as ``"1/10"``; None for a ``within=`` with labels.
    amounts : tuple of (label, str)
        The half-widths of single groups or statistics.
    confidence : str
        Confidence of the intervals, exact.
    simultaneous, final : bool
        As in `Query.release`.
    groups : tuple of tuple
        Keys of the groups to which the target applies; all groups if empty.
    """

    kind: TargetKind
    amount: str | None = None
    amounts: tuple[tuple[Label, str], ...] = ()
    confidence: str = "19/20"
    simultaneous: bool = False
    final: bool = False
    groups: tuple[tuple[Key, ...], ...] = ()


class Release(Call, frozen=True, tag="release"):
    """Release a query; see `dpnb._core.releases.ReleasePipeline.release`.

    Parameters
    ----------
    plan, view
        The query.
    target : TargetArguments
        The target.
    inside : str
        Node of the mechanism that makes the request, inside the node of the request; empty without one.
    combined : bool
        Whether to refuse an observation that could not be combined with earlier ones.
    at_most : str or None
        Largest additional loss as mu squared, exact; a release that would cost more is refused.
    """

    plan: Plan
    view: AnyView
    target: TargetArguments
    inside: str = ""
    combined: bool = False
    at_most: str | None = None


class ReleaseBatch(Call, frozen=True, tag="batch"):
    """Release a batch of queries; one target for the whole batch, or one for each query.

    Parameters
    ----------
    queries : tuple of (Plan, View)
        The queries as the analyst wrote them, in order.
    targets : tuple of TargetArguments
        One for each query; equal ones for a loss of the whole batch.
    at_most : str or None
        As for `Release`.
    """

    queries: tuple[tuple[Plan, AnyView], ...]
    targets: tuple[TargetArguments, ...]
    at_most: str | None = None


class SelectGroups(Call, frozen=True, tag="select"):
    """Select the largest groups of a count.

    Parameters
    ----------
    plan, view
        The count.
    winners : int
        Number of groups.
    verb : str
        The method that was called: ``top`` or ``idxmax``.
    epsilon : str
        The loss in pure DP, exact.
    """

    plan: Plan
    view: AnyView
    winners: int
    verb: Literal["top", "idxmax"]
    epsilon: str


class LaunchMechanism(Call, frozen=True, tag="launch"):
    """Launch an interactive mechanism; the service computes its cost and its derived values from the arguments.

    Parameters
    ----------
    mechanism : str
        Code of the kind of mechanism, as in the ledger.
    name : str
        Name of the launch.
    arguments : dict
        The arguments as the ledger stores them.
    """

    mechanism: MechanismCode
    name: str
    arguments: dict[str, Any]


class CloseMechanism(Call, frozen=True, tag="close"):
    """Close an interactive mechanism.

    Parameters
    ----------
    launch : int
        Id of the row that launched it.
    """

    launch: int


class CompareWithThreshold(Call, frozen=True, tag="compare"):
    """Compare a count or sum with a threshold, in an above-threshold mechanism.

    Parameters
    ----------
    launch : int
        Id of the row that launched it.
    plan : Plan
        The count or sum.
    threshold : str
        In the answer's units, exact.
    """

    launch: int
    plan: Plan
    threshold: str


class RequestBudget(Call, frozen=True, tag="request_budget"):
    """Request a larger cap from the curator, which charges nothing; the service computes what it would cost.

    Parameters
    ----------
    queries : tuple of (Plan, View, TargetArguments)
        The queries that the budget is requested for.
    why : str
        The reason, which the curator reads.
    """

    queries: tuple[tuple[Plan, AnyView, TargetArguments], ...]
    why: str


AnyCall = (
    Release | ReleaseBatch | SelectGroups | LaunchMechanism | CloseMechanism | CompareWithThreshold | RequestBudget
)


class Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One request, the body of ``POST /v1/tables/<table>/requests``.

    Parameters
    ----------
    id : str
        Chosen by the client, unique; a repeated request with the same id and body takes up the same charge.
    call : Call
        What to do.
    node : str
        Node of the session, sub-session or part that pays; empty for the analyst's whole session.
    cell_id : str or None
        Id of the notebook cell that made the request.
    after : int
        Number of the last row that the client has.
    pending : tuple of int
        Numbers of earlier rows that the client has without an answer.
    head : str
        Hash of the row `after` in the client's copy, which the service compares with that of its own row: see
        `dpnb.ledger.shared_rows`.  Empty for a client that keeps no copy.
    """

    id: str
    call: AnyCall
    node: str = ""
    cell_id: str | None = None
    after: int = 0
    pending: tuple[int, ...] = ()
    head: str = ""
