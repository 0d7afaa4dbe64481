"""The ledger remembers: an SQLite file with one row for each request, written before a row of the table is read.

A row is *reserved* (charged, durable), then *released* (the noisy values are in it) or *failed* (still charged).  A
crash leaves it reserved.  Nothing is shown before it is released here, so whoever repeats a request that was charged
but never answered gets it answered under the same charge, and the first answer written is the only one ever shown.

Launches of interactive mechanisms are rows too, and so is the end of one; their `node` says how the rows hang together.

It stores nothing computed from rows but released values.
"""

from __future__ import annotations

from dpnb.ledger.charge import Charge, ChargeSummary
from dpnb.ledger.connection import MEMORY
from dpnb.ledger.ledger import Ledger
from dpnb.ledger.node import ROOT, node_of, parent_launch
from dpnb.ledger.own_lock import ProcessLock
from dpnb.ledger.readable import refuse_unreadable

__all__ = [
    "MEMORY",
    "ROOT",
    "Charge",
    "ChargeSummary",
    "Ledger",
    "ProcessLock",
    "node_of",
    "parent_launch",
    "refuse_unreadable",
]
