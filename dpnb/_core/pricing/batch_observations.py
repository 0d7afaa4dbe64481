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

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpnb._compile import LinearQuery
from dpnb._compile.marginals import Floats, Levels, Marginals
from dpnb.accounting.exact import decimal_sqrt_down, exact
from dpnb.accounting.losses import GDP
from dpnb.ledger import Charge, Ledger, refuse_unreadable
from dpnb.results.observations import EstimatedSums, Observation

# --- the record of a batch in the ledger ------------------------------------------------------------------------------


@dataclass(frozen=True)
class BatchRecord:
    """The place of a measured table in its batch.

    The rows of a batch are written in one transaction, so their ids are consecutive.
    """

    index: int
    count: int  # number of rows of the batch
    start: int  # index of the first row with the same aggregation
    sizes: tuple[int, ...]  # number of keys of each level
    tables: tuple[Levels, ...]  # of the aggregation: the indices of their levels, in the order of their groups

    def to_json(self) -> dict[str, Any]:
        """A JSON-safe form."""
        return {name: getattr(self, name) for name in ("index", "count", "start", "sizes", "tables")}

    @staticmethod
    def from_json(content: Mapping[str, Any] | None) -> BatchRecord | None:
        """Read what `to_json` wrote; None for a row that is not part of a batch."""
        if content is None:
            return None
        index, count, start = (int(content[name]) for name in ("index", "count", "start"))
        tables = tuple(tuple(int(level) for level in table) for table in content["tables"])
        return BatchRecord(index, count, start, tuple(int(size) for size in content["sizes"]), tables)

    @property
    def table(self) -> Levels:
        """The levels of this row's table, in the order of its groups."""
        return self.tables[self.index - self.start]

    def all_ids(self, charge: Charge) -> tuple[int, ...]:
        """Ids of all rows of the batch."""
        first = charge.id - self.index
        return tuple(range(first, first + self.count))

    def ids(self, charge: Charge) -> tuple[int, ...]:
        """Ids of the rows with the same aggregation, in the order of `tables`."""
        first = charge.id - self.index + self.start
        return tuple(range(first, first + len(self.tables)))


def record_of(charge: Charge) -> BatchRecord | None:
    """The batch that a row was measured in; None for any other row."""
    with refuse_unreadable(f"row {charge.id}"):
        is_of_batch = '"batch"' in charge.arguments  # most rows are not, and parsing takes longer
        return BatchRecord.from_json(json.loads(charge.arguments).get("batch")) if is_of_batch else None


# --- the observation of a query that a batch made ---------------------------------------------------------------------


def rows_of_batch(ledger: Ledger, charge: Charge, record: BatchRecord) -> list[Charge]:
    """The rows of a batch with the same aggregation, if all of them are answered; otherwise an empty list."""
    rows = ledger.by_id(record.ids(charge))
    return rows if all(row.measurement is not None for row in rows) else []


def batch_observation(query: LinearQuery, record: BatchRecord, rows: Sequence[Charge]) -> Observation:
    """The observation of a query by a batch.

    `query` is that of a row of the batch, whose place is `record`; `rows` are those with the same aggregation, all
    answered.
    """
    tables = [(table, row.measurement) for table, row in zip(record.tables, rows, strict=True) if row.measurement]
    sigmas = [measurement.sigma for _, measurement in tables]
    measured = {
        tuple(sorted(table)): ascending(measurement.to_floats(), table, record.sizes) for table, measurement in tables
    }
    design = Marginals(record.sizes, tuple(measured))
    precisions, scale = relative_precisions(design, record.tables, sigmas)
    own = tuple(sorted(record.table))
    values = design.estimate(own, measured, precisions)
    order = [own.index(level) for level in record.table]
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
