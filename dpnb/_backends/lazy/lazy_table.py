"""Tables that stay in the engine which holds them: polars, DuckDB, Spark.  Nothing comes out of it but sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeVar

from dpnb._backends.lazy.combine import join, part
from dpnb._backends.lazy.engines.engine import Engine, Frame, Paths
from dpnb._backends.lazy.execute import SelectedRows, added_up, chosen_rows, refuse_query
from dpnb._backends.lazy.files import digest_of, paths_of
from dpnb._backends.lazy.lazy_columns import LazyTable, Share, engine_table
from dpnb._backends.lazy.partitions import GroupFinder as Discovered
from dpnb._backends.lazy.partitions import counted, groups_of_units
from dpnb._backends.lazy.stability import refuse_unstable
from dpnb._backends.lazy.unit_budgets import UnitSpending
from dpnb._backends.lazy.unit_norms import unit_norms_squared
from dpnb._backends.protocol import Groups, Schemas, Units
from dpnb._backends.quiet import run_silently
from dpnb._backends.sources import SourceResolver
from dpnb._backends.unit_vectors import Sums
from dpnb._compile.linear import LinearQuery
from dpnb._plan.measurements import Discovery
from dpnb._plan.plan import Join, PartSource
from dpnb.accounting.individual import OnExhausted, UnitChargeTerms
from dpnb.copying import NotCopyable
from dpnb.errors import SchemaError

T = TypeVar("T")


class LazyBackend(SourceResolver[LazyTable]):
    """Tables of one engine, and the joins and parts that were asked about; no row is read for them.

    Parameters
    ----------
    engine : Engine
    tables : mapping of str to native frame
    schemas : dict of str to dict
    units : dict of str to PrivacyUnit

    Raises
    ------
    SchemaError
        A column is missing, or of a type that cannot hold what the schema says; or the plan of a table shows that it
        need not give the same rows each time.
    """

    def __init__(
        self, engine: Engine, tables: Mapping[str, Any], schemas: Schemas, units: Units, share: Share | None = None
    ) -> None:
        self.engine, self._natives, self._units = engine, tables, units
        self._paths: dict[str, Paths] = {}

        def described() -> dict[str, LazyTable]:
            for name, table in tables.items() if share is None else ():
                refuse_unstable(name, table, engine)
                self._paths[name] = paths_of(table, engine)
            return {
                name: engine_table(engine, table, schemas[name], units[name], share) for name, table in tables.items()
            }

        super().__init__(self._run(described), schemas)

    def _run(self, work: Callable[[], T]) -> T:
        natives = list(self._natives.values())
        return run_silently(work, self.engine.name, natives, lambda work: self.engine.run(work, natives))

    def settle(self) -> None:
        """Wait until what an interrupt left behind has ended."""
        self.engine.settle()

    def files(self) -> str | None:
        """A digest that identifies the files that are read, unchanged; None if there are none to identify."""
        return digest_of(self._paths)

    @cached_property
    def shares(self) -> list[LazyBackend]:
        """The same tables, each of some of the units: so few that the engine can put their rows in order in memory.

        A sum over units is the sum over shares of them.  How many rows there are decides how often the tables are read
        and nothing else.
        """
        most = self.engine.rows_at_once
        if most is None or any(unit.column is None for unit in self._units.values()):
            return [self]
        shares = -(-max(map(self.engine.rows, self._natives.values())) // most)
        if shares <= 1:
            return [self]
        given = self.engine, self._natives, self._schemas, self._units
        return [LazyBackend(*given, (share, shares)) for share in range(shares)]

    def _joined(self, left: LazyTable, right: LazyTable, source: Join) -> LazyTable:
        return join(left, right, (self.schema(source.left), self.schema(source.right)), source)

    def _part(self, whole: LazyTable, source: PartSource) -> LazyTable:
        return part(whole, self.schema(source.source), source)

    def refuse(self, query: LinearQuery) -> None:
        """Refuse what only a table in memory can answer; see `refuse_query`."""
        refuse_query(query, self.schema(query.plan.source), self.engine.name)

    def refuse_individual(self, mode: OnExhausted) -> None:
        """Refuse what each unit has spent where rows have no name, or where a unit would count in part.

        Raises
        ------
        SchemaError
        """
        where = self.engine.name
        if not all(self._made[name].has_units for name in self._names):
            raise SchemaError(
                f"accounting='individual': needs privacy_unit= on {where}, where rows come in any order and nothing "
                "tells one from another; name the column that says whose a row is"
            )
        if mode == "clip":
            raise SchemaError(
                f"on_exhausted: 'clip' needs a table in memory or on Dask, and this one is on {where}; take 'skip' or "
                "'drop'"
            )

    def chosen(self, query: LinearQuery) -> SelectedRows:
        """The rows that count for a question."""
        source = query.plan.source
        return chosen_rows(query, self.rows(source), self.schema(source))

    def discovered(self, query: LinearQuery) -> Discovered:
        """Which unit is in which group."""
        source = query.plan.source
        return groups_of_units(query, self.rows(source), self.schema(source))

    def sums(self, query: LinearQuery) -> Sums:
        """The exact sums of a question."""
        return self._run(lambda: added_up(query, (share.chosen(query) for share in self.shares)))

    def groups(self, query: LinearQuery) -> Groups:
        """Every group that some unit has."""
        return self._run(lambda: counted(share.discovered(query) for share in self.shares))

    def unit_budgets(self, budget: Fraction, mode: OnExhausted) -> LazyUnitBudgets:
        """What each unit has to spend, before anything was spent."""
        return LazyUnitBudgets(self, UnitSpending.nothing(self.engine, budget, mode))


@dataclass(frozen=True, repr=False)
class LazyUnitBudgets(NotCopyable):
    """What each unit of tables in an engine has spent, as a table there for each share of the units.

    Parameters
    ----------
    tables : InEngine
    start : Spent
        Of every share before the first question.
    spent : tuple of Spent
        Of each share after it.
    """

    tables: LazyBackend
    start: UnitSpending
    spent: tuple[UnitSpending, ...] = ()

    def after_query(self, query: LinearQuery, terms: UnitChargeTerms) -> tuple[Sums | Groups, LazyUnitBudgets]:
        """What a question measures over those who can pay for it, and the unit budgets after it."""
        return self.tables._run(lambda: self._asked(query, terms))

    def _asked(self, query: LinearQuery, terms: UnitChargeTerms) -> tuple[Sums | Groups, LazyUnitBudgets]:
        after: list[UnitSpending] = []

        def active(squares: Frame, spent: UnitSpending) -> Frame:
            units, left = spent.paid(squares, terms)
            after.append(left)
            return units

        def chosen(share: LazyBackend, spent: UnitSpending) -> SelectedRows:
            rows = share.chosen(query)
            return rows.of(active(unit_norms_squared(query, rows), spent))

        def discovered(share: LazyBackend, spent: UnitSpending) -> Discovered:
            groups = share.discovered(query)
            return groups.of(active(groups.squares(), spent))

        found: Sums | Groups
        shares, spent = self.tables.shares, self._by_share()
        if isinstance(query.plan.aggregation, Discovery):
            found = counted(map(discovered, shares, spent))
        else:
            found = added_up(query, map(chosen, shares, spent))
        return found, replace(self, spent=tuple(after))

    def after_charge(self, loss: float) -> LazyUnitBudgets:
        """The unit budgets after everybody was charged the same."""
        return self.tables._run(lambda: replace(self, spent=tuple(one.after_charge(loss) for one in self._by_share())))

    def _by_share(self) -> tuple[UnitSpending, ...]:
        return self.spent or (self.start,) * len(self.tables.shares)
