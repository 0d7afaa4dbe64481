"""An expression over prepared columns.  Reads rows; every value in here is private.

It is total: whatever a row holds, the result is a value or nothing.  Numbers (dates among them) are float64 with NaN
for nothing, categories are codes with -1 for nothing, conditions are two masks, where true and where false.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpnb.query.expressions.dates import part_of
from dpnb.query.expressions.kinds import Category, Kind, Moment, Number, Span, Truth, Words, kind_of, step_of
from dpnb.query.expressions.nodes import (
    And,
    Apply,
    Arithmetic,
    AsNumber,
    Clip,
    Column,
    Compare,
    Cut,
    Expression,
    Fill,
    IsIn,
    Literal,
    Lookup,
    Missing,
    Node,
    Not,
    Or,
    Part,
    Round,
    Where,
)
from dpnb.query.prepare import Prepared
from dpnb.query.schema import Key, Schema, iso_time, seconds_of, text_of

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]
Mask = NDArray[np.bool_]

COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "//": np.floor_divide,
    "%": np.mod,
    "**": np.power,
}
FUNCTIONS: dict[str, Callable[[Floats], Floats]] = {"abs": np.abs, "log1p": np.log1p, "exp": np.exp}


class Rows:
    """The rows of one table, for the expressions of one question; each expression is computed once.

    Parameters
    ----------
    table : Prepared
    schema : dict
    """

    def __init__(self, table: Prepared, schema: Schema) -> None:
        self._table = table
        self._schema = schema
        self._done: dict[tuple[str, Expression], Any] = {}

    @cached_property
    def zeros(self) -> NDArray[np.int64]:
        """A 0 for each row."""
        return np.zeros(self._table.rows, np.int64)

    def kind(self, node: Expression) -> Kind:
        """What the expression gives."""
        return kind_of(node, self._schema)

    def present(self, node: Expression) -> Mask:
        """Where the expression gives something."""
        kind = self.kind(node)
        if isinstance(kind, Truth):
            true, false = self.truth(node)
            return true | false
        if isinstance(kind, Category | Words):
            return self.codes(node) >= 0
        return ~np.isnan(self.numbers(node))

    def numbers(self, node: Expression) -> Floats:
        """A number, a point in time or a span of time; NaN for nothing.  A condition is 1 or 0."""
        return self._once("numbers", node, self._numbers)  # type: ignore[no-any-return]

    def codes(self, node: Expression) -> Codes:
        """The place of each row's value in what `kind` lists (of texts, in the table's own list); -1 for nothing."""
        return self._once("codes", node, self._codes)  # type: ignore[no-any-return]

    def truth(self, node: Expression) -> tuple[Mask, Mask]:
        """Where a condition is true and where it is false; a row in neither lacks what the condition asks about."""
        return self._once("truth", node, self._truth)  # type: ignore[no-any-return]

    def _once(self, what: str, node: Expression, compute: Callable[[Expression], Any]) -> Any:
        found = self._done.get((what, node))
        if found is None:
            found = self._done[what, node] = compute(node)
        return found

    # --- numbers -----------------------------------------------------------------------------------------------

    def _numbers(self, node: Expression) -> Floats:
        kind = self.kind(node)
        if isinstance(kind, Truth):
            true, false = self.truth(node)
            return np.where(true, 1.0, np.where(false, 0.0, np.nan))
        if isinstance(node, Column):
            return self._table.numbers[node.name]
        values = np.asarray(self._computed(node), np.float64)
        # What overflows or is not defined is nothing, like any other value that does not count.
        return np.where(np.isfinite(values), values, np.nan)

    def _computed(self, node: Expression) -> Any:
        match node:
            case Literal(value):
                return np.full(self._table.rows, self._constant(value, self.kind(node)))
            case Arithmetic(operation, left, right):
                return ARITHMETIC[operation](self._side(left), self._side(right))
            case Fill(inner, value):
                values = self.numbers(inner)
                return np.where(np.isnan(values), self._constant(value, self.kind(inner)), values)
            case Where(condition, inner, otherwise):
                true, false = self.truth(condition)
                return np.where(true, self._side(inner), np.where(false, self._side(otherwise), np.nan))
            case Clip(inner, low, high):
                return np.clip(self.numbers(inner), low, high)
            case Apply(function, inner):
                return FUNCTIONS[function](self.numbers(inner))
            case Round(inner, decimals):
                return np.round(self.numbers(inner), decimals)
            case Part(part, inner):
                return part_of(part, self.numbers(inner))
            case AsNumber(inner):
                return self._as_numbers(inner)
            case Lookup():
                found = [np.nan if value is None else float(value) for value in node.values]
                return np.array([*found, np.nan])[self.looked_up(node)]
        raise TypeError(type(node).__name__)

    def _side(self, node: Expression) -> Any:
        """An operand; a constant stays one number."""
        if isinstance(node, Literal):
            return self._constant(node.value, Moment(0, 0) if isinstance(node.value, str) else self.kind(node))
        return self.numbers(node)

    def _constant(self, value: Key, kind: Kind) -> float:
        if isinstance(value, str) and isinstance(kind, Moment | Span):
            return seconds_of(iso_time(value, "date"))
        return float(value)

    def _as_numbers(self, inner: Expression) -> Floats:
        kind = self.kind(inner)
        if isinstance(kind, Category):
            return np.array([*map(float, kind.values), np.nan])[self.codes(inner)]
        return self.numbers(inner)

    # --- categories and texts ----------------------------------------------------------------------------------

    def _codes(self, node: Expression) -> Codes:
        if isinstance(node, Column):
            return self._table.codes[node.name]
        kind = self.kind(node)
        values = kind.values if isinstance(kind, Category) else ()
        match node:
            case Literal(value):
                return np.full(self._table.rows, values.index(value), np.int32)
            case Fill(inner, value):
                codes = self._recoded(inner, values)
                return np.where(codes < 0, np.int32(values.index(value)), codes)
            case Where(condition, inner, otherwise):
                true, false = self.truth(condition)
                kept, other = self._recoded(inner, values), self._recoded(otherwise, values)
                return np.where(true, kept, np.where(false, other, np.int32(-1)))
            case Cut():
                return self._cut(node, values)
            case Lookup():
                places = [-1 if value is None else values.index(value) for value in node.values]
                return np.array([*places, -1], np.int32)[self.looked_up(node)]
        raise TypeError(type(node).__name__)

    def _recoded(self, node: Expression, values: tuple[Key, ...]) -> Codes:
        """Codes of one list of categories as codes of a longer one."""
        if isinstance(node, Literal):
            return np.full(self._table.rows, values.index(node.value), np.int32)
        kind = self.kind(node)
        own = kind.values if isinstance(kind, Category) else ()
        return np.array([*(values.index(value) for value in own), -1], np.int32)[self.codes(node)]

    def _cut(self, node: Cut, values: tuple[Key, ...]) -> Codes:
        numbers, edges = self.numbers(node.inner), np.array(node.edges)
        bins = np.searchsorted(edges, numbers, side="left" if node.right else "right") - 1
        at_end = edges[0] if node.right else edges[-1]
        bins = np.where(numbers == at_end, 0 if node.right else len(edges) - 2, bins)
        bins = np.where(np.isnan(numbers) | (numbers < edges[0]) | (numbers > edges[-1]), -1, bins)
        return np.array([*(values.index(label) for label in node.labels), -1], np.int32)[bins]

    def looked_up(self, node: Lookup) -> NDArray[np.int64]:
        """The place in `keys` of each row's key; -1 for a key that is not there.

        Level by level: what was found so far is numbered, so that nothing grows with the product of the levels.
        """
        found = np.zeros(self._table.rows, np.int64)
        wanted = np.zeros(len(node.keys), np.int64)
        for level, inner in enumerate(node.inner):
            codes, listed = self.key_codes(inner, tuple(key[level] for key in node.keys))
            size = len(listed)
            wanted = wanted * size + np.array([listed[key[level]] for key in node.keys], np.int64)
            distinct, wanted = np.unique(wanted, return_inverse=True)
            both = np.where((found < 0) | (codes < 0), -1, found * size + codes)
            at = np.minimum(np.searchsorted(distinct, both), max(len(distinct) - 1, 0))
            found = np.where((both >= 0) & (distinct[at] == both), at, -1)
        place = np.full(len(node.keys) + 1, -1, np.int64)
        place[wanted] = np.arange(len(node.keys))
        return place[found]

    def key_codes(self, node: Expression, wanted: tuple[Key, ...]) -> tuple[NDArray[np.int64], Mapping[Key, int]]:
        """Codes of a key column: `wanted` values are numbered 0, 1, ... as the second result says; -1 for others."""
        listed = {key: place for place, key in enumerate(dict.fromkeys(wanted))}
        kind = self.kind(node)
        if isinstance(kind, Category):
            table = [listed.get(value, -1) for value in kind.values]
        elif isinstance(kind, Words):
            texts = self._table.texts[_column_name(node)]
            table = [-1] * len(texts)
            for key, place in listed.items():
                if (found := texts.get(text_of(key) or "")) is not None:
                    table[found] = place
        elif isinstance(kind, Number | Truth):
            numbers = self.numbers(node)
            order = sorted(listed, key=float)
            if not order:
                return np.full(self._table.rows, -1), listed
            values = np.array([float(value) for value in order])
            at = np.clip(np.searchsorted(values, numbers), 0, len(values) - 1)
            return np.where(values[at] == numbers, np.array([listed[key] for key in order])[at], -1), listed
        else:
            raise TypeError(type(kind).__name__)
        return np.array([*table, -1], np.int64)[self.codes(node)], listed

    # --- conditions --------------------------------------------------------------------------------------------

    def _truth(self, node: Expression) -> tuple[Mask, Mask]:
        match node:
            case And(left, right):
                a, b = self.truth(left), self.truth(right)
                return a[0] & b[0], a[1] | b[1]
            case Or(left, right):
                a, b = self.truth(left), self.truth(right)
                return a[0] | b[0], a[1] & b[1]
            case Not(inner):
                true, false = self.truth(inner)
                return false, true
            case Missing(inner):
                there = self.present(inner)
                return ~there, there
            case Literal(value):
                true = np.full(self._table.rows, bool(value))
                return true, ~true
            case Compare(comparison, left, right):
                true = self._compared(comparison, left, right)
                known = self.present(left)
                if not isinstance(right, Literal):
                    known = known & self.present(right)
                return true & known, ~true & known
            case IsIn(inner, values):
                true = self._is_in(inner, values)
                known = self.present(inner)
                return true & known, ~true & known
            case Where(condition, inner, otherwise):
                true, false = self.truth(condition)
                a, b = self.truth(inner), self.truth(otherwise)
                return (true & a[0]) | (false & b[0]), (true & a[1]) | (false & b[1])
            case Fill(inner, value):
                true, false = self.truth(inner)
                return (true, ~true) if not value else (~false, false)
        raise TypeError(type(node).__name__)

    def _compared(self, comparison: str, left: Expression, right: Expression) -> Mask:
        compare = COMPARE[comparison]
        kind = self.kind(left)
        if isinstance(kind, Category) and isinstance(right, Literal):
            outcome = np.array([bool(compare(key, right.value)) for key in kind.values] + [False])
            return np.asarray(outcome[self.codes(left)])
        if isinstance(kind, Words) and isinstance(right, Literal):
            code = self._table.texts[_column_name(left)].get(text_of(right.value) or "", -2)
            return np.asarray(compare(self.codes(left), code))
        if isinstance(kind, Truth):
            return np.asarray(compare(self.truth(left)[0], self.truth(right)[0]))
        return np.asarray(compare(self.numbers(left), self._side(right)))

    def _is_in(self, inner: Expression, values: tuple[Key, ...]) -> Mask:
        kind = self.kind(inner)
        if isinstance(kind, Moment):
            return np.isin(self.numbers(inner), [self._constant(value, kind) for value in values])
        return self.key_codes(inner, values)[0] >= 0


def combined_codes(codes: list[NDArray[Any]], sizes: list[int]) -> tuple[NDArray[np.int64], int]:
    """Several codes as one number, the last one running fastest; -1 where any is.  Also how many there can be.

    Not for sizes whose product is beyond 64 bits; see `dense_codes`.
    """
    combined = np.zeros(len(codes[0]), np.int64)
    missing = np.zeros(len(codes[0]), np.bool_)
    total = 1
    for code, size in zip(codes, sizes, strict=True):
        combined = combined * size + code
        missing |= code < 0
        total *= size
    return np.where(missing, -1, combined), total


def dense_codes(codes: list[NDArray[Any]]) -> NDArray[np.int64]:
    """Several codes as one number, numbered densely in the order of the tuples; -1 where any is."""
    combined = codes[0].astype(np.int64)
    for code in codes[1:]:
        pair = np.where((combined < 0) | (code < 0), -1, combined * (int(code.max(initial=0)) + 1) + code)
        distinct, dense = np.unique(pair, return_inverse=True)
        combined = dense.reshape(-1) - int(len(distinct) > 0 and distinct[0] < 0)
    return combined


def level_codes(node: Expression, rows: Rows) -> tuple[NDArray[np.int64], int]:
    """The place of each row's value among the public ones, -1 for none; and how many there are."""
    kind = rows.kind(node)
    if isinstance(kind, Category):
        return rows.codes(node).astype(np.int64), len(kind.values)
    if isinstance(kind, Truth):
        true, false = rows.truth(node)
        return np.where(true, 1, np.where(false, 0, -1)), 2
    numbers = rows.numbers(node)
    low, high = math.ceil(kind.low), math.floor(kind.high)  # type: ignore[union-attr]  # keys_of has seen to it
    step = step_of(node)
    codes = np.where(np.isnan(numbers) | (numbers < low) | (numbers > high), low - step, numbers) - low
    return codes.astype(np.int64) // step, (high - low) // step + 1


def _column_name(node: Node) -> str:
    """Texts come from columns alone: no expression makes a text."""
    if not isinstance(node, Column):
        raise TypeError(type(node).__name__)
    return node.name
