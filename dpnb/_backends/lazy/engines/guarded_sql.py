"""The SQL of expressions of Ibis, written so that no row is an error: what databases have in common.

Databases raise at a division by zero, at a number that is too large or too small, or at one that fits no integer, and
an error after a charge is an answer without noise.  So every operation is written by a method of `GuardedSql`, or of
its class for a database; one that is not in `KNOWN` is refused.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from typing import Any

import ibis.expr.datatypes as dt
import ibis.expr.operations as ops
import numpy as np
import sqlglot.expressions as sge
from ibis.backends.sql.rewrites import Select
from ibis.common.patterns import Object, replace

from dpnb.errors import SchemaError, UnsupportedError

TAKEN = frozenset(
    (
        *("DatabaseTable", "Project", "Filter", "Field", "Literal", "DropColumns", "Alias", "Equals", "NotEquals"),
        *(
            "Less",
            "LessEqual",
            "Greater",
            "GreaterEqual",
            "And",
            "Or",
            "Not",
            "IsNull",
            "NotNull",
            "InValues",
            "Between",
        ),
    )
)
"""The operations of a table that is passed: none can fail for some rows, or depends on anything else."""


def refuse_failing(native: Any) -> None:
    """Refuse a table with operations that may fail; the comparison of a decimal number with a double may."""
    nodes = native.op().find((ops.Value, ops.Relation))
    names = {type(node).__name__ for node in nodes} - TAKEN
    compared = (
        argument for node in nodes if isinstance(node, ops.Comparison | ops.InValues) for argument in node.__args__
    )
    if any(isinstance(argument, ops.Value) and argument.dtype.is_decimal() for argument in compared):
        names.add("a comparison of decimal numbers")
    if names:
        raise SchemaError(
            "table: must be a table of the database, or columns and rows of one that are chosen by comparisons; got "
            f"{', '.join(sorted(names))}; write its result into a table once, and pass that"
        )


# --- operations that Ibis does not have -------------------------------------------------------------------------------


class HashOfText(ops.Unary):  # type: ignore[misc]  # Ibis has no types
    """The hash of a text by `dpnb._backends.contribution.label_hash`."""

    dtype = dt.int64


class Microseconds(ops.Unary):  # type: ignore[misc]  # Ibis has no types
    """Microseconds since 1970 of a date or a time; null for those that 64 bits do not hold."""

    dtype = dt.int64


class DateOfDays(ops.Unary):  # type: ignore[misc]  # Ibis has no types
    """A date, from a number of days since 1970."""

    dtype = dt.date


class WithCase(ops.Value):  # type: ignore[misc]
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

LONGEST = 2**20
"""The most bytes of a text; a longer one is missing, since databases raise where a row with copies is too long."""

KNOWN = frozenset(
    (
        *("Field", "Literal", "Cast", "Alias", "Add", "Subtract", "Multiply", "Divide", "FloorDivide", "Modulus"),
        *("Negate", "Abs", "Floor", "Exp", "Log", "Power", "IsNan", "IsInf", "InValues", "Coalesce", "IfElse"),
        *("Equals", "NotEquals", "Less", "LessEqual", "Greater", "GreaterEqual", "And", "Or", "Not", "IsNull"),
        *("NotNull", "SearchedCase", "WindowFunction", "WindowBoundary", "SortKey", "Sum", "Min", "Max", "Count"),
        *("CountStar", "Lag", "RowNumber", "StringLength", "StartsWith", "EndsWith", "StringContains"),
        *("ExtractYear", "ExtractMonth", "ExtractDay", "ExtractDayOfYear"),
        *("HashOfText", "Microseconds", "DateOfDays", "WithCase"),
        *("UnboundTable", "Select", "CTE", "Aggregate", "JoinChain", "JoinLink", "JoinReference", "SelfReference"),
        *("Union", "DropColumns", "FillNull"),
    )
)
"""The operations that are written such that no value is an error."""

AS_TREES = frozenset(
    ("Field", "Alias", "SortKey", "WindowBoundary", "Sum", "Min", "Max", "Count", "CountStar", "Lag", "RowNumber")
)
"""The values that Ibis takes apart."""


@replace(Object(Select, Object(Select)))  # type: ignore[untyped-decorator]
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


def _snake(name: str) -> str:
    return re.sub("(?<!^)(?=[A-Z])", "_", name).lower()


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
        write = getattr(self, f"write_{_snake(name)}", None)
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

    def write_literal(self, op: Any, *, value: Any, dtype: Any) -> Any:
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

    def write_window_boundary(self, op: Any, *, value: Any, preceding: bool) -> Any:
        del value
        return {"value": sge.convert(int(op.value.value)), "side": "preceding" if preceding else "following"}

    def write_lag(self, op: Any, *, arg: Any, offset: Any, default: Any) -> Any:
        del offset, default
        return self.f.anon.lag(arg, sge.convert(int(op.offset.value)))

    def write_cast(self, op: Any, *, arg: Any, to: Any) -> Any:
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

    def write_floor(self, op: Any, *, arg: Any) -> Any:
        """An integer, as Ibis has it."""
        return arg if op.arg.dtype.is_integer() else self.whole(self.f.floor(arg))

    def write_floor_divide(self, op: Any, *, left: Any, right: Any) -> Any:
        self._refuse_divisor(op)
        return self.written("({a} - (({a} % {b}) + {b}) % {b}) / {b}", a=left, b=right)

    def write_modulus(self, op: Any, *, left: Any, right: Any) -> Any:
        self._refuse_divisor(op)
        return self.written("{a} % {b}", a=left, b=right)

    @staticmethod
    def _refuse_divisor(op: Any) -> None:
        constant = op.right.value if isinstance(op.right, ops.Literal) else 0
        if not (op.left.dtype.is_integer() and isinstance(constant, int) and constant > 0):
            raise UnsupportedError("a quotient of integers: only by a positive constant in a database")

    def write_abs(self, op: Any, *, arg: Any) -> Any:
        del op
        return self.written("CASE WHEN {a} < 0 THEN -{a} ELSE {a} END", a=arg)

    def write_log(self, op: Any, *, arg: Any, base: Any) -> Any:
        """Engines divide two natural logarithms."""
        del base
        logarithm = self.written("CASE WHEN {a} > 0 THEN LN({a}) END", a=arg)
        by = float(np.log(op.base.value)) if op.base is not None else 1.0
        return logarithm if by == 1.0 else self.written("{a} / {b}", a=logarithm, b=self.real(by))

    @abstractmethod
    def whole(self, number: Any) -> Any:
        """Doubles as 64-bit integers, which those that are not too large fit."""
