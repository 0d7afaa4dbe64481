"""The only place where plan, noise, filter and ledger meet.

``session``     the object an analyst holds
``questions``   what is known of a question by now, and what its errors would be
``previews``    what a release would cost and give, and why
``releases``    the order charge, read, noise, release
``tables``      its private tables, declared and prepared
``query``       a question that can be previewed and released
``target``      what a release is asked for: mu=, rho=, epsilon=, share= or within=
``knowledge``   what the ledger already knows of a question, and of how many rows there are
``rehearsal``   mock data drawn from the schema
``state``       a session as one JSON-safe snapshot, and its text and static HTML
``live``        which sessions this process has, and who wants to hear of changes
"""

from dpnb.session.query import Query
from dpnb.session.session import Session

__all__ = ["Query", "Session"]
