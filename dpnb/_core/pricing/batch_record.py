"""What a row of the ledger states about the batch that it was measured in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpnb._compile.marginals import Levels
from dpnb.ledger import Charge


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


def batch_of(charge: Charge) -> BatchRecord | None:
    """The batch that a row was measured in; None for any other row.

    ValueError, KeyError or TypeError if the arguments are not those of a request.
    """
    return BatchRecord.from_json(json.loads(charge.arguments).get("batch")) if '"batch"' in charge.arguments else None
