"""The observation of a query that a batch made: the weighted least squares estimate from all tables of the batch.

Its noise scale in every cell is known before any noise is drawn (`dpnb._compile.marginals`), and given everything
before the batch, the estimate of a cell is normal around the exact sum with that scale.  So for each cell it is an
observation like any other: it is combined with observations that are made later, whose noise is independent of it, by
inverse variances, and in the confidence sequence of `dpnb.results.observations` its increment ``(y - q)/s^2`` is normal
with variance ``1/s^2`` given the past.  The estimates of different groups are correlated, which intervals of one group
at a time do not use; statistics of several groups at once, such as shares, do not use these observations.

The estimate is a function of released values.  It exists once every table of the batch with the same aggregation is
answered; until then the rows count for nothing but the budget.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpnb._compile import LinearQuery
from dpnb._compile.marginals import Floats, Levels, Marginals
from dpnb._request import BatchTable
from dpnb.accounting.exact import decimal_sqrt_down, exact
from dpnb.accounting.losses import GDP
from dpnb.ledger import Charge, Ledger
from dpnb.results.observations import EstimatedSums, Observation

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
