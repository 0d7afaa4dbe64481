"""The state of a query: a plan and a view with the observations so far."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import msgspec

from dpnb._compile import LinearQuery
from dpnb._plan.measurements import AnyView, Discovery
from dpnb._plan.plan import Plan, describe_plan, with_once
from dpnb._request import BATCH_TABLE, AnyRequest, BatchTable, CompareWithThreshold, Release, SelectGroups, request_from
from dpnb.accounting.exact import from_text
from dpnb.accounting.grid import delta_down
from dpnb.accounting.losses import GDP
from dpnb.errors import InvalidValueError, PlanError
from dpnb.ledger import Charge
from dpnb.ledger.connection import unreadable
from dpnb.results.observations import CombinedObservations

# --- the request of a row ---------------------------------------------------------------------------------------------


Released = Release | BatchTable
"""The request of a row with a measurement."""


def requested(charge: Charge) -> AnyRequest | BatchTable:
    """The request of a row."""
    try:
        return request_from(charge.request)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise unreadable(f"row {charge.id}", error) from None


def request_of(charge: Charge) -> Released:
    """The request of a release, or of a table of a batch."""
    request = requested(charge)
    if not isinstance(request, Release | BatchTable):
        raise unreadable(f"row {charge.id}", TypeError())
    return request


def batch_table_of(charge: Charge) -> BatchTable | None:
    """The table of a batch that a row was charged for; None of any other row, most of which are not decoded."""
    if not charge.request.startswith(BATCH_TABLE):
        return None
    request = request_of(charge)
    return request if isinstance(request, BatchTable) else None


def plan_of(charge: Charge) -> Plan:
    """The plan of the request of a row."""
    request = requested(charge)
    if not isinstance(request, Release | BatchTable | SelectGroups | CompareWithThreshold):
        raise unreadable(f"row {charge.id}", TypeError())
    return request.plan


# --- the state of a query ---------------------------------------------------------------------------------------------


MIN_DELTA, MAX_DELTA_LENGTH = Fraction(1, 10**300), 1000
"""Smallest failure probability of a discovery, and the largest number of characters in which a plan states it."""


@dataclass(frozen=True)
class QueryState:
    """A plan and a view with the observations so far."""

    query: LinearQuery  # of all cells
    measured: LinearQuery  # of the cells to be measured
    view: AnyView
    refinement: CombinedObservations  # those that can be combined
    is_standalone: bool = False  # a new observation is not combined with earlier ones: see `QueryPricer.observations`

    @property
    def combined(self) -> CombinedObservations:
        """The observations with which a new one is combined."""
        return CombinedObservations((), None, self.query.cells) if self.is_standalone else self.refinement

    @cached_property
    def description(self) -> str:
        """The query in words."""
        words, is_once = (
            describe_plan(self.query.plan, self.view),
            self.query.contribution_bounds.max_rows_per_group == 1,
        )
        return with_once(words, self.query.plan) if is_once else words

    @cached_property
    def cells(self) -> list[int]:
        """Indices of the cells to be measured."""
        subset = self.measured.cell_subset
        return list(range(self.query.cells) if subset is None else subset)

    @cached_property
    def known_loss(self) -> GDP:
        """The loss already paid for the cells to be measured, as far as it reduces the cost."""
        return self.combined.known_loss(self.measured.l2_sensitivity_squared, self.measured.cell_subset)

    @property
    def discovery_delta(self) -> Fraction:
        """The part of the budget's discovery_delta that a discovery uses; at least `MIN_DELTA` and below 1."""
        aggregation = self.query.plan.aggregation
        if not isinstance(aggregation, Discovery):
            return Fraction(0)
        try:
            delta = from_text(aggregation.delta) if len(aggregation.delta) <= MAX_DELTA_LENGTH else Fraction(0)
        except InvalidValueError:
            delta = Fraction(0)
        if not MIN_DELTA <= delta < 1:
            raise PlanError(
                "discover: delta must be an exact number from 1e-300 to 1; got another; give for example 1e-8"
            )
        return delta_down(delta)

    def missing_loss(self, total: GDP) -> GDP:
        """The additional loss of a release at the total loss `total`."""
        squared = max(total.mu_squared - self.known_loss.mu_squared, Fraction(0))
        return GDP.from_mu_squared(squared, self.discovery_delta)
