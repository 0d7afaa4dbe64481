"""Tables, accountant, pricing and releases: the only package that combines plans, noise, filter and ledger."""
