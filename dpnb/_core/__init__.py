"""Tables, accountant, pricing and releases: the only place where plan, noise, filter and ledger meet.

``core``             what answers and charges for a session, a sub-session or a part
``options``          the curator's arguments, checked before anything is opened
``tables``           the private tables of a session, declared and prepared; ``source_files`` they were read from
``ledger_metadata``  what a ledger is about, as it is stored
``accountant/``      filter and odometers, rebuilt from the ledger
``unit_budgets``     individual accounting: what each unit has spent
``pricing/``         what a query would cost and what its errors would be, without the table
``releases``         the order charge, read, noise, release
``history/``         every request in words
``query``            a query that can be previewed and released
``explain``          the guarantee and the next steps in words
``registry``         which sessions this process has, and who is notified of changes
"""
