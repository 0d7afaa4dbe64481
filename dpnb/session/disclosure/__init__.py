"""The disclosure statement of a session, computed from the rows of its ledger alone."""
