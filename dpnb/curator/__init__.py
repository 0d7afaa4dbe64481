"""The curator's commands, outside any session: a person's statement, and a check of a table.

``statement``    what one person has spent, for that person alone; ``statement_text`` is its text
``check``        how much of a table would count; ``check_advice`` what to change, ``check_text`` its text
``tally``        what the rows of a table count as
``unit_name``    which privacy unit is meant by what somebody types
``table_files``  a table that a curator keeps in a file
``kernel``       whether this process belongs to a notebook
"""
