"""The disclosure statement of a ledger as values: ``report``, and its ``parts``."""
