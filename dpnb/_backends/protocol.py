"""What a session asks of its tables, wherever their rows are."""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol, Self

from dpnb._backends.contribution import Integers
from dpnb._backends.unit_vectors import Sums
from dpnb._compile.linear import LinearQuery
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb._plan.schema import Key, Schema
from dpnb.accounting.individual import OnExhausted, UnitChargeTerms

Groups = tuple[list[tuple[Key, ...]], Integers]
"""Keys that some unit has, and the number of units of each."""

Schemas = dict[str, Schema]
Units = dict[str, PrivacyUnit]


class TableBackend(Protocol):
    """The tables of one session.  A private value: everything it returns is private until there is noise on it."""

    def refuse(self, query: LinearQuery) -> None:
        """Refuse, when a question is written, what cannot be asked where the rows are.

        Raises
        ------
        UnsupportedError
        """
        ...

    def refuse_individual(self, mode: OnExhausted) -> None:
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

    def unit_budgets(self, budget: Fraction, mode: OnExhausted) -> UnitBudgets:
        """What each unit has to spend, before anything was spent."""
        ...


class UnitBudgets(Protocol):
    """What each unit has spent: one value, which a question replaces by another.  SENSITIVE: never shown."""

    def after_query(self, query: LinearQuery, terms: UnitChargeTerms) -> tuple[Sums | Groups, Self]:
        """What a question measures over those who can pay for it, and the unit budgets after it."""
        ...

    def after_charge(self, loss: float) -> Self:
        """The unit budgets after everybody was charged the same."""
        ...
