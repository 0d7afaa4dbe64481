"""Sessions: a private table with a privacy budget."""

from dpnb.query.query import Query
from dpnb.session.base import BaseSession
from dpnb.session.session import Session

__all__ = ["BaseSession", "Query", "Session"]
