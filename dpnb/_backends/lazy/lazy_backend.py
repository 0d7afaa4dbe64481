"""Tables that stay in their engine: polars, DuckDB, Spark, a database.  The engine returns only sums.

The engine forms the pairs of a join, whose number for one unit is bounded by the rules of `dpnb._plan.join` alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeVar

import narwhals as nw

from dpnb._backends.column_types import refuse_mixed_units
from dpnb._backends.contribution import orders_of
from dpnb._backends.lazy.contribution import first_groups
from dpnb._backends.lazy.engines.engine import Engine, InProcessEngine, LazyFrame, Paths, digest_of
from dpnb._backends.lazy.execute import (
    SelectedRows,
    added_up,
    by_features,
    refuse_expression,
    refuse_query,
    selected_rows,
)
from dpnb._backends.lazy.expressions import NarwhalsEvaluator
from dpnb._backends.lazy.group_discovery import UnitGroups, counted, groups_of_units
from dpnb._backends.lazy.lazy_table import UNIT, LazyTable, Share, engine_table
from dpnb._backends.lazy.units import UnitSpending, has_small_units, unit_norms_squared, with_first_rows
from dpnb._backends.lazy.within import chosen_rows, windowed
from dpnb._backends.protocol import ChosenRows, Groups, Schemas, SourceResolver, Units, Windows
from dpnb._backends.quiet import run_silently
from dpnb._backends.unit_vectors import Sums
from dpnb._compile.features import UnitFeature
from dpnb._compile.sensitivity import LinearQuery
from dpnb._compile.within import BackendSource, Windowed, rows_per_unit, with_windows
from dpnb._plan.join import joined_name, part_keys, tables_of
from dpnb._plan.measurements import Discovery
from dpnb._plan.plan import Join, PartSource
from dpnb._plan.privacy_unit import ContributionBounds, PrivacyUnit
from dpnb.accounting.individual import OnExhausted, UnitChargeTerms
from dpnb.copying import NotCopyable
from dpnb.errors import SchemaError
from dpnb.schema import Added, Schema, Text


def join(left: LazyTable, right: LazyTable, schemas: tuple[Schema, Schema], source: Join) -> LazyTable:
    """Every pair of rows that one unit has in both tables."""
    stems: dict[str, str] = {}
    codes: dict[str, dict[Any, int]] = {}
    schema: Schema = {}
    added: dict[str, int] = {}
    frames = []
    for side, (table, own) in enumerate(zip((left.all_prepared(), right.all_prepared()), schemas, strict=True)):
        prefix = "lr"[side]
        columns = {} if side else {"name": nw.col("name")}
        for name in table.frame.collect_schema().names():
            if name not in ("unit", "name"):
                columns[prefix + name] = nw.col(name)
        for name in own:
            new = joined_name(name, side, source, schemas[1 - side])
            stems[new], schema[new] = prefix + table.stems[name], own[name]
            added |= {new: table.added[name]} if name in table.added else {}
        codes |= {prefix + stem: of for stem, of in table.codes.items()}
        frames.append(table.frame.select("unit", **columns))
    max_pairs = None if left.max_rows is None or right.max_rows is None else left.max_rows * right.max_rows
    pairs = frames[0].join(frames[1], on="unit", how="inner")
    return LazyTable(left.engine, pairs, stems, codes, left.public, schema, True, max_pairs, True, added=added)


def part(table: LazyTable, schema: Schema, which: PartSource) -> LazyTable:
    """The rows of a part: a private value."""
    rows = NarwhalsEvaluator(table, schema)
    code = part_keys(which.by.expression, schema).index(which.key)
    codes, _ = rows.level_codes(which.by.expression)
    kept = table.frame.collect_schema().names()
    frame = rows.frame.with_columns(cell=codes).filter(nw.col("cell") >= 0)
    if which.max_parts_per_unit is not None:
        frame = frame.with_columns(content=nw.col("cell"))
        frame = first_groups(table.engine, frame, which.max_parts_per_unit, ["cell"])
    return replace(table, frame=frame.filter(nw.col("cell") == code).select(*kept))


# --- tables that stay in their engine ---------------------------------------------------------------------------------


MAX_KEPT_BYTES = 2**30
"""Largest size of a table whose chosen rows are kept."""

OPENING_SECONDS = 300.0
"""The longest time in which an engine must describe its tables; it reads no row for that."""

UNSORTED_FACTOR = 3
"""How many times more rows a share has if only hashes are sorted: a few columns of integers are held at a time."""

T = TypeVar("T")


class LazyBackend(SourceResolver[LazyTable]):
    """Tables of one engine, and the joins and parts that queries use; creating them reads no row.

    Raises `SchemaError` if a column is missing, or has a type that cannot hold what the schema declares; the plan of a
    table shows that its rows may differ between reads; a limit of the units can be kept only where rows are in memory;
    or the engine does not describe a table in time.
    """

    def __init__(
        self,
        engine: Engine,
        tables: Mapping[str, Any],
        schemas: Schemas,
        units: Units,
        added: Added = (),
        share: Share | None = None,
    ) -> None:
        self.engine, self._natives, self._units, self._added = engine, tables, units, added
        for name, unit in units.items():
            _refuse_norm(name, unit, engine)
        self._paths: dict[str, Paths] = {}

        def lazy_tables() -> dict[str, LazyTable]:
            if share is None:
                engine.refuse_settings(tables.values())
            for name, table in tables.items() if share is None else ():
                engine.refuse_unstable(name, table)
                self._paths[name] = engine.paths_of(table)
            lazy = {
                name: engine_table(engine, table, schemas[name], units[name], orders_of(added, name), share)
                for name, table in tables.items()
            }
            refuse_mixed_units({name: table.unit_kind for name, table in lazy.items()}, units)
            return lazy

        try:
            opened = self._run(lazy_tables, within=OPENING_SECONDS)
        except TimeoutError:
            raise SchemaError(
                f"tables: their columns must be known within {OPENING_SECONDS:.0f} seconds, in which {engine.name} did "
                "not describe them; make sure that it can reach their files, or write them to a file and pass that"
            ) from None
        super().__init__(opened, schemas, units)
        self._is_share, self._kept = share is not None, dict[str, LazyTable]()

    @property
    def engine_label(self) -> str:
        """Name of the engine, in words."""
        return self.engine.label

    def _run(self, work: Callable[[], T], within: float | None = None) -> T:
        natives = list(self._natives.values())
        return run_silently(work, self.engine.name, natives, lambda work: self.engine.run(work, natives, within))

    def _read(self, work: Callable[[], T]) -> T:
        """The result of work that reads rows."""

        def checked() -> T:
            result = work()
            self.engine.refuse_settings(self._natives.values())  # another thread may have changed them meanwhile
            return result

        return self._run(checked)

    def ready(self) -> None:
        """Wait until interrupted work has ended, and refuse changed settings of the engine."""
        self.engine.settle()
        if self.engine.has_settings:
            self._run(lambda: self.engine.refuse_settings(self._natives.values()))

    def files(self) -> str | None:
        """A digest that identifies the files that are read and their state; None if there are none."""
        return digest_of(self._paths)

    @cached_property
    def _row_counts(self) -> dict[str, int]:
        return {name: self.engine.rows(native) for name, native in self._natives.items()}

    @cached_property
    def shares(self) -> list[LazyBackend]:
        """The same tables, each for a share of the units small enough for the engine to sort its rows in memory.

        A sum over units is the sum over shares of them.  The number of rows only determines how often the tables are
        read.
        """
        return self._divided(1)

    @cached_property
    def _large_shares(self) -> list[LazyBackend]:
        """Shares for queries whose rows are not sorted in the engine, but only their hashes in numpy."""
        frames = [self._sources[name].frame for name in self._names]
        small = all(
            frame.collect_schema()[UNIT].is_integer() and has_small_units(self.engine, frame, UNIT) for frame in frames
        )
        return self._divided(UNSORTED_FACTOR) if small else self.shares

    def _divided(self, factor: int) -> list[LazyBackend]:
        max_rows = self.engine.rows_at_once
        if max_rows is None or any(unit.column is None for unit in self._units.values()):
            return [self]
        shares = -(-max(self._row_counts.values()) // (factor * max_rows))
        if shares <= 1:
            return [self]
        arguments = self.engine, self._natives, self._schemas, self._units, self._added
        return [LazyBackend(*arguments, (share, shares)) for share in range(shares)]

    def _shares_for(self, query: LinearQuery) -> list[LazyBackend]:
        """The shares in which a query's sums are added up."""
        if (
            len(self.shares) == 1
            or not isinstance(self.engine, InProcessEngine)
            or query.plan.source not in self._names
        ):
            return self.shares
        limits, unit = query.contribution_bounds, self._units[query.plan.source]
        has_groups_of_units = bool(query.plan.group_by) and any(isinstance(f, UnitFeature) for f in query.features)
        same = limits == ContributionBounds(max_rows=unit.max_rows)
        return self._large_shares if same and not has_groups_of_units else self.shares

    def rows(self, source: BackendSource) -> LazyTable:
        """A table, or what is made of tables, with the rows of each unit that count: a private value.

        The rows of a table, and values within its units, are kept in the engine from the first query on if they are
        few, since choosing them takes longer than most queries.  Otherwise they are chosen for each query.
        """
        if isinstance(source, Join | PartSource):
            return self._made(source)
        if not isinstance(source, str):
            return super().rows(source)
        if source in self._kept:
            return self._kept[source]
        table, max_rows = self._sources[source], self._units[source].max_rows
        if not table.has_units:
            return table
        if max_rows is not None:
            keep = self._kept_bytes(source) is not None
            table = with_first_rows(table, max_rows, keep=keep)
            table = replace(table, frame=self.engine.planned(table.frame))
            if keep or not isinstance(self.engine, InProcessEngine):  # of a cluster a plan, which has read no row
                self._kept[source] = table
        return table

    def _kept_bytes(self, source: BackendSource) -> int | None:
        """About the number of bytes of rows that are kept in the engine; None if they are not, as pairs are not."""
        columns = len(self.schema(source))
        while isinstance(source, Windowed):
            source = source.source
        name, *others = tables_of(source)
        if others or self._is_share or not isinstance(self.engine, InProcessEngine):
            return None
        size = self._size(name) + 9 * self._row_counts[name] * max(columns - len(self._schemas[name]), 0)
        return size if size <= MAX_KEPT_BYTES else None

    def _made(self, source: BackendSource) -> LazyTable:
        table = super()._made(source)
        size = None if isinstance(source, Join | PartSource) else self._kept_bytes(source)
        return table if size is None else replace(table, frame=self.engine.kept(table.frame), kept_bytes=size)

    def _bytes(self, rows: LazyTable) -> int:
        return rows.kept_bytes

    def _size(self, name: str) -> int:
        """About the number of bytes of a table."""
        texts = sum(isinstance(column, Text) for column in self._schemas[name].values())
        return self._row_counts[name] * (24 + 9 * len(self._schemas[name]) + 24 * texts)

    def _joined(self, left: LazyTable, right: LazyTable, source: Join) -> LazyTable:
        return join(left, right, (self.schema(source.left), self.schema(source.right)), source)

    def _part(self, whole: LazyTable, source: PartSource) -> LazyTable:
        return part(whole, self.schema(source.source), source)

    def _windowed(self, table: LazyTable, windows: Windows) -> LazyTable:
        return windowed(table, *windows)

    def _chosen(self, table: LazyTable, chosen: ChosenRows) -> LazyTable:
        for windows in chosen.windows:
            table = windowed(table, *windows)
        return chosen_rows(table, chosen)

    def refuse(self, query: LinearQuery) -> None:
        """Refuse what only a table in memory supports; see `refuse_query`."""
        refuse_query(query, self.schema(query.plan.source), self.engine)
        for source in rows_per_unit(query.plan.source):
            schema = self.schema(source.source)
            for node in (*source.terms, *(level.expression for level in source.columns)):
                refuse_expression(node, schema, self.engine)

    def refuse_individual(self, mode: OnExhausted) -> None:
        """Refuse individual accounting where rows are units, or where a unit would be clipped."""
        engine = self.engine.name
        if not all(self._sources[name].has_units for name in self._names):
            raise SchemaError(
                f"accounting='individual': needs privacy_unit= on {engine}, where the order of rows is undefined and "
                "rows cannot be distinguished; name the column that identifies the unit"
            )
        if mode == "clip":
            raise SchemaError(
                f"on_exhausted: 'clip' needs a table in memory or on Dask; this one is on {engine}; use 'skip' or "
                "'drop'"
            )
        if not self.engine.keeps:
            raise SchemaError(
                f"accounting='individual': needs a table in memory, or an engine that keeps what each unit has spent; "
                f"{engine} keeps nothing"
            )

    def selected(self, query: LinearQuery) -> SelectedRows:
        """The rows that count in a query."""
        return selected_rows(*self.query_and_rows(query))

    def unit_groups(self, query: LinearQuery) -> UnitGroups:
        """The pairs of units and groups."""
        return groups_of_units(*self.query_and_rows(query))

    def sums(self, query: LinearQuery) -> Sums:
        """The exact sums of a query."""
        query = with_windows(query, self.schema(query.plan.source))

        def sums_of(part: LinearQuery) -> Sums:
            return added_up(part, (share.selected(part) for share in self._shares_for(query)))

        return self._read(lambda: by_features(query, sums_of))

    def groups(self, query: LinearQuery) -> Groups:
        """Every group that some unit has."""
        return self._read(lambda: counted(share.unit_groups(query) for share in self.shares))

    def unit_budgets(self, budget: Fraction, mode: OnExhausted) -> LazyUnitBudgets:
        """The budgets of all units, before any charge."""
        return LazyUnitBudgets(self, UnitSpending.nothing(self.engine, budget, mode))


