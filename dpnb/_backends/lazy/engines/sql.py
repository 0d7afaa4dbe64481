"""Databases that compute through SQL, which Ibis writes, on a connection of their own.

A query is one list of common table expressions: the tables of the session, each column read so that every value has
its declared type; tables of public values; and the steps of the query, each kept as a step, since databases otherwise
insert expressions into each other, and long ones grow exponentially.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import ibis
import ibis.expr.operations as ops
import narwhals as nw
import numpy as np
import sqlglot.expressions as sge
from numpy.typing import NDArray

from dpnb._backends.lazy.engines.engine import LIMB, Engine, LazyFrame, Paths, T, folded, opened, squared
from dpnb._backends.lazy.engines.guarded_sql import (
    WHOLE,
    DateOfDays,
    HashOfText,
    Microseconds,
    WithCase,
    refuse_failing,
)
from dpnb._backends.worker_thread import refuse_stopped
from dpnb._plan.expressions.dtypes import Numeric
from dpnb._plan.expressions.letters import Case
from dpnb._plan.expressions.nodes import Node, Round
from dpnb._plan.expressions.rules import dtype_of
from dpnb._plan.expressions.text import words
from dpnb.errors import SchemaError, UnsupportedError
from dpnb.schema import Schema

_compiling = threading.Lock()

HASHED_AT_ONCE = 8
"""Columns that one expression of a hash has; SQLite's parser allows few levels, and Ibis not a thousand."""

STEP = "dpnb_step_"
"""Names of steps begin so, and those of tables do not: a step would take the place of a table of its name."""


