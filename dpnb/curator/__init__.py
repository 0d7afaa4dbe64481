"""The curator's commands, outside any session: a person's statement, and a check of a table.

``statement``    what one person has been charged, for that person alone; ``statement_text`` formats it
``check``        how much of a table would count; ``check_advice`` what to change, ``check_text`` formats it
``tally``        what the rows of a table count as
``unit_name``    the privacy unit that a typed name refers to
``table_files``  reads a table from a file
``kernel``       whether this process belongs to a notebook
"""
