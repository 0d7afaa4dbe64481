"""Tables in an engine, which says nothing while it is asked; see `dpnb.query.quiet`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from dpnb.accounting.individual import OnExhausted, Terms
from dpnb.query.linear.query import LinearQuery
from dpnb.query.tables.protocol import Groups, Purses, Tables
from dpnb.query.unit_vectors import Sums

Quietly = Callable[[Callable[[], Any]], Any]
"""Does some work in an engine, quietly."""


@dataclass(frozen=True, repr=False)
class Quiet:
    """The tables of a session, quiet.

    Parameters
    ----------
    tables : Tables
    quietly : callable
    """

    tables: Tables
    quietly: Quietly

    def refuse(self, query: LinearQuery) -> None:
        """Refuse what cannot be asked there."""
        self.tables.refuse(query)

    def refuse_purses(self, mode: OnExhausted) -> None:
        """Refuse to keep there what each unit has spent."""
        self.tables.refuse_purses(mode)

    def sums(self, query: LinearQuery) -> Sums:
        """The exact sums of a question."""
        sums: Sums = self.quietly(lambda: self.tables.sums(query))
        return sums

    def groups(self, query: LinearQuery) -> Groups:
        """Every group that some unit has."""
        groups: Groups = self.quietly(lambda: self.tables.groups(query))
        return groups

    def purses(self, budget: Fraction, mode: OnExhausted) -> QuietPurses:
        """What each unit has to spend, before anything was spent."""
        return QuietPurses(self.quietly(lambda: self.tables.purses(budget, mode)), self.quietly)


@dataclass(frozen=True, repr=False)
class QuietPurses:
    """What each unit has spent, quiet.

    Parameters
    ----------
    purses : Purses
    quietly : callable
    """

    purses: Purses
    quietly: Quietly

    def asked(self, query: LinearQuery, terms: Terms) -> tuple[Sums | Groups, QuietPurses]:
        """What a question measures over those who can pay for it, and the purses after it."""
        found, after = self.quietly(lambda: self.purses.asked(query, terms))
        return found, replace(self, purses=after)

    def charged(self, loss: float) -> QuietPurses:
        """The purses after everybody was charged the same."""
        return replace(self, purses=self.quietly(lambda: self.purses.charged(loss)))