class SqlEngine(Engine):
    """Tables of one database, on a connection of their own, in one read-only transaction for each answer."""

    shares_subexpressions = False
    keeps = False
    most_columns = 120  # with which a query takes about ten seconds
    has_settings = True  # a charge is refused where no transaction can begin
    compiler: Any
    fence = ("", "")
    """What is written before and after a step of a query so that it is computed as a step."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers = itertools.count()
        self._connection: Any = None
        self._is_reading = False
        self._described: dict[ops.DatabaseTable, str | None] = {}
        self._tables: dict[str, _SqlStep] = {}
        """By their names, in an order in which each refers to earlier ones: tables of the session and of public values,
        and the steps of what many queries begin with."""

    @abstractmethod
    def connect(self, native: Any) -> Any:
        """A connection to the database of a table, of which nobody else changes the settings."""

    @abstractmethod
    def description(self, table: ops.DatabaseTable) -> str | None:
        """The types of a table's columns, if its rows are stored, and not computed when it is read."""

    @abstractmethod
    def source(self, table: str, schema: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """A query of the columns of a table such that each value has its type, and these types."""

    @abstractmethod
    def begin(self) -> None:
        """Begin a transaction that reads one state of the database; connect again if the connection was closed."""

    @abstractmethod
    def cancel(self) -> None:
        """End what the database is doing, from any thread."""

    def attach(self, native: Any) -> None:
        """Connect to the database of a table, in the thread in which its own connection may be used."""
        refuse_failing(native)
        if self._connection is None:
            self._connection = self.connect(native)
        for table in native.op().find(ops.DatabaseTable):
            if table.name.lower().startswith(STEP):
                raise SchemaError(f"table: its name must not begin with {STEP}, as those of dpnb's own queries do")
            self._described[table] = self.description(table)
            if self._described[table] is None:
                raise SchemaError(
                    f"table: must be stored in {self.label}, and visible on other connections; a view, a foreign "
                    "table or a policy of row security can fail for some rows; write its result into a table, and pass "
                    "that"
                )

    def opened(self, native: Any) -> LazyFrame:
        """The table as `source` reads it."""
        self.attach(native)
        query, types = self.source(str(ibis.to_sql(native)), native.schema())
        # So that no later query fails because of the table itself.
        self.fetched(f"SELECT * FROM ({query}) AS checked LIMIT 0")  # noqa: S608  (names are quoted)
        return self._named(query, types)

    def public_table(self, frame: LazyFrame, columns: Mapping[str, Sequence[Any]]) -> LazyFrame:
        del frame
        types = {name: _TYPES[type(values[0])] for name, values in columns.items()}
        rows = ", ".join(f"({', '.join(map(self._constant, row))})" for row in zip(*columns.values(), strict=True))
        names = ", ".join(f"column{place} AS {name}" for place, name in enumerate(types, 1))
        return self._named(f"SELECT {names} FROM (VALUES {rows}) AS given", types)  # noqa: S608

    def _constant(self, value: Any) -> str:
        if isinstance(value, str) and "\0" not in value:
            return f"CAST({sge.Literal.string(value).sql(self.compiler.dialect)} AS TEXT)"
        if isinstance(value, int):
            return f"CAST({value} AS BIGINT)"
        node = ibis.literal(value).op()
        return str(self.compiler.write_literal(node, value=value, dtype=node.dtype).sql(self.compiler.dialect))

    def _named(self, query: str, types: Mapping[str, Any]) -> LazyFrame:
        return self._table(_SqlStep(query, frozenset(), is_table=True), types)

    def _new_name(self) -> str:
        return f"{STEP}{next(self._numbers)}"

    def planned(self, frame: LazyFrame) -> LazyFrame:
        steps, last, used = self._compiled(frame)
        return self._table(_SqlStep(last, used, before=steps), frame.to_native().schema())

    def _table(self, step: _SqlStep, types: Mapping[str, Any]) -> LazyFrame:
        """A table that stands for a query as long as it is used."""
        name = self._new_name()
        self._tables[name] = step
        table = ibis.table(dict(types), name=name)
        weakref.finalize(table.op(), self._tables.pop, name, None)
        return opened(table)

    def distinct(self, frame: LazyFrame) -> LazyFrame:
        return opened(frame.to_native().distinct())

    def hashed(self, frame: LazyFrame, columns: Mapping[str, str]) -> LazyFrame:
        return _mutated(frame, {to: (HashOfText, column) for column, to in columns.items()})

    def microseconds(self, frame: LazyFrame, columns: Mapping[str, str]) -> LazyFrame:
        return _mutated(frame, {to: (Microseconds, column) for column, to in columns.items()})

    def dated(self, frame: LazyFrame, column: str, to: str) -> LazyFrame:
        return _mutated(frame, {to: (DateOfDays, column)})

    def with_case(self, frame: LazyFrame, column: str, to: str, case: Case) -> LazyFrame:
        return _mutated(frame, {to: (partial(WithCase, case=case), column)})

    def row_hash(self, frame: LazyFrame, columns: Sequence[str], to: str) -> LazyFrame:
        native = frame.to_native()
        for start in range(0, len(columns), HASHED_AT_ONCE):
            some = columns[start : start + HASHED_AT_ONCE]
            limbs = [limb for column in some for limb in (native[column] // LIMB, native[column] % LIMB)]
            native = native.mutate(**{to: folded(limbs, native[to] if start else None)})
        return opened(native.mutate(**{to: squared(native[to])}))

    def collected(self, frame: LazyFrame) -> dict[str, NDArray[Any]]:
        refuse_stopped()
        rows = self.fetched(self.sql(frame))
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(frame.collect_schema())
        return {
            name: np.array([*map(_CONVERTED.get(kind, _same), values)], _ARRAYS.get(kind, object))
            for (name, kind), values in zip(frame.collect_schema().items(), columns, strict=True)
        }

    @abstractmethod
    def fetched(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query."""

    def refuse(self, node: Node, schema: Schema) -> None:
        """Refuse numbers so large that a step of the computation could leave the range in which it is exact."""
        if not isinstance(node, Round) or not isinstance(kind := dtype_of(node.inner, schema), Numeric):
            return
        if kind.magnitude * 10.0 ** max(node.decimals, 0) >= WHOLE:
            raise UnsupportedError(
                f"{words(node)}: on {self.name} .round() needs numbers below 2**62, with its decimals"
            )

    def kept(self, frame: LazyFrame) -> LazyFrame:
        raise UnsupportedError(f"{self.label}: keeps nothing for a session")

    def run(self, work: Callable[[], T], natives: Iterable[Any], within: float | None = None) -> T:
        del natives
        return self._background.run(lambda: self._in_transaction(work), self._cancel, within)

    def _cancel(self) -> None:
        if self._connection is not None:
            self.cancel()

    def _in_transaction(self, work: Callable[[], T]) -> T:
        if self._is_reading:
            return work()
        self.begin()
        self._is_reading = True
        try:
            if any(self.description(table) != found for table, found in self._described.items()):
                raise SchemaError("table: it was dropped or altered in the database; open another session")
            return work()
        finally:
            self._is_reading = False
            self._connection.rollback()

    def unstable(self, native: Any) -> str | None:
        del native
        return None

    def files(self, native: Any) -> Paths:
        del native
        return list

    # --- SQL ---

    def sql(self, frame: LazyFrame) -> str:
        """The query of a frame."""
        steps, last, used = self._compiled(frame)
        needed = set(used)
        for name in reversed(self._tables):
            needed |= self._tables[name].uses if name in needed else set()
        texts = [text for name, step in self._tables.items() if name in needed for text in self._texts(name, step)]
        texts += [self._text(*step) for step in steps.items()]
        return f"WITH {', '.join(texts)} {last}"

    def _texts(self, name: str, step: _SqlStep) -> list[str]:
        if step.is_table:
            return [f"{name} AS ({step.query})"]
        return [self._text(*each) for each in (step.before | {name: step.query}).items()]

    def _text(self, name: str, query: str) -> str:
        before, after = self.fence
        return f"{name} AS {before}({query}{after})"

    def _compiled(self, frame: LazyFrame) -> tuple[dict[str, str], str, frozenset[str]]:
        """The steps of the query of a frame before the last one, the last one, and the tables that they use."""
        native = frame.to_native()
        with _compiling:  # the option is the process's
            fuses, ibis.options.sql.fuse_selects = ibis.options.sql.fuse_selects, False
            try:
                tree = self.compiler.to_sqlglot(native)
            finally:
                ibis.options.sql.fuse_selects = fuses
        used = frozenset(node.name for node in native.op().find(ops.UnboundTable))
        *steps, (_, last) = _steps(tree, self._new_name)
        dialect = self.compiler.dialect
        return {name: step.sql(dialect) for name, step in steps}, last.sql(dialect), used


@dataclass(frozen=True)
class _SqlStep:
    """A query to which others refer, and the tables that it uses."""

    query: str
    uses: frozenset[str]
    is_table: bool = False
    before: dict[str, str] = field(default_factory=dict)  # the steps before its last one


def _mutated(frame: LazyFrame, columns: Mapping[str, tuple[Callable[[Any], Any], str]]) -> LazyFrame:
    native = frame.to_native()
    return opened(native.mutate(**{to: make(native[column].op()).to_expr() for to, (make, column) in columns.items()}))


def _same(value: Any) -> Any:
    return value


_TYPES: dict[type, str] = {str: "string", float: "float64", int: "int64"}
_CONVERTED: dict[Any, Callable[[Any], Any]] = {nw.Boolean: bool, nw.Int64: int}
_ARRAYS: dict[Any, Any] = {nw.Boolean: np.bool_, nw.Int64: np.int64, nw.Float64: np.float64}


def _steps(tree: Any, new_name: Callable[[], str]) -> list[tuple[str, Any]]:
    """The queries of a tree, each with the name by which later ones refer to it; the last one is the query itself."""
    steps: list[tuple[str, Any]] = []
    shared: dict[str, str] = {}  # the names of queries to which Ibis refers several times

    def take(query: Any) -> None:
        if isinstance(query, sge.SetOperation | sge.Subquery):
            take(query.this)
            if isinstance(query, sge.SetOperation):
                take(query.expression)
            return
        for source in (query.args["from_"], *(query.args.get("joins") or ())):
            inner = source.this
            if isinstance(inner, sge.Subquery):
                source.set("this", sge.to_table(step(inner.this)).as_(inner.alias, quoted=True, table=True))
            elif inner.name in shared:
                inner.set("this", sge.to_identifier(shared[inner.name]))

    def step(query: Any) -> str:
        take(query)
        name = new_name()
        steps.append((name, query))
        return name

    for cte in tree.ctes:
        shared[cte.alias] = step(cte.this)
    tree.set("with_", None)
    take(tree)
    return [*steps, ("", tree)]
