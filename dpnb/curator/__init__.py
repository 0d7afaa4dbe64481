"""The curator's commands, outside any session: a draft of a declaration, its check, statements and audits.

``statement``    what one person has been charged, for that person alone; ``statement_text`` formats it
``disclosure``   the disclosure statement of a ledger, and its comparison with the ledger
``audit``        whether every charge was within the budgets; ``audit_scopes`` what is added up
``check``        how much of a table would count; ``check_advice`` what to change, ``check_text`` formats it
``draft``        a declaration to complete; ``draft_toml`` is its text
``tally``        what the rows of a table count as
``kernel``       whether this process belongs to a notebook
"""
