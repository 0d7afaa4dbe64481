"""The curator's commands, outside any session: a draft of a declaration, its check, statements and audits.

``statement``    what one person has been charged, for that person alone; ``statement_text`` formats it
``report``       the disclosure statement of a ledger; ``verify`` compares one with its ledger
``audit``        whether every charge was within the budgets
``check``        how much of a table would count; ``check_advice`` what to change, ``check_text`` formats it
``draft``        a declaration to complete; ``draft_toml`` is its text, ``draft_text`` what the curator sees
``storage_types``  the types of a table's columns, as its file states them
``tally``        what the rows of a table count as
``unit_name``    the privacy unit that a typed name refers to
``kernel``       whether this process belongs to a notebook
"""
