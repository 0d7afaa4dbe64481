"""An expression over prepared columns.  Reads rows; every value in here is private.

It is total: whatever a row holds, the result of every step is a value within its bounds, or nothing.  Numbers (dates
among them) are float64 with NaN for nothing, categories are codes with -1 for nothing, conditions are two masks, where
true and where false.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpnb.query.expressions.dates import part_of
from dpnb.query.expressions.kinds import (
    Category,
    Kind,
    Moment,
    Number,
    Span,
    Truth,
    Words,
    is_rounded,
    kind_of,
    step_of,
)
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
from dpnb.query.expressions.shared import Shared
from dpnb.query.prepare import Prepared
from dpnb.query.schema import Key, Schema, iso_time, seconds_of, text_of
from dpnb.query.values import Codes

Floats = NDArray[np.float64]
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
    """The rows of one table, or a block of them, for the expressions of one question; each is computed once.

    Parameters
    ----------
    table : Prepared
    schema : dict
    """

    def __init__(self, table: Prepared, schema: Schema) -> None:
        self._table = table
        self._schema = schema
        self._part = slice(0, table.rows)
        self._shared = Shared()
        self._done: dict[tuple[str, int], Any] = {}

    def block(self, part: slice) -> Rows:
        """Some of the rows."""
        block = Rows(self._table, self._schema)
        block._part, block._shared = part, self._shared
        return block

    @property
    def size(self) -> int:
        """Number of rows."""
        return int(self._part.stop - self._part.start)

    @property
    def most(self) -> int | None:
        """No unit has more rows than this."""
        return self._table.most

    @cached_property
    def units(self) -> NDArray[np.int64]:
        """Whose row it is, ascending."""
        return self._table.units[self._part].astype(np.int64)

    @property
    def names(self) -> NDArray[np.int64]:
        """The unit's name as a portable integer."""
        return self._table.names[self.units]

    @property
    def ranks(self) -> NDArray[Any]:
        """The place of each row among its unit's rows."""
        return self._table.ranks[self._part]

    @cached_property
    def everywhere(self) -> Mask:
        """True for each row."""
        return np.ones(self.size, np.bool_)

    def both(self, left: Mask, right: Mask) -> Mask:
        """Where both are true; costs nothing where one is `everywhere`."""
        return right if left is self.everywhere else left if right is self.everywhere else left & right

    def kind(self, node: Expression) -> Kind:
        """What the expression gives."""
        return self._shared.once("kind", node, lambda node: kind_of(node, self._schema))

    def steps(self, name: str) -> NDArray[np.int32] | None:
        """A column in grid steps, if it has them; anything where there is nothing."""
        steps = self._table.steps(name)
        return None if steps is None else steps[self._part]

    def present(self, node: Expression) -> Mask:
        """Where the expression gives something."""
        if isinstance(node, Column) and node.name in self._table.complete:
            return self.everywhere
        return self._once("present", node, self._present)  # type: ignore[no-any-return]

    def _present(self, node: Expression) -> Mask:
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
        key = what, self._shared.number(node)
        found = self._done.get(key)
        if found is None:
            found = self._done[key] = compute(node)
        return found

    # --- numbers -----------------------------------------------------------------------------------------------

    def _numbers(self, node: Expression) -> Floats:
        kind = self.kind(node)
        if isinstance(kind, Truth):
            true, false = self.truth(node)
            return np.where(true, 1.0, np.where(false, 0.0, np.nan))
        if isinstance(node, Column):
            return self._table.numbers[node.name][self._part]
        values = np.asarray(self._computed(node), np.float64)
        # What overflows or is not defined is nothing, like any other value that does not count.
        finite = np.isfinite(values)
        values = values if finite.all() else np.where(finite, values, np.nan)
        return np.clip(values, kind.low, kind.high) if isinstance(kind, Number) and is_rounded(node) else values

    def _computed(self, node: Expression) -> Any:
        match node:
            case Literal(value):
                return np.full(self.size, self._constant(value, self.kind(node)))
            case Arithmetic("**", left, Literal(2)):
                return np.square(self.numbers(left))
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
            return self._table.codes[node.name][self._part]
        kind = self.kind(node)
        values = kind.values if isinstance(kind, Category) else ()
        match node:
            case Literal(value):
                return np.full(self.size, values.index(value), np.int32)
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
            return np.full(self.size, values.index(node.value), np.int32)
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
        levels, place = self._shared.once("levels", node, self._levels)
        found = np.zeros(self.size, np.int64)
        for inner, (wanted, distinct) in zip(node.inner, levels, strict=True):
            codes = self._key_codes(inner, wanted)
            both = np.where((found < 0) | (codes < 0), -1, found * len(wanted.places) + codes)
            at = np.minimum(np.searchsorted(distinct, both), max(len(distinct) - 1, 0))
            found = np.where((both >= 0) & (distinct[at] == both), at, -1)
        return place[found]

    def _levels(self, node: Lookup) -> tuple[list[tuple[_Wanted, NDArray[np.int64]]], NDArray[np.int64]]:
        """Of each level its values, and which numbers of what is found by then lead on; the place of each end."""
        levels = []
        found = np.zeros(len(node.keys), np.int64)
        for level, inner in enumerate(node.inner):
            wanted = self._wanted(inner, tuple(key[level] for key in node.keys))
            codes = np.array([wanted.places[key[level]] for key in node.keys], np.int64)
            distinct, found = np.unique(found * len(wanted.places) + codes, return_inverse=True)
            levels.append((wanted, distinct))
        place = np.full(len(node.keys) + 1, -1, np.int64)
        place[found] = np.arange(len(node.keys))
        return levels, place

    def _wanted(self, node: Expression, keys: tuple[Key, ...]) -> _Wanted:
        """Some values of a key column, numbered 0, 1, ..."""
        places = {key: place for place, key in enumerate(dict.fromkeys(keys))}
        kind = self.kind(node)
        if isinstance(kind, Category):
            table = [places.get(value, -1) for value in kind.values]
        elif isinstance(kind, Words):
            texts = self._table.texts[_column_name(node)]
            table = [-1] * len(texts)
            for key, place in places.items():
                if (found := texts.get(text_of(key) or "")) is not None:
                    table[found] = place
        elif isinstance(kind, Number | Truth):
            order = sorted(places, key=float)
            numbers = np.array([float(value) for value in order])
            return _Wanted(places, np.array([places[key] for key in order], np.int64), numbers)
        else:
            raise TypeError(type(kind).__name__)
        return _Wanted(places, np.array([*table, -1], np.int64), None)

    def _key_codes(self, node: Expression, wanted: _Wanted) -> NDArray[np.int64]:
        """Each row's value by number; -1 for others."""
        if wanted.numbers is None:
            return wanted.table[self.codes(node)]
        if not wanted.places:
            return np.full(self.size, -1)
        numbers = self.numbers(node)
        at = np.clip(np.searchsorted(wanted.numbers, numbers), 0, len(wanted.table) - 1)
        return np.where(wanted.numbers[at] == numbers, wanted.table[at], -1)

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
                true = np.full(self.size, bool(value))
                return true, ~true
            case Compare(comparison, left, right):
                true = self._compared(comparison, left, right)
                known = self.present(left)
                if not isinstance(right, Literal):
                    known = self.both(known, self.present(right))
                return self.both(true, known), self.both(~true, known)
            case IsIn(inner):
                true = self._is_in(node)
                known = self.present(inner)
                return self.both(true, known), self.both(~true, known)
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

    def _is_in(self, node: IsIn) -> Mask:
        kind = self.kind(node.inner)
        if isinstance(kind, Moment):
            return np.isin(self.numbers(node.inner), [self._constant(value, kind) for value in node.values])
        wanted = self._shared.once("wanted", node, lambda node: self._wanted(node.inner, node.values))
        return self._key_codes(node.inner, wanted) >= 0


