"""The disclosure statement of a ledger as values."""
