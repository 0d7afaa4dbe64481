"""Sessions: a private table with a privacy budget.

``base``         the methods that a session, a sub-session and a part share
``batches``      those about several queries at once; ``budget_requests`` those that ask for more budget
``session``      the session of a curator's table
``declaration``  a session declared in a TOML file
``table_contents``  refuses another file under a version that was used
``backup``       a copy of a ledger, in a folder that nobody else can read
``toml_file``    a TOML file whose errors name the line
``rehearsal``    mock data drawn from the schema
``statements``   the method `report`; ``disclosure/`` the disclosure statement that it returns
``snapshot``     the state of a session, from which text, HTML, gauges and panel are rendered
"""

from dpnb.query.query import Query
from dpnb.session.base import BaseSession
from dpnb.session.session import Session

__all__ = ["BaseSession", "Query", "Session"]