def _refuse_norm(name: str, unit: PrivacyUnit, engine: Engine) -> None:
    """Refuse a limit of the norm, unless the numbers of rows already imply it, so that no vector is scaled down."""
    limits = unit.contribution_bounds
    if limits.max_norm is None:
        return
    by_groups = None
    if limits.max_groups is not None and limits.max_rows_per_group is not None:
        by_groups = limits.max_groups * limits.max_rows_per_group
    if all(rows is None or rows > limits.max_norm for rows in (unit.max_rows, by_groups)):
        raise SchemaError(
            f"max_norm_per_unit{f' of {name!r}' if name else ''}: needs a table in memory or on Dask; this one is on "
            f"{engine.name}, which cannot scale down what a unit adds; declare max_rows_per_unit instead, or "
            "max_groups_per_unit with max_rows_per_group, or pass a data frame in memory"
        )


@dataclass(frozen=True, repr=False)
class LazyUnitBudgets(NotCopyable):
    """The budgets of all units of tables in an engine, as a table there for each share of the units."""

    tables: LazyBackend
    start: UnitSpending  # spending of every share before the first query
    spent: tuple[UnitSpending, ...] = ()  # spending of each share after it

    def after_query(self, query: LinearQuery, terms: UnitChargeTerms) -> tuple[Sums | Groups, LazyUnitBudgets]:
        """The result of a query over its active units, and the unit budgets after it."""
        return self.tables._read(lambda: self._after_query(query, terms))

    def _after_query(self, query: LinearQuery, terms: UnitChargeTerms) -> tuple[Sums | Groups, LazyUnitBudgets]:
        query = with_windows(query, self.tables.schema(query.plan.source))
        after: list[UnitSpending] = []

        def active(squares: LazyFrame, spent: UnitSpending) -> LazyFrame:
            units, spent_after = spent.charge(squares, terms)
            after.append(spent_after)
            return units

        def active_rows(share: LazyBackend, spent: UnitSpending) -> SelectedRows:
            rows = share.selected(query)
            return rows.of_units(active(unit_norms_squared(query, rows), spent))

        def active_groups(share: LazyBackend, spent: UnitSpending) -> UnitGroups:
            groups = share.unit_groups(query)
            return groups.of_units(active(groups.squares(), spent))

        result: Sums | Groups
        shares, spent = self.tables.shares, self._by_share()
        if isinstance(query.plan.aggregation, Discovery):
            result = counted(map(active_groups, shares, spent))
        else:
            result = added_up(query, map(active_rows, shares, spent))
        return result, replace(self, spent=tuple(after))

    def after_charge(self, loss: float) -> LazyUnitBudgets:
        """The unit budgets after the same charge to every unit."""
        return self.tables._run(
            lambda: replace(self, spent=tuple(spent.after_charge(loss) for spent in self._by_share()))
        )

    def _by_share(self) -> tuple[UnitSpending, ...]:
        return self.spent or (self.start,) * len(self.tables.shares)
