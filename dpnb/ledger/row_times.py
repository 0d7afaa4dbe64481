"""The times of a ledger's rows, by who may see them.

A clock may go back, and an approval that has lapsed must not hold again: so no row has an earlier time than the rows
before it.  In reserved mode an analyst sees the rows of one part of the budget alone, and a time that was taken from a
row of somebody else would show it.  So such a part has times of its own.
"""

from __future__ import annotations

from datetime import UTC, datetime

from dpnb.ledger.charge import GRANT, LAUNCH, ChargeSummary
from dpnb.ledger.origin import ROOT, UNCOUNTED, current_origin, node_of, parent_launch


class RowTimes:
    """The latest times of the rows that were added."""

    def __init__(self) -> None:
        self.last_id = 0
        self._scopes: dict[int, str] = {}  # of launches and grants inside a reserved part, by the ids of their rows
        self._latest: dict[str, str] = {}

    def scope(self, node: str) -> str:
        """The node of the reserved part that contains a node; `ROOT` for one outside all of them."""
        if not self._scopes or node == UNCOUNTED:
            return ROOT
        parent = parent_launch(node)
        return ROOT if parent is None else self._scopes.get(parent[0], ROOT)

    def latest(self, scope: str) -> str:
        """The latest time in a part; for `ROOT`, of all rows.  Empty without rows."""
        return self._latest.get(scope, "")

    def add(self, charge: ChargeSummary, time: str) -> None:
        """Add the next row."""
        scope, details = self.scope(charge.node), charge.launch or {}
        if charge.kind == GRANT and (details.get("mode"), details.get("grant")) == ("reserved", "analyst"):
            self._scopes[charge.id] = node_of(charge.id)
        elif charge.kind == LAUNCH and scope != ROOT:
            self._scopes[charge.id] = scope
        for one in {scope, ROOT}:
            self._latest[one] = max(time, self.latest(one))
        self.last_id = charge.id


def time_of_row() -> str:
    """The time of a new row.

    Of a request to a service, when it was received: the time of the charge would tell an analyst, to the millisecond,
    when the requests before it ended, and how long that takes depends on rows.
    """
    origin = current_origin()
    received = None if origin is None else origin.received
    return (received or datetime.now(UTC)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
