"""Databases that compute through SQL: expressions of Ibis, written so that no content of a row is an error.

narwhals makes expressions of Ibis, and Ibis writes them as SQL.  Here every operation is written by a method of
`GuardedSql`, which lets only known operations through: databases raise at a division by zero, at a number that is too
large or too small, or at a number that does not fit an integer, and an error after a charge is an answer without noise.

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
import ibis.expr.datatypes as dt
import ibis.expr.operations as ops
import narwhals as nw
import numpy as np
import sqlglot.expressions as sge
from ibis.backends.sql.rewrites import Select
from ibis.common.patterns import Object, replace
from numpy.typing import NDArray

from dpnb._backends.lazy.engines.engine import LIMB, Engine, LazyFrame, Paths, T, folded, opened, squared
from dpnb._backends.worker_thread import refuse_stopped
from dpnb._plan.expressions.dtypes import Numeric
from dpnb._plan.expressions.letters import Case
from dpnb._plan.expressions.nodes import Node, Round
from dpnb._plan.expressions.rules import dtype_of
from dpnb._plan.expressions.text import words
from dpnb.errors import SchemaError, UnsupportedError
from dpnb.schema import Schema

# --- operations that Ibis does not have -------------------------------------------------------------------------------


class HashOfText(ops.Unary):
    """The hash of a text by `dpnb._backends.contribution.label_hash`."""

    dtype = dt.int64


class Microseconds(ops.Unary):
    """Microseconds since 1970 of a date or a time; null for those that 64 bits do not hold."""

    dtype = dt.int64


class DateOfDays(ops.Unary):
    """A date, from a number of days since 1970."""

    dtype = dt.date


class WithCase(ops.Value):
    """A text in another case, by `dpnb._plan.expressions.letters`."""

    arg: ops.Value[dt.String, Any]
    case: str

    dtype = dt.string

    @property
    def shape(self) -> Any:
        """A value for each row."""
        return self.arg.shape


# --- the SQL of expressions -------------------------------------------------------------------------------------------


MOST = 2.0**500
"""The largest magnitude of an operand, and the inverse of the smallest that is not zero."""

WHOLE = 2**62
"""The largest magnitude of a number that is converted to an integer."""

KNOWN = frozenset(
    "Field Literal Cast Alias Add Subtract Multiply Divide FloorDivide Modulus Negate Abs Floor Exp Log Power "
    "Equals NotEquals Less LessEqual Greater GreaterEqual And Or Not IsNull NotNull IsNan IsInf InValues Coalesce "
    "IfElse SearchedCase WindowFunction WindowBoundary SortKey Sum Min Max Count CountStar Lag RowNumber "
    "StringLength StartsWith EndsWith StringContains ExtractYear ExtractQuarter ExtractMonth ExtractDay "
    "ExtractDayOfYear HashOfText Microseconds DateOfDays WithCase "
    "UnboundTable Project Filter Select CTE Aggregate Distinct JoinChain JoinLink JoinReference JoinTable DropColumns "
    "SelfReference Union FillNull".split()
)
"""The operations that are written such that no value is an error."""

AS_TREES = frozenset("Field Alias SortKey WindowBoundary Sum Min Max Count CountStar Lag RowNumber".split())
"""The values that Ibis takes apart."""


@replace(Object(Select, Object(Select)))
def joined_steps(_: Any, **kwargs: Any) -> Any:
    """Two steps as one, if no expression becomes part of another: planning takes long for many steps.

    Ibis joins others too, and expressions of expressions grow exponentially.
    """
    del kwargs
    inner = _.parent
    if inner.distinct or _.distinct or _.qualified or inner.qualified or _.sort_keys or inner.sort_keys:
        return _
    if _.predicates and any(map(_has_window, inner.selections.values())):
        return _
    values = {ops.Field(inner, name): value for name, value in inner.values.items()}
    plain = {field for field, value in values.items() if isinstance(value, ops.Field | ops.Literal)}
    computed = [value for value in _.selections.values() if value not in values]
    used = {field for value in (*computed, *_.predicates) for field in value.find(ops.Field, filter=ops.Value)}
    if not used <= plain:
        return _
    return Select(
        inner.parent,
        selections={name: value.replace(values, filter=ops.Value) for name, value in _.selections.items()},
        predicates=(*inner.predicates, *(one.replace(values, filter=ops.Value) for one in _.predicates)),
    )


def _has_window(value: Any) -> bool:
    return bool(value.find(ops.WindowFunction, filter=ops.Value))


class GuardedSql:
    """Writes each operation so that it has a value, or null, whatever its operands are.

    Values are written as text at once: the trees of long expressions take long to copy.
    """

    f: Any
    dialect: Any

    def visit_node(self, op: Any, **kwargs: Any) -> Any:
        """Refuse operations that are not in `KNOWN`."""
        name = type(op).__name__
        if name not in KNOWN:
            raise UnsupportedError(f"{name}: this operation is not offered in a database")
        write = getattr(self, f"write_{name}", None)
        found = super().visit_node(op, **kwargs) if write is None else write(op, **kwargs)  # type: ignore[misc]
        return self.text(found) if isinstance(op, ops.Value) and name not in AS_TREES else found

    def text(self, tree: Any) -> Any:
        """An expression as its text, in parentheses unless it is one word or call."""
        if isinstance(tree, sge.Var):
            return tree
        sql = tree.sql(self.dialect)
        is_closed = isinstance(tree, sge.Anonymous | sge.Cast | sge.Coalesce | sge.Column | sge.Literal | sge.Paren)
        return sge.Var(this=sql if is_closed else f"({sql})")

    def written(self, sql: str, **operands: Any) -> Any:
        """A piece of SQL, in which operands take the places that are named."""
        texts = {name: self.text(operand).this for name, operand in operands.items()}
        return sge.Var(this=f"({sql.format(**texts)})")

    def write_Literal(self, op: Any, *, value: Any, dtype: Any) -> Any:
        """A constant with its type: without one it may be a decimal number, or an integer of 32 bits."""
        if value is None:
            return super().visit_Literal(op, value=value, dtype=dtype)  # type: ignore[misc]
        if dtype.is_floating():
            return self.real(float(value))
        if dtype.is_integer():
            return sge.cast(sge.Literal.number(int(value)), "BIGINT")
        return super().visit_Literal(op, value=value, dtype=dtype)  # type: ignore[misc]

    def real(self, value: float) -> Any:
        """A constant double."""
        if not np.isfinite(value):
            return self.written("CAST(NULL AS DOUBLE PRECISION)")
        return sge.cast(sge.Literal.number(repr(value)), "DOUBLE")

    def write_WindowBoundary(self, op: Any, *, value: Any, preceding: bool) -> Any:
        del value
        return {"value": sge.convert(int(op.value.value)), "side": "preceding" if preceding else "following"}

    def write_Lag(self, op: Any, *, arg: Any, offset: Any, default: Any) -> Any:
        del offset, default
        return self.f.anon.lag(arg, sge.convert(int(op.offset.value)))

    def write_Cast(self, op: Any, *, arg: Any, to: Any) -> Any:
        """Only conversions that have a value for each value."""
        kind = op.arg.dtype
        if kind.is_boolean() and to.is_numeric():
            return self.written("CASE WHEN {a} THEN 1 WHEN NOT {a} THEN 0 END", a=arg)
        if kind.is_floating() and to.is_integer():
            return self.whole(arg)
        if kind.is_integer() and (to.is_integer() or to.is_floating()):
            return sge.cast(arg, "DOUBLE" if to.is_floating() else "BIGINT")
        if kind.is_integer() and to.is_string():
            return sge.cast(arg, "TEXT")
        if (kind.is_floating() and to.is_floating()) or (kind.is_string() and to.is_string()):
            return arg
        raise UnsupportedError(f"{kind} as {to}: this conversion is not offered in a database")

    def write_Floor(self, op: Any, *, arg: Any) -> Any:
        """An integer, as Ibis has it."""
        return arg if op.arg.dtype.is_integer() else self.whole(self.f.floor(arg))

    def write_FloorDivide(self, op: Any, *, left: Any, right: Any) -> Any:
        self._refuse_divisor(op)
        return self.written("({a} - (({a} % {b}) + {b}) % {b}) / {b}", a=left, b=right)

    def write_Modulus(self, op: Any, *, left: Any, right: Any) -> Any:
        self._refuse_divisor(op)
        return self.written("{a} % {b}", a=left, b=right)

    @staticmethod
    def _refuse_divisor(op: Any) -> None:
        constant = op.right.value if isinstance(op.right, ops.Literal) else 0
        if not (op.left.dtype.is_integer() and isinstance(constant, int) and constant > 0):
            raise UnsupportedError("a quotient of integers: only by a positive constant in a database")

    def write_Abs(self, op: Any, *, arg: Any) -> Any:
        del op
        return self.written("CASE WHEN {a} < 0 THEN -{a} ELSE {a} END", a=arg)

    def write_Log(self, op: Any, *, arg: Any, base: Any) -> Any:
        """Engines divide two natural logarithms."""
        del base
        logarithm = self.written("CASE WHEN {a} > 0 THEN LN({a}) END", a=arg)
        by = float(np.log(op.base.value)) if op.base is not None else 1.0
        return logarithm if by == 1.0 else self.written("{a} / {b}", a=logarithm, b=self.real(by))

    @abstractmethod
    def whole(self, number: Any) -> Any:
        """Doubles as 64-bit integers, which those that are not too large fit."""


# --- the engine -------------------------------------------------------------------------------------------------------


_compiling = threading.Lock()


class SqlEngine(Engine):
    """Tables of one database, on a connection of their own, in one read-only transaction for each answer."""

    shares_subexpressions = False
    keeps = False
    compiler: Any
    fence = ("", "")
    """What is written before and after a step of a query so that it is computed as a step."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers = itertools.count()
        self._connection: Any = None
        self._tables: dict[str, _Step] = {}
        """By their names, in an order in which each refers to earlier ones: tables of the session and of public values,
        and the steps of what many queries begin with."""

    @abstractmethod
    def connect(self, native: Any) -> Any:
        """A connection to the database of a table, of which nobody else changes the settings."""

    @abstractmethod
    def source(self, table: str, schema: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """A query of the columns of a table such that each value has its type, and these types."""

    @abstractmethod
    def begin(self) -> None:
        """Begin a transaction that reads one state of the database."""

    @abstractmethod
    def cancel(self) -> None:
        """End what the database is doing, from any thread."""

    def attach(self, native: Any) -> None:
        """Connect to the database of a table, in the thread in which its own connection may be used."""
        if self._connection is None:
            self._connection = self.connect(native)
            weakref.finalize(self, self._connection.close)

    def opened(self, native: Any) -> LazyFrame:
        """The table as `source` reads it."""
        self.attach(native)
        query, types = self.source(table_sql(native), native.schema())
        return self._named(query, types)

    def public_table(self, frame: LazyFrame, columns: Mapping[str, Sequence[Any]]) -> LazyFrame:
        del frame
        types = {name: _TYPES[type(values[0])] for name, values in columns.items()}
        rows = ", ".join(f"({', '.join(map(self._constant, row))})" for row in zip(*columns.values(), strict=True))
        names = ", ".join(f"column{place} AS {name}" for place, name in enumerate(types, 1))
        return self._named(f"SELECT {names} FROM (VALUES {rows}) AS given", types)

    def _constant(self, value: Any) -> str:
        node = ibis.literal(value).op()
        return str(self.compiler.write_Literal(node, value=value, dtype=node.dtype).sql(self.compiler.dialect))

    def _named(self, query: str, types: Mapping[str, Any]) -> LazyFrame:
        return self._table(_Step(query, frozenset(), is_table=True), types)

    def _new_name(self) -> str:
        return f"step{next(self._numbers)}"

    def planned(self, frame: LazyFrame) -> LazyFrame:
        steps, last, used = self._compiled(frame)
        return self._table(_Step(last, used, before=steps), frame.to_native().schema())

    def _table(self, step: _Step, types: Mapping[str, Any]) -> LazyFrame:
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
        limbs = [limb for column in columns for limb in (native[column] // LIMB, native[column] % LIMB)]
        native = native.mutate(**{to: folded(limbs)})
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
            raise UnsupportedError(f"{words(node)}: on {self.name} .round() needs numbers below 2**62, with its decimals")

    def kept(self, frame: LazyFrame) -> LazyFrame:
        raise UnsupportedError(f"{self.label}: keeps nothing for a session")

    def run(self, work: Callable[[], T], natives: Iterable[Any], within: float | None = None) -> T:
        del natives
        return self._background.run(lambda: self._in_transaction(work), self._cancel, within)

    def _cancel(self) -> None:
        if self._connection is not None:
            self.cancel()

    def _in_transaction(self, work: Callable[[], T]) -> T:
        if self._connection is None:  # the tables are being opened
            return work()
        self.begin()
        try:
            return work()
        finally:
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

    def _texts(self, name: str, step: _Step) -> list[str]:
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
class _Step:
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


# --- the tables that are taken ----------------------------------------------------------------------------------------


TAKEN = frozenset(
    "DatabaseTable Project Filter Field Literal DropColumns Alias Equals NotEquals Less LessEqual Greater GreaterEqual "
    "And Or Not IsNull NotNull InValues Between".split()
)
"""The operations of a table that is passed: none can fail, whatever the rows are, or depend on anything but the rows."""


def table_sql(native: Any) -> str:
    """The SQL of a table that is passed; refuses one with operations that may fail."""
    names = {type(node).__name__ for node in native.op().find(ops.Node)}
    if names - TAKEN:
        raise SchemaError(
            f"table: must be a table of the database, or columns and rows of one that comparisons choose; got "
            f"{', '.join(sorted(names - TAKEN))}; write its result into a table once, and pass that"
        )
    return str(ibis.to_sql(native))
