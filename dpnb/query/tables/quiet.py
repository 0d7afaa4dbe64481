"""Tables in an engine, which says nothing while it is asked; see `dpnb.query.quiet`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from dpnb.accounting.individual import OnExhausted, Terms
from dpnb.query.linear.query import LinearQuery
from dpnb.query.quiet import Hush
from dpnb.query.tables.protocol import Groups, Purses, Tables
from dpnb.query.unit_vectors import Sums


@dataclass(frozen=True, repr=False)
class Quiet:
    """The tables of a session, quiet.

    Parameters
    ----------
    tables : Tables
    hush : Hush
    """

    tables: Tables
    hush: Hush

    def refuse(self, query: LinearQuery) -> None:
        """Refuse what cannot be asked there."""
        self.tables.refuse(query)

    def refuse_purses(self, mode: OnExhausted) -> None:
        """Refuse to keep there what each unit has spent."""
        self.tables.refuse_purses(mode)

    def sums(self, query: LinearQuery) -> Sums:
        """The exact sums of a question."""
        with self.hush():
            return self.tables.sums(query)

    def groups(self, query: LinearQuery) -> Groups:
        """Every group that some unit has."""
        with self.hush():
            return self.tables.groups(query)

    def purses(self, budget: Fraction, mode: OnExhausted) -> QuietPurses:
        """What each unit has to spend, before anything was spent."""
        with self.hush():
            return QuietPurses(self.tables.purses(budget, mode), self.hush)


@dataclass(frozen=True, repr=False)
class QuietPurses:
    """What each unit has spent, quiet.

    Parameters
    ----------
    purses : Purses
    hush : Hush
    """

    purses: Purses
    hush: Hush

    def asked(self, query: LinearQuery, terms: Terms) -> tuple[Sums | Groups, QuietPurses]:
        """What a question measures over those who can pay for it, and the purses after it."""
        with self.hush():
            found, after = self.purses.asked(query, terms)
        return found, replace(self, purses=after)

    def charged(self, loss: float) -> QuietPurses:
        """The purses after everybody was charged the same."""
        with self.hush():
            return replace(self, purses=self.purses.charged(loss))
