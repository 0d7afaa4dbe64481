"""The interfaces of a backend: of its tables for a session, and of its library for the evaluation of expressions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

import msgspec

from dpnb._backends.contribution import Integers
from dpnb._backends.unit_vectors import Sums
from dpnb._compile.sensitivity import LinearQuery
from dpnb._compile.within import BackendSource, Windowed, first_rows, lifted, schema_with_windows, with_windows
from dpnb._plan.expressions.dtypes import Numeric
from dpnb._plan.expressions.nodes import (
    Apply,
    Arithmetic,
    ChangeCase,
    Clip,
    Expression,
    ExtractDatePart,
    IsIn,
    Lookup,
    MatchText,
    Period,
    Round,
    WithinUnit,
)
from dpnb._plan.join import unit_of
from dpnb._plan.plan import GroupLevel, Join, PartSource, PerUnit
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb.accounting.individual import OnExhausted, UnitChargeTerms
from dpnb.copying import NotCopyable
from dpnb.schema import Key, Schema
from dpnb.times import Zone

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

    def refuse(self, query: LinearQuery) -> None:
        """Refuse, when a query is built, what this backend cannot compute; raises `UnsupportedError`."""

    def refuse_individual(self, mode: OnExhausted) -> None:
        """Refuse individual accounting, when a session is made, if this backend cannot offer it."""

    def ready(self) -> None:
        """Wait until interrupted work has ended, and check the engine; called before any charge that needs rows.

        Raises `SchemaError` if a setting or function of the engine was changed so that queries mean something else.
        """

    def files(self) -> str | None:
        """What identifies the files that are read and their state, or how texts were read; None if there are none."""

    def sums(self, query: LinearQuery) -> Sums:
        """The exact sums of a query, shape (measured cells * slots,)."""

    def groups(self, query: LinearQuery) -> Groups:
        """Every group that some unit has, in an order that does not depend on rows."""

    def unit_budgets(self, budget: Fraction, mode: OnExhausted) -> UnitBudgets:
        """The budgets of all units, before any charge."""


class UnitBudgets(Protocol):
    """The budgets of all units: an immutable value, which each query replaces.  SENSITIVE: never shown."""

    def after_query(self, query: LinearQuery, terms: UnitChargeTerms) -> tuple[Sums | Groups, Self]:
        """The result of a query over its active units, and the unit budgets after it."""

    def after_charge(self, loss: float) -> Self:
        """The unit budgets after the same charge to every unit."""


# --- expressions ------------------------------------------------------------------------------------------------------

B = TypeVar("B")
"""Type of a mask."""
N = TypeVar("N")
"""Type of a column of numbers."""
C = TypeVar("C")
"""Type of a column of codes."""

NumberStep = Arithmetic | Clip | Apply | Round | ExtractDatePart | Period
Comparing = Callable[[Any, Any], Any]


class BooleanColumn(NamedTuple, Generic[B]):
    """Where a condition is true and where it is false; in other rows it is missing."""

    true: B
    false: B


class EvaluationSteps(ABC, Generic[B, N, C]):
    """How a library represents the rows of one table, and the elementary steps of `dpnb._backends.evaluation`."""

    @property
    @abstractmethod
    def everywhere(self) -> B:
        """True for each row."""

    @property
    @abstractmethod
    def nowhere(self) -> B:
        """False for each row."""

    @abstractmethod
    def both(self, left: B, right: B) -> B:
        """Where both are true; free if one is `everywhere`."""

    @abstractmethod
    def looked_up(self, node: Lookup) -> C:
        """The index in `keys` of each row's key; -1 for any other key.  Level by level."""

    @abstractmethod
    def translated(self, codes: C, to: list[int]) -> C:
        """Codes translated to those of another list; -1 stays."""

    @abstractmethod
    def _once(self, what: str, node: Expression, compute: Callable[[Any], Any]) -> Any: ...

    @abstractmethod
    def _reused(self, mask: B) -> B:
        """A mask, materialised because it is used more than once."""

    @abstractmethod
    def _number_column(self, name: str) -> N: ...

    @abstractmethod
    def _code_column(self, name: str) -> C: ...

    @abstractmethod
    def _text_present(self, node: Expression) -> B: ...

    @abstractmethod
    def _number_present(self, numbers: N) -> B: ...

    @abstractmethod
    def _constant(self, value: float) -> N: ...

    @abstractmethod
    def _code(self, code: int) -> C: ...

    @abstractmethod
    def _numbers_of(self, condition: BooleanColumn[B]) -> N:
        """1 where it is true, 0 where it is false."""

    @abstractmethod
    def _codes_of(self, condition: BooleanColumn[B]) -> C:
        """1 where it is true, 0 where it is false."""

    @abstractmethod
    def _numbers_at(self, indices: C, values: Sequence[float | None]) -> N:
        """The number at each index of a list; missing for None and for -1."""

    @abstractmethod
    def _steps_at(self, numbers: N, low: int, high: int, step: int) -> C:
        """The number of steps above `low`; -1 above `high`."""

    @abstractmethod
    def _within(self, numbers: N, kind: Numeric) -> N:
        """Rounded numbers, clamped to their bounds."""

    @abstractmethod
    def _step(self, node: NumberStep, number: N, other: N | None = None) -> N:
        """The result of a step; missing where an argument is missing."""

    @abstractmethod
    def _local(self, seconds: N, zone: Zone) -> N:
        """The local time of points in time, in whole seconds."""

    @abstractmethod
    def _filled(self, numbers: N, value: float) -> N: ...

    @abstractmethod
    def _chosen(self, condition: BooleanColumn[B], numbers: N, otherwise: N) -> N: ...

    @abstractmethod
    def _filled_codes(self, codes: C, code: int) -> C: ...

    @abstractmethod
    def _chosen_codes(self, condition: BooleanColumn[B], codes: C, otherwise: C) -> C: ...

    @abstractmethod
    def _bins(self, numbers: N, edges: tuple[float, ...], right: bool) -> C:
        """The index of the bin of each number; see `Cut`."""

    @abstractmethod
    def _same(self, left: B, right: B) -> B: ...

    @abstractmethod
    def _compared_numbers(self, compare: Comparing, left: N, right: N) -> B: ...

    @abstractmethod
    def _compared_text(self, compare: Comparing, node: Expression, text: str) -> B: ...

    @abstractmethod
    def _matched_text(self, node: MatchText) -> B:
        """Whether the text matches; the text to match is not empty."""

    @abstractmethod
    def _text_lengths(self, node: Expression, most: float) -> N:
        """The numbers of code points of texts, at most `most`."""

    @abstractmethod
    def _texts_changed(self, node: ChangeCase) -> C:
        """The texts in another case, as the library represents the column of a text."""

    @abstractmethod
    def _is_code(self, codes: C, wanted: list[bool]) -> B:
        """Whether the code is one of those wanted."""

    @abstractmethod
    def _is_number(self, numbers: N, wanted: list[float]) -> B:
        """Whether the number is one of those wanted."""

    @abstractmethod
    def _is_key(self, node: IsIn) -> B:
        """Whether the value is in the list; for numbers, strings, categories or conditions."""


