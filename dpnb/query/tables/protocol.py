"""What a session asks of its tables, wherever their rows are."""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol, Self

from dpnb.accounting.individual import OnExhausted, Terms
from dpnb.query.contribution import Integers
from dpnb.query.linear.query import LinearQuery
from dpnb.query.schema import Key, Schema
from dpnb.query.unit import PrivacyUnit
from dpnb.query.unit_vectors import Sums

Groups = tuple[list[tuple[Key, ...]], Integers]
"""Keys that some unit has, and the number of units of each."""

Schemas = dict[str, Schema]
Units = dict[str, PrivacyUnit]


class Tables(Protocol):
    """The tables of one session.  A private value: everything it returns is private until there is noise on it."""

    def refuse(self, query: LinearQuery) -> None:
        """Refuse, when a question is written, what cannot be asked where the rows are.

        Raises
        ------
        UnsupportedError
        """
        ...

    def refuse_purses(self, mode: OnExhausted) -> None:
        """Refuse, when a session is made, to keep what each unit has spent.

        Raises
        ------
        SchemaError
        """
        ...

    def settle(self) -> None:
        """Wait until what an interrupt left behind has ended; called before any charge that needs rows."""
        ...

    def files(self) -> str | None:
        """A digest that identifies the files that are read, unchanged; None if there are none to identify."""
        ...

    def sums(self, query: LinearQuery) -> Sums:
        """The exact sums of a question, shape (measured cells * slots,)."""
        ...

    def groups(self, query: LinearQuery) -> Groups:
        """Every group that some unit has, in an order that no row decides."""
        ...

    def purses(self, budget: Fraction, mode: OnExhausted) -> Purses:
        """What each unit has to spend, before anything was spent."""
        ...


class Purses(Protocol):
    """What each unit has spent: one value, which a question replaces by another.  SENSITIVE: never shown."""

    def asked(self, query: LinearQuery, terms: Terms) -> tuple[Sums | Groups, Self]:
        """What a question measures over those who can pay for it, and the purses after it."""
        ...

    def charged(self, loss: float) -> Self:
        """The purses after everybody was charged the same."""
        ...
