"""The state of a query: a plan and a view with the observations so far, also those that a batch made.

The observation of a query that a batch made is the weighted least squares estimate from all tables of the batch.  Its
noise scale in every cell is known before any noise is drawn (`dpnb._compile.marginals`), and given everything before
the batch, the estimate of a cell is normal around the exact sum with that scale.  So for each cell it is an observation
like any other: it is combined with observations that are made later, whose noise is independent of it, by inverse
variances, and in the confidence sequence of `dpnb.results.observations` its increment ``(y - q)/s^2`` is normal with
variance ``1/s^2`` given the past.  The estimates of different groups are correlated, which intervals of one group at a
time do not use; statistics of several groups at once, such as shares, do not use these observations.

The estimate is a function of released values.  It exists once every table of the batch with the same aggregation is
answered; until then the rows count for nothing but the budget.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import msgspec
import numpy as np

from dpnb._compile import LinearQuery
from dpnb._compile.marginals import Floats, Levels, Marginals
from dpnb._plan.measurements import AnyView, Discovery
from dpnb._plan.plan import Plan, describe_plan, with_once
from dpnb._request import BATCH_TABLE, AnyRequest, BatchTable, CompareWithThreshold, Release, SelectGroups, request_from
from dpnb.accounting.exact import decimal_sqrt_down, exact, from_text
from dpnb.accounting.grid import delta_down
from dpnb.accounting.losses import GDP
from dpnb.errors import InvalidValueError, PlanError
from dpnb.ledger import Charge, Ledger
from dpnb.ledger.connection import unreadable
from dpnb.results.observations import CombinedObservations, EstimatedSums, Observation

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


# --- the observation of a query that a batch made ---------------------------------------------------------------------


def rows_of_batch(ledger: Ledger, charge: Charge, table: BatchTable) -> list[Charge]:
    """The rows of a batch with the same aggregation, if all of them are answered; otherwise an empty list."""
    rows = ledger.by_id(table.ids(charge.id))
    return rows if all(row.measurement is not None for row in rows) else []


def batch_observation(query: LinearQuery, table: BatchTable, rows: Sequence[Charge]) -> Observation:
    """The observation of a query by a batch.

    `query` is that of one of its tables; `rows` are those with the same aggregation, all answered.
    """
    measurements = [
        (levels, row.measurement) for levels, row in zip(table.tables, rows, strict=True) if row.measurement
    ]
    sigmas = [measurement.sigma for _, measurement in measurements]
    measured = {
        tuple(sorted(levels)): ascending(measurement.to_floats(), levels, table.sizes)
        for levels, measurement in measurements
    }
    design = Marginals(table.sizes, tuple(measured))
    precisions, scale = relative_precisions(design, table.tables, sigmas)
    own = tuple(sorted(table.levels))
    values = design.estimate(own, measured, precisions)
    order = [own.index(level) for level in table.levels]
    values = values.transpose(*order, values.ndim - 1).ravel()
    sigma = scale_of(design, own, precisions, scale)
    return Observation(as_precise(query, sigma), EstimatedSums(values, sigma), query.l2_sensitivity_squared)


def as_precise(query: LinearQuery, sigma: float) -> GDP:
    """The loss of one measurement of a query with this noise scale: in few digits, and never more than is known."""
    return GDP(decimal_sqrt_down(query.l2_sensitivity_squared / exact(sigma) ** 2))


def relative_precisions(design: Marginals, tables: Sequence[Levels], sigmas: Sequence[float]) -> tuple[Floats, float]:
    """The precisions of the measured tables relative to the most precise one, and its noise scale."""
    smallest = min(sigmas)
    precisions = np.zeros(len(design.subsets))
    for table, sigma in zip(tables, sigmas, strict=True):
        precisions[design.subsets.index(tuple(sorted(table)))] += (smallest / sigma) ** 2
    return precisions, smallest


def scale_of(design: Marginals, table: Levels, precisions: Floats, smallest: float) -> float:
    """The noise scale of the estimates of a table, rounded up."""
    variance = float(design.variances(precisions)[design.subsets.index(table)])
    return smallest * math.sqrt(variance) * (1 + 1e-12)


def ascending(values: Floats, table: Levels, sizes: Sequence[int]) -> Floats:
    """Flat values of a table as an array with its levels in ascending order, and one last axis of slots."""
    array = values.reshape(*(sizes[level] for level in table), -1)
    return array.transpose(*(table.index(level) for level in sorted(table)), array.ndim - 1)
