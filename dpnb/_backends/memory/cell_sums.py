"""The codes of cells, and exact sums of rows by cell, in numpy or by `dpnb._backends.memory.kernels`.  Reads rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpnb._backends.contribution import Integers
from dpnb._backends.memory.kernels import kernels_for
from dpnb.schema import Key

# --- codes of cells and of values to look up --------------------------------------------------------------------------


def combined_codes(codes: list[NDArray[Any]], sizes: list[int]) -> tuple[NDArray[np.int64], int]:
    """Several codes combined into one, the last varying fastest, -1 where any is -1; and the number of combinations.

    Not for sizes whose product exceeds 64 bits; see `dense_codes`.
    """
    combined = codes[0].astype(np.int64)
    missing = combined < 0
    total = sizes[0]
    for code, size in zip(codes[1:], sizes[1:], strict=True):
        combined *= size
        combined += code
        missing |= code < 0
        total *= size
    combined[missing] = -1
    return combined, total


def dense_codes(codes: list[NDArray[Any]]) -> NDArray[np.int64]:
    """Several codes combined into one, numbered densely in the order of the tuples; -1 where any is -1."""
    combined = codes[0].astype(np.int64)
    for code in codes[1:]:
        pair = np.where((combined < 0) | (code < 0), -1, combined * (int(code.max(initial=0)) + 1) + code)
        distinct, dense = np.unique(pair, return_inverse=True)
        combined = dense.reshape(-1) - int(len(distinct) > 0 and distinct[0] < 0)
    return combined


@dataclass(frozen=True)
class LookupKeys:
    """Values of a key column to look up."""

    code_of: Mapping[Key, int]
    # the code for each code of the column, -1 for none; for a numeric column the code of each of `numbers`
    table: NDArray[np.int64]
    numbers: NDArray[np.float64] | None  # the values of a numeric column, ascending; otherwise None

    def of_codes(self, codes: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """The code of each row's value, by the codes of the column; -1 for other values."""
        found: NDArray[np.int64] = self.table[codes]
        return found

    def of_numbers(self, numbers: NDArray[np.float64]) -> NDArray[np.int64]:
        """The code of each row's number; -1 for other numbers."""
        if self.numbers is None or not self.code_of:
            return np.full(len(numbers), -1)
        at = np.clip(np.searchsorted(self.numbers, numbers), 0, len(self.table) - 1)
        return np.where(self.numbers[at] == numbers, self.table[at], -1)


# --- exact sums of rows by cell ---------------------------------------------------------------------------------------


Mask = NDArray[np.bool_]

CHUNK = 2**21
"""Rows summed at a time.  A row's value is at most 2**32 in size, so a chunk's sums are at most 2**53: exact in float64
(which `numpy.bincount` uses).  Sums over chunks are exact in int64 for up to 2**31 rows."""


def sums_and_counts(
    values: NDArray[Any], cells: NDArray[Any] | None, counts: Mask, count: int
) -> tuple[Integers, Integers | None]:
    """The sums of `cell_sums`, and the numbers of rows that count by cell if the same pass yields them, else None."""
    usable = cells is not None and count > 0 and values.dtype == np.int32
    kernels = kernels_for(counts, cells, values) if usable and cells is not None else None
    if kernels is None:
        return cell_sums(values, cells, counts, count), None
    sums = np.zeros((count, 2), np.int64)
    kernels.add(counts, cells, values, sums)
    return sums[:, 0], sums[:, 1]


def cell_sums(values: NDArray[Any] | None, cells: NDArray[Any] | None, counts: Mask, count: int) -> Integers:
    """Exact sums of `values` (of ones for None) by cell over the rows that count, for up to 2**31 rows.

    Where rows count, values are less than 2**31 in size, and cells from 0 to ``count - 1``, of a type that holds
    ``count``; without `cells`, all are 0.
    """
    totals = np.zeros(count, np.int64)
    chunks = [slice(start, start + CHUNK) for start in range(0, len(counts), CHUNK)]
    if cells is None:
        if values is None:
            totals += np.count_nonzero(counts)
        elif values.dtype == np.int32 and (kernels := kernels_for(counts, values)) is not None:
            totals += kernels.total(counts, values)
        else:
            for part in chunks:
                totals += (values[part] * counts[part]).sum(dtype=np.int64)
    elif values is None and count and (kernels := kernels_for(counts, cells)) is not None:
        kernels.count(counts, cells, totals)
    else:
        for part in chunks:
            cell = (cells[part] + 1) * counts[part]  # 0 for rows that do not count
            weights = None if values is None else values[part]
            totals += np.bincount(cell, weights, minlength=count + 1)[1:].astype(np.int64)
    return totals
