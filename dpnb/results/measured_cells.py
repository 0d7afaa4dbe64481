"""The measurements that the numbers of an answer are computed from, made when they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Ids = frozenset[tuple[int, int]]


@dataclass(frozen=True)
class MeasuredCells(Sequence[Ids]):
    """The measurements of the cells of one row of the ledger, each of a group of its own.

    Made one by one when they are asked for: an answer may have a hundred thousand groups.
    """

    row: int
    cells: range

    def __len__(self) -> int:
        return len(self.cells)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return MeasuredCells(self.row, self.cells[index])
        return frozenset({(self.row, self.cells[index])})
