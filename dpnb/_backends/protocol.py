"""The interface between a session and its tables, wherever their rows are."""

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


FIELDS_AS_TEXTS = "fields as texts"
"""Identifies in a ledger how text files are read: the choice of a unit's rows depends on how its name is read."""


class TableBackend(Protocol):
    """The tables of one session.  A private value: everything it returns is private until noise is added."""

    @property
    def engine_label(self) -> str:
        """The engine that computes sums, in words: ``memory``, ``polars``, ``DuckDB``, ``Spark`` or ``Dask``."""
        ...

    def refuse(self, query: LinearQuery) -> None:
        """Refuse, when a query is built, what this backend cannot compute; raises `UnsupportedError`."""
        ...

    def refuse_individual(self, mode: OnExhausted) -> None:
        """Refuse individual accounting, when a session is made, if this backend cannot offer it."""
        ...

    def ready(self) -> None:
        """Wait until interrupted work has ended, and check the engine; called before any charge that needs rows.

        Raises `SchemaError` if a setting or function of the engine was changed so that queries mean something else.
        """
        ...

    def files(self) -> str | None:
        """What identifies the files that are read and their state, or how texts were read; None if there are none."""
        ...

    def sums(self, query: LinearQuery) -> Sums:
        """The exact sums of a query, shape (measured cells * slots,)."""
        ...

    def groups(self, query: LinearQuery) -> Groups:
        """Every group that some unit has, in an order that does not depend on rows."""
        ...

    def unit_budgets(self, budget: Fraction, mode: OnExhausted) -> UnitBudgets:
        """The budgets of all units, before any charge."""
        ...


class UnitBudgets(Protocol):
    """The budgets of all units: an immutable value, which each query replaces.  SENSITIVE: never shown."""

    def after_query(self, query: LinearQuery, terms: UnitChargeTerms) -> tuple[Sums | Groups, Self]:
        """The result of a query over its active units, and the unit budgets after it."""
        ...

    def after_charge(self, loss: float) -> Self:
        """The unit budgets after the same charge to every unit."""
        ...
