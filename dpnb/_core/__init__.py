"""Tables, accountant, pricing and releases: the only package that combines plans, noise, filter and ledger.

``core``             the core of a session, a sub-session or a part: answers queries and charges them
``options``          validation of the curator's arguments
``tables``           the private tables of a session
``source_files``     the files that they were read from
``ledger_metadata``  the metadata of a ledger
``accountant/``      filter and odometers, rebuilt from the ledger
``unit_budgets``     individual accounting: what each unit has spent
``pricing/``         cost and expected errors of queries, computed without the table
``releases``         releases, and the answers of recorded ones; ``batches`` and ``selections`` likewise
``execution/``       the order charge, read, noise, release; or the service that keeps it
``history/``         every request in words
``reconcile``        earlier answers made consistent, at no cost
``requesting``       requests of analysts for more budget
``explain``          the guarantee and the next steps in words
``registry``         the sessions of this process, and the listeners to their changes
"""
