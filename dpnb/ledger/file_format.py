"""The format of a ledger's file: its number and its tables."""

from dpnb.ledger import charge as row

FORMAT = 10
"""1 to 9 were development versions.  A change in how a plan uses a unit's rows (which count, weights, steps) raises it
too: under individual accounting what each unit has paid is recomputed from the plans."""

TABLES = f"""
CREATE TABLE metadata (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE parameters (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE head (id INTEGER NOT NULL, hash TEXT NOT NULL);
{row.TABLE}
"""
