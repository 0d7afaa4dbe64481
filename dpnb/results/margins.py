"""A released table with its margins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpnb._plan.schema import Key
from dpnb.results.batch import BatchAnswer
from dpnb.results.estimates.noisy import IntervalArrays
from dpnb.results.table import Estimates


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class TableWithMargins(Estimates):
    """Estimates by group with their totals, which add up for counts and sums.

    It is displayed and exported like any other answer.  The table and each of its margins are ordinary answers in
    `batch`, which can be refined.

    Parameters
    ----------
    batch : BatchAnswer
        The answers: the table, then the totals of its rows, the totals of its columns, and the grand total; for a table
        without columns the table and the grand total.

    Examples
    --------
    >>> answer = dpnb.crosstab(df["plan"], df["age"] > 65, margins=True).release(share=0.1)
    >>> len(answer.batch)
    4
    """

    batch: BatchAnswer


def table_with_margins(batch: BatchAnswer, name: str) -> TableWithMargins:
    """The table of a batch of cells, rows, columns and total, in this order (without columns: of cells and total)."""
    cells = batch.answers[0]
    has_columns = len(batch.answers) > 2
    offsets = np.cumsum([0, *(len(answer.keys) for answer in batch.answers)])
    keys: list[tuple[Key, ...]] = []
    order: list[int] = []

    def add(key: tuple[Key, ...], answer: int, row: int) -> None:
        keys.append(key)
        order.append(int(offsets[answer]) + row)

    if has_columns:
        _, rows, columns, _ = batch.answers
        for row, outer in enumerate(rows.keys):
            for column, inner in enumerate(columns.keys):
                add((*outer, *inner), 0, row * len(columns.keys) + column)
            add((*outer, name), 1, row)
        margin = _margin(name, len(cells.names) - 1)
        for column, inner in enumerate(columns.keys):
            add((*margin, *inner), 2, column)
        add((*margin, name), 3, 0)
    else:
        for row, key in enumerate(cells.keys):
            add(key, 0, row)
        add(_margin(name, len(cells.names)), 1, 0)
    outputs = range(cells.arrays.value.shape[1])
    anytime = [answer.anytime_arrays or answer.arrays for answer in batch.answers]
    ids = [one for answer in batch.answers for one in answer.measurement_ids]
    return TableWithMargins(
        description=f"{cells.description}, with margins",
        names=cells.names,
        keys=tuple(keys),
        outputs=cells.outputs,
        arrays=_stacked([answer.arrays for answer in batch.answers]).take(order, outputs),
        anytime_arrays=_stacked(anytime).take(order, outputs),
        confidence=cells.confidence,
        simultaneous=cells.simultaneous,
        notice=cells.notice,
        measurement_ids=tuple(ids[index] for index in order),
        is_refined=False,
        is_two_way=has_columns and cells.outputs is None,
        dates=cells.dates,
        batch=batch,
    )


def _margin(name: str, levels: int) -> tuple[Key, ...]:
    """The key of a total, as in pandas."""
    return (name, *("" for _ in range(levels - 1)))


def _stacked(parts: list[IntervalArrays]) -> IntervalArrays:
    """The rows of several estimates with the same outputs."""
    fields = zip(*((one.value, one.low, one.high, one.noise_scale) for one in parts), strict=True)
    value, low, high, scale = (np.concatenate(field) for field in fields)
    first, second, third = (np.concatenate(field) for field in zip(*(one.unclipped for one in parts), strict=True))
    whole_range = np.concatenate([one.has_whole_range for one in parts])
    return IntervalArrays(value, low, high, scale, (first, second, third), whole_range)