@dataclass(frozen=True)
class _Wanted:
    """Values of a key column that are looked for.

    Parameters
    ----------
    places : dict
        Their numbers.
    table : int64 array
        The number of each code of the column, -1 for none; or of each of `numbers`.
    numbers : float64 array or None
        Ascending, where the column is one of numbers.
    """

    places: Mapping[Key, int]
    table: NDArray[np.int64]
    numbers: Floats | None


def combined_codes(codes: list[NDArray[Any]], sizes: list[int]) -> tuple[NDArray[np.int64], int]:
    """Several codes as one number, the last one running fastest; -1 where any is.  Also how many there can be.

    Not for sizes whose product is beyond 64 bits; see `dense_codes`.
    """
    combined = codes[0].astype(np.int64)
    missing = combined < 0
    total = sizes[0]
    for code, size in zip(codes[1:], sizes[1:], strict=True):
        combined *= size
        combined += code
        missing |= code < 0
        total *= size
    combined[missing] = -1
    return combined, total


def dense_codes(codes: list[NDArray[Any]]) -> NDArray[np.int64]:
    """Several codes as one number, numbered densely in the order of the tuples; -1 where any is."""
    combined = codes[0].astype(np.int64)
    for code in codes[1:]:
        pair = np.where((combined < 0) | (code < 0), -1, combined * (int(code.max(initial=0)) + 1) + code)
        distinct, dense = np.unique(pair, return_inverse=True)
        combined = dense.reshape(-1) - int(len(distinct) > 0 and distinct[0] < 0)
    return combined


def level_codes(node: Expression, rows: Rows) -> tuple[NDArray[Any], int]:
    """The place of each row's value among the public ones, -1 for none; and how many there are.

    In a type that holds this number too.
    """
    kind = rows.kind(node)
    if isinstance(kind, Category):
        return rows.codes(node), len(kind.values)
    if isinstance(kind, Truth):
        true, false = rows.truth(node)
        return np.where(true, 1, np.where(false, 0, -1)), 2
    numbers = rows.numbers(node)
    low, high = math.ceil(kind.low), math.floor(kind.high)  # type: ignore[union-attr]  # keys_of has seen to it
    step = step_of(node)
    codes = np.where((numbers >= low) & (numbers <= high), numbers, low - step) - low  # NaN is neither
    return codes.astype(np.int64) // step, (high - low) // step + 1


def _column_name(node: Node) -> str:
    """Texts come from columns alone: no expression makes a text."""
    if not isinstance(node, Column):
        raise TypeError(type(node).__name__)
    return node.name
