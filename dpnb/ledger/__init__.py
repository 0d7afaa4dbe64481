"""The ledger remembers: an SQLite file with one row for each request, written before a row of the table is read.

A row is *reserved* (charged, durable), then *released* (the noisy values are in it) or *failed* (still charged).  A
crash leaves it reserved.  Nothing is shown before it is released here, so whoever repeats a request that was charged
but never answered gets it answered under the same charge, and the first answer written is the only one ever shown.

Launches of interactive mechanisms are rows too, and so is the end of one; `branch` says how the rows hang together.

It stores nothing computed from rows but released values.
"""

from __future__ import annotations

from dpnb.ledger.branch import TRUNK, branch_of, launch_of
from dpnb.ledger.charge import Charge, Entry
from dpnb.ledger.connection import MEMORY
from dpnb.ledger.ledger import Ledger
from dpnb.ledger.own_lock import OwnLock
from dpnb.ledger.readable import readable

__all__ = ["MEMORY", "TRUNK", "Charge", "Entry", "Ledger", "OwnLock", "branch_of", "launch_of", "readable"]
