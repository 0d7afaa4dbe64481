"""The ledger: an SQLite file with one row for each request, written before any row of the private table is read.

A row is *reserved* (charged, durable), then *released* (it contains the noisy values) or *failed* (still charged).  A
crash leaves it reserved.  Nothing is shown before it is released in the ledger.  So repeating a request that was
charged but never answered answers it under the same charge, and the first answer written is the only one ever shown.

Launches and closes of interactive mechanisms are rows too; the column `node` connects rows to launches.

The ledger stores nothing computed from the private table except released values.
"""

from __future__ import annotations

from dpnb.ledger.charge import Charge, ChargeSummary
from dpnb.ledger.connection import MEMORY, ProcessLock, refuse_unreadable
from dpnb.ledger.ledger import Ledger
from dpnb.ledger.origin import ROOT, RequestOrigin, node_of, parent_launch, requested_by

__all__ = [
    "MEMORY",
    "ROOT",
    "Charge",
    "ChargeSummary",
    "Ledger",
    "ProcessLock",
    "RequestOrigin",
    "node_of",
    "parent_launch",
    "refuse_unreadable",
    "requested_by",
]
