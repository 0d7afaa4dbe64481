"""The names of the numbers of an answer, and the table that they form."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpnb._plan.expressions.dtypes import Timestamp
from dpnb._plan.expressions.nodes import Seconds
from dpnb._plan.expressions.rules import dtype_of
from dpnb._plan.measurements import (
    AnyView,
    CoefficientsView,
    ColumnsView,
    JointAggregation,
    Measured,
    MomentsView,
    QuantilesView,
    QuantileTree,
    SlopesView,
    StepView,
)
from dpnb.results.estimates.noisy import IntervalArrays
from dpnb.schema import Key, Schema
from dpnb.times import UTC_TIME, Zone

MATRICES = ("corr matrix", "cov matrix")


def outputs_of(view: AnyView) -> tuple[str, tuple[Key, ...]] | None:
    """Name and labels of the numbers of each group; None for a single number without a name."""
    match view:
        case ColumnsView(columns):
            return "statistic", tuple(named.name for named in columns)
        case QuantilesView(at, single=False):
            return "quantile", at
        case SlopesView(labels):
            return "term", labels[1:]
        case MomentsView("regression"):
            return "term", ("intercept", *view.labels[1:])
        case MomentsView(statistic) if statistic in MATRICES:
            return "pair", tuple(f"{view.labels[i]}, {view.labels[j]}" for i, j in _places(view))
        case StepView(terms, products):
            pairs = [f"{a}, {b}" for index, a in enumerate(terms) for b in terms[index:]]
            parts = ("information", "products") if products else ("information",)
            return "sum", (
                *(f"score: {term}" for term in terms),
                *(f"{part}: {pair}" for part in parts for pair in pairs),
            )
        case CoefficientsView(terms, classes, chains):
            one = [f"{key}: {term}" for key in classes for term in terms] if classes else list(terms)
            return "term", tuple(
                f"chain {n}: {name}" if chains > 1 else name for n in range(1, chains + 1) for name in one
            )
    return None


def dates_of(aggregation: Measured, view: AnyView, schema: Schema) -> tuple[Zone | None, ...]:
    """For each number of a group that is a point in time, in seconds since 1970, its zone; empty if none is."""
    parts = [part.aggregation for part in aggregation.parts] if isinstance(aggregation, JointAggregation) else []
    if isinstance(view, ColumnsView):
        dates = tuple(_zone_of(parts[named.part], schema) for named in view.columns)
        return dates if any(dates) else ()
    zone = _zone_of(aggregation, schema) if isinstance(aggregation, QuantileTree) else None
    return () if zone is None else (zone,) * (len(view.at) if isinstance(view, QuantilesView) else 1)


def _zone_of(aggregation: Measured, schema: Schema) -> Zone | None:
    """The zone of the dates of which quantiles are measured; None for anything else."""
    column = aggregation.column if isinstance(aggregation, QuantileTree) else None
    kind = dtype_of(column.inner, schema) if isinstance(column, Seconds) else None
    return (kind.zone or UTC_TIME) if isinstance(kind, Timestamp) else None


def pairs_of(view: MomentsView) -> list[tuple[int, int]]:
    """Indices of the measured columns of each number of a matrix: each pair once, for covariances also each column."""
    return [(view.columns[i], view.columns[j]) for i, j in _places(view)]


def _places(view: MomentsView) -> list[tuple[int, int]]:
    """Row and column of each number of a matrix, which is symmetric; a correlation of a column with itself is 1."""
    size, above = len(view.columns), int(view.statistic == "corr matrix")
    return [(i, j) for i in range(size) for j in range(i + above, size)]


@dataclass(frozen=True)
class TableLayout:
    """The numbers of an ungrouped answer as a table."""

    name: str  # of the rows
    rows: tuple[str, ...]
    outputs: tuple[str, tuple[str, ...]]  # name and labels of the columns
    # shape (rows, columns): index of the number in each place; -1 for a number that is 1 by definition
    places: np.ndarray

    def arranged(self, arrays: IntervalArrays) -> IntervalArrays:
        """Estimates of shape (1, numbers) as a table of shape (rows, columns)."""

        def placed(array: np.ndarray, constant: float) -> np.ndarray:
            return np.asarray(np.append(array[0], constant)[self.places])  # the last element has the index -1

        value, low, high = (placed(array, 1.0) for array in (arrays.value, arrays.low, arrays.high))
        first, second, third = (placed(array, 1.0) for array in arrays.unclipped)
        whole_range = placed(arrays.has_whole_range, 0.0).astype(bool)
        return IntervalArrays(value, low, high, placed(arrays.noise_scale, 0.0), (first, second, third), whole_range)


def table_of(view: AnyView) -> TableLayout | None:
    """The table that the numbers of an ungrouped answer form; None if they form none."""
    match view:
        case ColumnsView(columns, _, rows, statistics) if rows and len(columns) == len(rows) * len(statistics):
            places = np.arange(len(columns)).reshape(len(rows), len(statistics))
            return TableLayout("column", rows, ("statistic", statistics), places)
        case MomentsView(statistic) if statistic in MATRICES:
            places = np.full((len(view.labels),) * 2, -1)
            for index, (i, j) in enumerate(_places(view)):
                places[i, j] = places[j, i] = index
            return TableLayout("column", view.labels, (statistic.removesuffix(" matrix"), view.labels), places)
    return None
