"""What charges requests and answers them from rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Protocol, Self

from dpnb._core.planned_batch import PlannedBatch
from dpnb._core.pricing.target import Target
from dpnb._core.selection.terms import SelectionTerms
from dpnb._plan.measurements import AnyView
from dpnb._plan.plan import Plan
from dpnb.ledger import Charge
from dpnb.wire.calls import AnyCall


class Execution(Protocol):
    """Charges requests and answers them; when a method returns, its rows are in the ledger of the session."""

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
        """Charge a release and answer it; see `dpnb._core.releases.ReleasePipeline.release`."""
        ...

    def release_batch(
        self, planned: PlannedBatch, targets: Sequence[Target], *, at_most: Fraction | None = None
    ) -> list[Charge]:
        """Charge all tables of a batch in one transaction, and answer them one after the other."""
        ...

    def select(self, terms: SelectionTerms, epsilon: Fraction) -> Charge:
        """Charge a selection of the largest groups and answer it."""
        ...


class RemoteCalls(Protocol):
    """The service that holds the table, as one session, sub-session or part uses it; see `dpnb.remote`."""

    def run(self, call: AnyCall, is_answer: Callable[[Sequence[Charge]], bool]) -> list[Charge]:
        """Have the service execute a call, and return its rows, which the session's ledger has now.

        `is_answer` says whether rows are those of the call; a `ServiceError` if they are not.  A refusal of the service
        is raised as a local session would raise it; a `DpnbError` also if the service cannot be reached.
        """
        ...

    def at(self, node: str) -> Self:
        """The same service for a sub-session or a part, by its node in the session's ledger."""
        ...
