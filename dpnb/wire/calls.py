"""What an analyst's session asks the service to do: everything that writes into the ledger or reads rows.

Everything else is free (previews, explanations, gauges, logs, combined answers): it is computed by the analyst's
session from its copy of the ledger, with the same code as in a local session, and is never sent.
"""

from __future__ import annotations

import hashlib
from typing import Any, Literal

import msgspec

from dpnb._plan.measurements import AnyView
from dpnb._plan.plan import Plan
from dpnb._target import Keys, Label, TargetKind

MechanismCode = Literal["partition", "sub_session", "above_threshold", "noise_reduction", "gradient_descent"]


class Call(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="call"):
    """Base class of the calls."""


class TargetArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The target of a release: the fields of `dpnb._target.Target`, with exact amounts as text."""

    kind: TargetKind
    amount: str | None = None  # exact, as ``"1/10"``; None for a ``within=`` with labels
    amounts: tuple[tuple[Label, str], ...] = ()  # half-widths of single groups or statistics
    confidence: str = "19/20"  # exact
    simultaneous: bool = False
    final: bool = False
    groups: Keys = ()  # keys of those to which the target applies; all if empty


class Release(Call, frozen=True, tag="release"):
    """Release a query; see `dpnb._core.releases.ReleasePipeline.release`."""

    plan: Plan
    view: AnyView
    target: TargetArguments
    inside: str = ""  # node of the mechanism that makes the request, inside the node of the request
    combined: bool = False  # whether to refuse an observation that could not be combined with earlier ones
    at_most: str | None = None  # largest additional loss as mu squared, exact; what would cost more is refused


class ReleaseBatch(Call, frozen=True, tag="batch"):
    """Release a batch of queries; one target for the whole batch, or one for each query."""

    queries: tuple[tuple[Plan, AnyView], ...]  # as the analyst wrote them, in order
    targets: tuple[TargetArguments, ...]  # one for each query; equal ones for a loss of the whole batch
    at_most: str | None = None  # as for `Release`


class SelectGroups(Call, frozen=True, tag="select"):
    """Select the largest groups of a count."""

    plan: Plan
    view: AnyView
    winners: int  # number of groups
    verb: Literal["top", "idxmax"]  # the method that was called
    epsilon: str  # loss in pure DP, exact


class LaunchMechanism(Call, frozen=True, tag="launch"):
    """Launch an interactive mechanism; the service computes its cost and its derived values from the arguments."""

    mechanism: MechanismCode  # as in the ledger
    name: str  # of the launch
    arguments: dict[str, Any]  # as the ledger stores them


class CloseMechanism(Call, frozen=True, tag="close"):
    """Close an interactive mechanism."""

    launch: int  # id of the row that launched it


class CompareWithThreshold(Call, frozen=True, tag="compare"):
    """Compare a count or sum with a threshold, in an above-threshold mechanism."""

    launch: int  # id of the row that launched it
    plan: Plan  # of the count or sum
    threshold: str  # in the answer's units, exact


class RequestBudget(Call, frozen=True, tag="request_budget"):
    """Request a larger cap from the curator, which charges nothing; the service computes what it would cost."""

    queries: tuple[tuple[Plan, AnyView, TargetArguments], ...]
    why: str  # the curator reads it


AnyCall = (
    Release | ReleaseBatch | SelectGroups | LaunchMechanism | CloseMechanism | CompareWithThreshold | RequestBudget
)


class Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One request, the body of ``POST /v2/tables/<table>/requests``.

    A repeated request with the same id and body takes up the same charge.  The service compares `head` with the hash of
    its own row: see `dpnb.ledger.shared_rows`.
    """

    id: str  # chosen by the client, unique
    call: AnyCall
    node: str = ""  # of the session, sub-session or part that pays; empty for the analyst's whole session
    cell_id: str | None = None  # of the notebook cell that made the request
    after: int = 0  # number of the last row that the client has
    pending: tuple[int, ...] = ()  # numbers of earlier rows that the client has without an answer
    head: str = ""  # hash of the row `after` in the client's copy; empty for a client that keeps no copy

    def digest(self) -> str:
        """SHA-256 of what it does: its node and call.

        Which rows the client has is not part of it: a client that repeats the request may have received more of them.
        """
        return hashlib.sha256(_ENCODER.encode([self.node, self.call])).hexdigest()


_ENCODER = msgspec.json.Encoder(order="deterministic")