# --- tables, joins and parts of a backend -----------------------------------------------------------------------------


R = TypeVar("R")

LEAST_KEPT = 2**27
"""Memory that joins and parts may take in any case."""

MAX_DERIVED = 1000
"""Largest number of derived tables that are kept."""


class Windows(NamedTuple):
    """Further columns of a table, each computed from the rows of one unit."""

    schema: Schema  # of the table
    columns: tuple[tuple[str, WithinUnit], ...]


class ChosenRows(NamedTuple):
    """The rows for which a condition is true, at most `max_rows` of a unit, with other columns."""

    windows: list[Windows]  # by which the table is extended first
    schema: Schema  # after that
    row: Expression
    columns: tuple[GroupLevel, ...]
    max_rows: int | None


class SourceResolver(NotCopyable, ABC, Generic[R]):
    """Tables of one backend, and what is made of them: joins, parts, rows per unit, and values within a unit.

    Those that were used last are kept.  A join holds no rows: it is a plan of the engine, or
    `dpnb._backends.memory.memory_backend.JoinedRows`.
    """

    def __init__(self, tables: Mapping[str, R], schemas: Schemas, units: Units) -> None:
        self._sources: dict[BackendSource, R] = {}
        self._sources.update(tables)
        self._derived: dict[bytes, R] = {}  # by JSON: 1, 1.0 and True, equal in Python, are different
        self._names, self._schemas, self._units = tuple(tables), schemas, units

    def schema(self, source: BackendSource) -> Schema:
        """Columns of a table, or of what is made of tables."""
        return self._schemas[source] if isinstance(source, str) else schema_with_windows(source, self._schemas)

    def rows(self, source: BackendSource) -> R:
        """A table, or what is made of tables: a private value.  Raises `KeyError` if there is no such table."""
        if isinstance(source, str):
            return self._sources[source]
        key = msgspec.json.encode(source)
        derived = self._derived.pop(key, None)
        if derived is None:
            derived = self._made(source)
        self._derived[key] = derived  # the last one
        self._forget()
        return derived

    def query_and_rows(self, query: LinearQuery) -> tuple[LinearQuery, R, Schema]:
        """A query without values within a unit, the table that has them as columns, and its schema."""
        if query.has_windows:
            query = with_windows(query, self.schema(query.plan.source))
        source = query.plan.source
        return query, self.rows(source), self.schema(source)

    def _made(self, source: BackendSource) -> R:
        match source:
            case Join(left, right):
                return self._joined(self.rows(left), self.rows(right), source)
            case PartSource(whole):
                return self._part(self.rows(whole), source)
            case PerUnit(whole):
                first = first_rows(source, unit_of(whole, self._units, self._schemas).max_rows)
                base, (row, columns) = lifted(whole, self.schema(whole), (first, source.columns))
                windows, max_rows = self._windows(base), unit_of(source, self._units, self._schemas).max_rows
                chosen = ChosenRows(windows, self.schema(base), row, columns, max_rows)
                return self._chosen(self.rows(whole), chosen)
            case Windowed():
                return self._windowed(self.rows(source.source), self._windows(source)[-1])
        raise KeyError(source)

    def _windows(self, source: BackendSource) -> list[Windows]:
        """The columns within units by which a table was extended, each after those of which it is made."""
        if not isinstance(source, Windowed):
            return []
        return [*self._windows(source.source), Windows(self.schema(source.source), source.columns)]

    def _forget(self) -> None:
        """Forget what was made and not used for longest, while it takes more memory than the tables."""
        room = max(LEAST_KEPT, sum(map(self._bytes, self._sources.values())))
        sizes = [(source, self._bytes(rows)) for source, rows in list(self._derived.items())]  # other threads may add
        number, size = len(sizes), sum(size for _, size in sizes)
        for source, its_size in sizes[:-1]:
            if number <= MAX_DERIVED and size <= room:
                return
            self._derived.pop(source, None)
            number, size = number - 1, size - its_size

    def _bytes(self, rows: R) -> int:
        """Memory of the rows of a table, join or part in this process."""
        return 0

    @abstractmethod
    def _joined(self, left: R, right: R, source: Join) -> R:
        """Every pair of rows that one unit has in both."""

    @abstractmethod
    def _part(self, whole: R, source: PartSource) -> R:
        """The rows of a part."""

    @abstractmethod
    def _windowed(self, table: R, windows: Windows) -> R:
        """A table with further columns."""

    @abstractmethod
    def _chosen(self, table: R, chosen: ChosenRows) -> R:
        """Some rows of each unit, with other columns."""
