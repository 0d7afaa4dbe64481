"""The only place where plan, noise, filter and ledger meet.

``session``     the object an analyst holds
``questions``   what is known of a question by now, and what its errors would be
``previews``    what a release would cost and give, and why
``reading``     what looks at a question say
``releases``    the order charge, read, noise, release
``tables``      its private tables, declared and prepared
``query``       a question that can be previewed and released
``target``      what a release is asked for: mu=, rho=, epsilon=, share= or within=
``knowledge``   what the ledger already knows of a question, and of how many rows there are
``rehearsal``   mock data drawn from the schema
``pledge``      what a promise is about, as the ledger keeps it, written and read
``arguments``   the curator's arguments, checked before anything is opened
``declaration``   the same stated in a TOML file
``toml_lines``  on which line of a TOML file a key is
``mechanisms``  what was launched in it: sub-sessions, partitions, scans, noise reductions, descents
``tree``        every launch of a ledger, and how its branches hang together
``account``     the promise and how it stands, rebuilt from the ledger
``individual``  what each unit has paid, where each has a budget of its own, rebuilt from ledger and table
``individual_words``  who takes part, as far as everybody may know
``comparison``  the same history through every filter and odometer
``timeline``    how they stood after requests, as many as a picture shows
``log``         every request in words, with its cost, its error and the cell that asked; and what was refused
``launch_words``  launches, ends and comparisons in words
``plain_words``   the promise and what to do first, in plain words
``explanations``  one sentence for every refusal and warning
``state``       a session as one JSON-safe snapshot
``still``       the same as text, and as HTML that stays true in a closed notebook
``statement``   what one person has paid, for that person alone: the curator's, outside any session
``statement_words``  the same as text
``check``       how much of a table would count, for its curator alone: outside any session
``check_advice``  what to do about what would not
``check_words``   a check as text
``table_files``  a table that a curator keeps in a file
``kernel``      whether this process belongs to a notebook
``live``        which sessions this process has, who wants to hear of changes, and which cell is asking
"""

from dpnb.session.query import Query
from dpnb.session.session import Session

__all__ = ["Query", "Session"]
