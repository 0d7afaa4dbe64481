"""Tables that stay in the engine which holds them: polars, DuckDB, Spark.  Nothing comes out of it but sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeVar

from dpnb.accounting.individual import OnExhausted, Terms
from dpnb.copying import NotCopyable
from dpnb.errors import SchemaError
from dpnb.query.aggregations import Discovery
from dpnb.query.engine.combine import join, part
from dpnb.query.engine.discover import Groups as Discovered
from dpnb.query.engine.discover import counted, groups_of_units
from dpnb.query.engine.execute import Chosen, added_up, chosen_rows, refuse_query
from dpnb.query.engine.files import Paths, digest_of, paths_of
from dpnb.query.engine.native import Engine, Frame
from dpnb.query.engine.purses import Spent
from dpnb.query.engine.squares import unit_squares
from dpnb.query.engine.stable import refuse_unstable
from dpnb.query.engine.table import EngineTable, Share, engine_table
from dpnb.query.linear.query import LinearQuery
from dpnb.query.plan import Joined, PartOf
from dpnb.query.quiet import quietly
from dpnb.query.tables.protocol import Groups, Schemas, Units
from dpnb.query.tables.sources import Sources
from dpnb.query.unit_vectors import Sums

T = TypeVar("T")


class InEngine(Sources[EngineTable]):
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

        def described() -> dict[str, EngineTable]:
            for name, table in tables.items() if share is None else ():
                refuse_unstable(name, table, engine.name)
                self._paths[name] = paths_of(table, engine.name)
            return {
                name: engine_table(engine, table, schemas[name], units[name], share) for name, table in tables.items()
            }

        super().__init__(self._run(described), schemas)

    def _run(self, work: Callable[[], T]) -> T:
        natives = list(self._natives.values())
        return quietly(work, self.engine.name, natives, lambda work: self.engine.run(work, natives))

    def settle(self) -> None:
        """Wait until what an interrupt left behind has ended."""
        self.engine.settle()

    def files(self) -> str | None:
        """A digest that identifies the files that are read, unchanged; None if there are none to identify."""
        return digest_of(self._paths)

    @cached_property
    def shares(self) -> list[InEngine]:
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
        return [InEngine(*given, (share, shares)) for share in range(shares)]

    def _joined(self, left: EngineTable, right: EngineTable, source: Joined) -> EngineTable:
        return join(left, right, (self.schema(source.left), self.schema(source.right)), source)

    def _part(self, whole: EngineTable, source: PartOf) -> EngineTable:
        return part(whole, self.schema(source.source), source)

    def refuse(self, query: LinearQuery) -> None:
        """Refuse what only a table in memory can answer; see `refuse_query`."""
        refuse_query(query, self.schema(query.plan.source), self.engine.name)

    def refuse_purses(self, mode: OnExhausted) -> None:
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

    def chosen(self, query: LinearQuery) -> Chosen:
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

    def purses(self, budget: Fraction, mode: OnExhausted) -> PursesInEngine:
        """What each unit has to spend, before anything was spent."""
        return PursesInEngine(self, Spent.nothing(self.engine, budget, mode))


@dataclass(frozen=True, repr=False)
class PursesInEngine(NotCopyable):
    """What each unit of tables in an engine has spent, as a table there for each share of the units.

    Parameters
    ----------
    tables : InEngine
    start : Spent
        Of every share before the first question.
    spent : tuple of Spent
        Of each share after it.
    """

    tables: InEngine
    start: Spent
    spent: tuple[Spent, ...] = ()

    def asked(self, query: LinearQuery, terms: Terms) -> tuple[Sums | Groups, PursesInEngine]:
        """What a question measures over those who can pay for it, and the purses after it."""
        return self.tables._run(lambda: self._asked(query, terms))

    def _asked(self, query: LinearQuery, terms: Terms) -> tuple[Sums | Groups, PursesInEngine]:
        after: list[Spent] = []

        def active(squares: Frame, spent: Spent) -> Frame:
            units, left = spent.paid(squares, terms)
            after.append(left)
            return units

        def chosen(share: InEngine, spent: Spent) -> Chosen:
            rows = share.chosen(query)
            return rows.of(active(unit_squares(query, rows), spent))

        def discovered(share: InEngine, spent: Spent) -> Discovered:
            groups = share.discovered(query)
            return groups.of(active(groups.squares(), spent))

        found: Sums | Groups
        shares, spent = self.tables.shares, self._by_share()
        if isinstance(query.plan.aggregation, Discovery):
            found = counted(map(discovered, shares, spent))
        else:
            found = added_up(query, map(chosen, shares, spent))
        return found, replace(self, spent=tuple(after))

    def charged(self, loss: float) -> PursesInEngine:
        """The purses after everybody was charged the same."""
        return self.tables._run(lambda: replace(self, spent=tuple(one.charged(loss) for one in self._by_share())))

    def _by_share(self) -> tuple[Spent, ...]:
        return self.spent or (self.start,) * len(self.tables.shares)
