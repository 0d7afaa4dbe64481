"""The filter and the odometers of a session, rebuilt from the ledger; for a service also the parts of its budget."""
