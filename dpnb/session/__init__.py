"""The object that an analyst holds.

``base``         the verbs of a session, a sub-session and a part
``session``      the arguments that a curator declares, and the session made from them
``declaration``  a session declared in a TOML file; ``toml_lines`` finds the line of a key
``rehearsal``    mock data drawn from the schema
``snapshot``     a session as one JSON-safe value, from which text, HTML, gauges and panel are rendered
"""

from dpnb._core.query import Query
from dpnb.session.base import BaseSession
from dpnb.session.session import Session

__all__ = ["BaseSession", "Query", "Session"]
