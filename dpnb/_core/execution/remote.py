"""Charges and answers requests through the service that holds the table."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import cast

from dpnb._core.execution.protocol import RemoteCalls
from dpnb._core.planned_batch import PlannedBatch
from dpnb._core.pricing.target import Target
from dpnb._core.selection.terms import SelectionTerms
from dpnb._plan.measurements import AnyView
from dpnb._plan.plan import Plan
from dpnb.accounting.exact import to_text
from dpnb.ledger import Charge, Ledger
from dpnb.wire.amounts import cap_to_text
from dpnb.wire.calls import Release, ReleaseBatch, TargetArguments, TargetKind


class RemoteExecution:
    """Has the service charge and answer requests.

    Parameters
    ----------
    calls : RemoteCalls
        The service.
    ledger : Ledger
        The session's copy of the ledger, to which `calls` adds rows.
    """

    def __init__(self, calls: RemoteCalls, ledger: Ledger) -> None:
        self._calls, self._ledger = calls, ledger

    def release(
        self,
        plan: Plan,
        view: AnyView,
        target: Target,
        *,
        inside: str = "",
        combined: bool = False,
        at_most: Fraction | None = None,
    ) -> Charge:
        """Charge a release and answer it."""
        limit = None if at_most is None else cap_to_text(at_most)
        (row,) = self._calls.run(Release(plan, view, target_arguments(target), inside, combined, limit))
        return self._ledger.by_id((row,))[0]

    def release_batch(
        self, planned: PlannedBatch, targets: Sequence[Target], *, at_most: Fraction | None = None
    ) -> list[Charge]:
        """Charge all tables of a batch, and answer them."""
        limit = None if at_most is None else cap_to_text(at_most)
        rows = self._calls.run(ReleaseBatch(planned.requested, tuple(map(target_arguments, targets)), limit))
        return self._ledger.by_id(rows)

    def select(self, terms: SelectionTerms, epsilon: Fraction) -> Charge:
        """Charge a selection of the largest groups and answer it."""
        (row,) = self._calls.run(terms.call(to_text(epsilon)))
        return self._ledger.by_id((row,))[0]


def target_arguments(target: Target) -> TargetArguments:
    """A target as the service receives it."""
    return TargetArguments(
        kind=cast(TargetKind, target.kind),
        amount=None if target.amount is None else to_text(target.amount),
        amounts=tuple((label, to_text(amount)) for label, amount in target.amounts),
        confidence=to_text(target.confidence),
        simultaneous=target.simultaneous,
        final=target.final,
        groups=target.groups,
    )
