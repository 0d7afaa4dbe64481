"""Every request of a ledger in words, with its cost, its error and the cell that made it."""
