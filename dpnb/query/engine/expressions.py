"""An expression as the engine is asked to compute it: `dpnb.query.expressions.evaluate`, said in narwhals.

It is total in the same way: a number comes with where it is there, and has a stand-in within its bounds elsewhere, so
that interval arithmetic holds for every row and nothing overflows, divides by zero or is undefined, which some engines
answer with an error; a code is -1 for nothing; a condition is two truth values, where true and where false.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import narwhals as nw

from dpnb.errors import UnsupportedError
from dpnb.query.engine import arithmetic, dates
from dpnb.query.engine.table import EngineTable
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
from dpnb.query.expressions.words import words
from dpnb.query.schema import Key, Schema, iso_time, seconds_of, text_of

COMPARE: dict[str, Callable[[Any, Any], nw.Expr]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
HEAVY = 30
"""Of an expression, about as many times as columns are named in it."""

ALWAYS, NEVER = nw.lit(True), nw.lit(False)


@dataclass(frozen=True)
class Figure:
    """A number, a moment or a span: a value for every row, and where it counts."""

    value: nw.Expr
    there: nw.Expr


@dataclass(frozen=True)
class Condition:
    """Where it is true and where it is false."""

    true: nw.Expr
    false: nw.Expr


class Rows:
    """The rows of one table, for the expressions of one question.

    Before an expression becomes long it is made a column of `frame`, and used by that name, so that what is asked of
    the engine grows with the question and not with its powers.

    Parameters
    ----------
    table : EngineTable
    schema : dict

    Attributes
    ----------
    frame : LazyFrame
        The table's, with the columns that were made.
    """

    def __init__(self, table: EngineTable, schema: Schema) -> None:
        self._table, self._schema = table, schema
        self.frame = table.frame
        self._done: dict[tuple[str, Expression], Any] = {}
        self._weights: dict[Node, int] = {}
        self._made = 0

    def kind(self, node: Expression) -> Kind:
        """What the expression gives."""
        return kind_of(node, self._schema)

    def present(self, node: Expression) -> nw.Expr:
        """Where the expression gives something."""
        kind = self.kind(node)
        if isinstance(kind, Truth):
            condition = self.truth(node)
            return condition.true | condition.false
        if isinstance(kind, Category):
            return self.codes(node) >= 0
        return self.text(node).there if isinstance(kind, Words) else self.numbers(node).there

    def numbers(self, node: Expression) -> Figure:
        """A number, a point in time or a span of time; a condition is 1 or 0."""
        return self._once("numbers", node, self._numbers)  # type: ignore[no-any-return]

    def codes(self, node: Expression) -> nw.Expr:
        """The place of each row's value in what `kind` lists; -1 for nothing."""
        return self._once("codes", node, self._codes)  # type: ignore[no-any-return]

    def truth(self, node: Expression) -> Condition:
        """Where a condition is true and where it is false."""
        return self._once("truth", node, self._truth)  # type: ignore[no-any-return]

    def text(self, node: Expression) -> Figure:
        """A column of texts."""
        stem = self._table.stems[_column_name(node)]
        return Figure(nw.col(stem), nw.col(f"{stem}_there"))

    def made(self, value: nw.Expr) -> nw.Expr:
        """The expression as a column of `frame`."""
        name = f"e{self._made}"
        self._made += 1
        self.frame = self.frame.with_columns(**{name: value})
        return nw.col(name)

    def divided(self, column: nw.Expr, by: float) -> nw.Expr:
        """A column of finite doubles divided by one number."""
        return self._table.engine.divided(column, by)

    def _dated(self, days: nw.Expr) -> nw.Expr:
        """Dates, of days since 1970, as a column of `frame`."""
        name = f"d{self._made}"
        self.frame = self._table.engine.dated(self.frame.with_columns(**{f"{name}_day": days}), f"{name}_day", name)
        self._made += 1
        return nw.col(name)

    def _once(self, what: str, node: Expression, compute: Callable[[Expression], Any]) -> Any:
        found = self._done.get((what, node))
        if found is None:
            found = compute(node)
            weight = self._weights[node] = 1 + 2 * sum(self._weights.get(inner, 1) for inner in _inner(node))
            if weight > HEAVY:
                self._weights[node] = 1
                if isinstance(found, Figure):
                    found = Figure(self.made(found.value), self.made(found.there))
                elif isinstance(found, Condition):
                    found = Condition(self.made(found.true), self.made(found.false))
                else:
                    found = self.made(found)
            self._done[what, node] = found
        return found

    # --- numbers -----------------------------------------------------------------------------------------------

    def _numbers(self, node: Expression) -> Figure:
        figure, kind = self._computed(node), self.kind(node)
        return self._within(figure, kind) if isinstance(kind, Number) and is_rounded(node) else figure

    def _within(self, figure: Figure, kind: Number) -> Figure:
        """What was computed, within its bounds; nothing where an engine gave no number."""
        value = self.made(figure.value)
        finite = value.is_finite().fill_null(False)
        value = nw.when(finite).then(value).otherwise(nw.lit(kind.low))
        return Figure(self.made(arithmetic.clipped(value, kind.low, kind.high)), figure.there & finite)

    def _computed(self, node: Expression) -> Figure:
        kind = self.kind(node)
        if isinstance(kind, Truth):
            condition = self.truth(node)
            value = nw.when(condition.true).then(nw.lit(1.0)).otherwise(nw.lit(0.0))
            return Figure(value, condition.true | condition.false)
        match node:
            case Column(name):
                stem = self._table.stems[name]
                return Figure(nw.col(stem), nw.col(f"{stem}_there"))
            case Literal(constant):
                return Figure(nw.lit(self._constant(constant, kind)), ALWAYS)
            case Arithmetic():
                return self._arithmetic(node)
            case Fill(inner, constant):
                found = self.numbers(inner)
                other = nw.lit(self._constant(constant, self.kind(inner)))
                return Figure(nw.when(found.there).then(found.value).otherwise(other), ALWAYS)
            case Where(condition_node, inner, otherwise):
                condition, a, b = self.truth(condition_node), self._side(inner), self._side(otherwise)
                there = (condition.true & a.there) | (condition.false & b.there)
                return Figure(nw.when(condition.true).then(a.value).otherwise(b.value), there)
            case Clip(inner, low, high):
                found = self.numbers(inner)
                return Figure(arithmetic.clipped(found.value, low, high), found.there)
            case Apply(function, inner):
                found = self.numbers(inner)
                value = {"abs": found.value.abs, "exp": found.value.exp, "log1p": (found.value + 1.0).log}[function]()
                return Figure(value, found.there)
            case Round(inner, decimals):
                found = self.numbers(inner)
                return Figure(arithmetic.rounded(found.value, decimals, self._table.engine), found.there)
            case Part(part, inner):
                found = self.numbers(inner)
                return Figure(dates.part_of(part, found.value, self._dated, self.divided), found.there)
            case AsNumber(inner):
                return self._as_numbers(inner)
            case Lookup(values=values):
                listed = [0.0 if value is None else float(value) for value in values]
                stand_in = next((float(value) for value in values if value is not None), 0.0)
                return self._read_off(node, [stand_in if v is None else x for v, x in zip(values, listed, strict=True)])
        raise TypeError(type(node).__name__)

    def _arithmetic(self, node: Arithmetic) -> Figure:
        left, right = self._side(node.left), self._side(node.right)
        there = left.there & right.there
        match node.operator:
            case "+":
                value = left.value + right.value
            case "-":
                value = left.value - right.value
            case "*":
                value = left.value * right.value
            case "/" if isinstance(node.right, Literal):
                value = self.divided(left.value, _literal(node.right))
            case "/":
                value = left.value / right.value
            case "**":
                value = arithmetic.powered(left.value, _literal(node.right))
            case _:
                # A kind that is refused by `refuse_expression` unless both sides are whole.
                by = _literal(node.right)
                quotient = self.made(self.divided(left.value, by).floor())
                value = quotient if node.operator == "//" else left.value - quotient * by
        return Figure(value, there)

    def _side(self, node: Expression) -> Figure:
        if isinstance(node, Literal):
            kind = Moment(0, 0) if isinstance(node.value, str) else self.kind(node)
            return Figure(nw.lit(self._constant(node.value, kind)), ALWAYS)
        return self.numbers(node)

    def _constant(self, value: Key, kind: Kind) -> float:
        if isinstance(value, str) and isinstance(kind, Moment | Span):
            return seconds_of(iso_time(value, "date"))
        return float(value)

    def _as_numbers(self, inner: Expression) -> Figure:
        kind = self.kind(inner)
        if not isinstance(kind, Category):
            return self.numbers(inner)
        codes = self.codes(inner)
        return self._of_places(codes, [float(value) for value in kind.values], codes >= 0)

    def _read_off(self, node: Lookup, listed: list[float]) -> Figure:
        place = self.looked_up(node)
        lacking = [number for number, value in enumerate(node.values) if value is None]
        there = place >= 0
        return self._of_places(place, listed, there & ~place.is_in(lacking) if lacking else there)

    def _of_places(self, place: nw.Expr, values: list[float], there: nw.Expr) -> Figure:
        """The number at each place of a list."""
        distinct = sorted(set(values))
        rank = {value: number for number, value in enumerate(distinct)}
        if distinct == [distinct[0] + number for number in range(len(distinct))]:
            number = self.translated(place, [rank[value] for value in values])
            # A row without a place gets a value of the list too.
            return Figure(nw.when(number < 0).then(nw.lit(0)).otherwise(number).cast(nw.Float64) + distinct[0], there)
        found = place.replace_strict(list(range(len(values))), values, default=values[0], return_dtype=nw.Float64)
        return Figure(found, there)

    # --- categories --------------------------------------------------------------------------------------------

    def _codes(self, node: Expression) -> nw.Expr:
        if isinstance(node, Column):
            return nw.col(self._table.stems[node.name])
        kind = self.kind(node)
        values = kind.values if isinstance(kind, Category) else ()
        match node:
            case Literal(value):
                return nw.lit(values.index(value))
            case Fill(inner, value):
                codes = self._recoded(inner, values)
                return nw.when(codes < 0).then(nw.lit(values.index(value))).otherwise(codes)
            case Where(condition_node, inner, otherwise):
                condition = self.truth(condition_node)
                kept, other = self._recoded(inner, values), self._recoded(otherwise, values)
                found = nw.when(condition.false).then(other).otherwise(nw.lit(-1))
                return nw.when(condition.true).then(kept).otherwise(found)
            case Cut():
                return self._cut(node, values)
            case Lookup():
                places = [-1 if value is None else values.index(value) for value in node.values]
                return self.translated(self.looked_up(node), places)
        raise TypeError(type(node).__name__)

    def _recoded(self, node: Expression, values: tuple[Key, ...]) -> nw.Expr:
        """Codes of one list of categories as codes of a longer one."""
        if isinstance(node, Literal):
            return nw.lit(values.index(node.value)).cast(nw.Int64)
        kind = self.kind(node)
        own = kind.values if isinstance(kind, Category) else ()
        return self.translated(self.codes(node), [values.index(value) for value in own])

    def translated(self, codes: nw.Expr, to: list[int]) -> nw.Expr:
        """Codes as those of another list; -1 stays."""
        if to == list(range(len(to))):
            return codes
        return self._table.engine.placed(codes, list(range(len(to))), to)

    def _cut(self, node: Cut, values: tuple[Key, ...]) -> nw.Expr:
        number, edges = self.numbers(node.inner), node.edges
        x = number.value
        place = reduce(
            lambda found, edge: found + nw.when(x > edge if node.right else x >= edge).then(1).otherwise(0),
            edges,
            nw.lit(-1),
        )
        last = len(edges) - 2
        at_end = (x == edges[0]) if node.right else (x == edges[-1])
        place = nw.when(at_end).then(nw.lit(0 if node.right else last)).otherwise(place)
        inside = number.there & (x >= edges[0]) & (x <= edges[-1])
        place = self.made(nw.when(inside).then(place).otherwise(nw.lit(-1)).cast(nw.Int64))
        return self.translated(place, [values.index(label) for label in node.labels])

    def looked_up(self, node: Lookup) -> nw.Expr:
        """The place in `keys` of each row's key; -1 for a key that is not there.  Level by level, as in memory."""
        found: nw.Expr | None = None
        wanted = [0] * len(node.keys)
        engine = self._table.engine
        for level, inner in enumerate(node.inner):
            listed = {key: place for place, key in enumerate(dict.fromkeys(key[level] for key in node.keys))}
            codes = self.made(self.key_codes(inner, listed))
            size = max(len(listed), 1)
            wanted = [so_far * size + listed[key[level]] for so_far, key in zip(wanted, node.keys, strict=True)]
            if found is not None:
                codes = nw.when((found < 0) | (codes < 0)).then(nw.lit(-1)).otherwise(found * size + codes)
            distinct = sorted(set(wanted))
            number = {value: place for place, value in enumerate(distinct)}
            wanted = [number[value] for value in wanted]
            if not distinct:
                return nw.lit(-1).cast(nw.Int64)
            found = self.made(arithmetic.placed(codes, distinct, list(range(len(distinct))), engine))
        if found is None:
            raise TypeError("lookup")
        places = [0] * len(wanted)
        for place, value in enumerate(wanted):
            places[value] = place
        return self.translated(found, places)

    def key_codes(self, node: Expression, listed: dict[Key, int]) -> nw.Expr:
        """The number in `listed` of each row's key; -1 for others."""
        kind, engine = self.kind(node), self._table.engine
        if not listed:
            return nw.lit(-1).cast(nw.Int64)
        if isinstance(kind, Category):
            return self.translated(self.codes(node), [listed.get(value, -1) for value in kind.values])
        if isinstance(kind, Words):
            text = self.text(node)
            by_text = {text_of(key) or "": place for key, place in listed.items()}
            codes = engine.placed(text.value, list(by_text), list(by_text.values()))
            return nw.when(text.there).then(codes).otherwise(nw.lit(-1))
        if isinstance(kind, Number | Truth):
            number = self.numbers(node)
            by_value = {float(key): place for key, place in listed.items()}
            codes = arithmetic.placed(number.value, list(by_value), list(by_value.values()), engine)
            return nw.when(number.there).then(codes).otherwise(nw.lit(-1))
        raise TypeError(type(kind).__name__)

    # --- conditions --------------------------------------------------------------------------------------------

    def _truth(self, node: Expression) -> Condition:
        match node:
            case And(left, right):
                a, b = self.truth(left), self.truth(right)
                return Condition(a.true & b.true, a.false | b.false)
            case Or(left, right):
                a, b = self.truth(left), self.truth(right)
                return Condition(a.true | b.true, a.false & b.false)
            case Not(inner):
                found = self.truth(inner)
                return Condition(found.false, found.true)
            case Missing(inner):
                there = self.present(inner)
                return Condition(~there, there)
            case Literal(value):
                return Condition(ALWAYS, NEVER) if value else Condition(NEVER, ALWAYS)
            case Compare(_, left, right):
                known = self.present(left)
                if not isinstance(right, Literal):
                    known = known & self.present(right)
                true = self.made(self._compared(node))
                return Condition(true & known, ~true & known)
            case IsIn(inner, values):
                known, true = self.present(inner), self.made(self._is_in(inner, values))
                return Condition(true & known, ~true & known)
            case Where(condition_node, inner, otherwise):
                condition, a, b = self.truth(condition_node), self.truth(inner), self.truth(otherwise)
                return Condition(
                    (condition.true & a.true) | (condition.false & b.true),
                    (condition.true & a.false) | (condition.false & b.false),
                )
            case Fill(inner, value):
                found = self.truth(inner)
                return Condition(~found.false, found.false) if value else Condition(found.true, ~found.true)
        raise TypeError(type(node).__name__)

    def _compared(self, node: Compare) -> nw.Expr:
        compare, left, right = COMPARE[node.operator], node.left, node.right
        kind = self.kind(left)
        if isinstance(kind, Category) and isinstance(right, Literal):
            wanted = [code for code, key in enumerate(kind.values) if bool(compare(key, right.value))]
            return self.codes(left).is_in(wanted) if wanted else self.codes(left) < -1
        if isinstance(kind, Words) and isinstance(right, Literal):
            return compare(self.text(left).value, nw.lit(text_of(right.value) or ""))
        if isinstance(kind, Truth):
            a, b = self.truth(left).true, self.truth(right).true
            same = (a & b) | (~a & ~b)
            return same if node.operator == "==" else ~same
        return compare(self.numbers(left).value, self._side(right).value)

    def _is_in(self, inner: Expression, values: tuple[Key, ...]) -> nw.Expr:
        kind = self.kind(inner)
        if isinstance(kind, Moment):
            return self.numbers(inner).value.is_in([self._constant(value, kind) for value in values])
        return self.key_codes(inner, {key: place for place, key in enumerate(dict.fromkeys(values))}) >= 0


def level_codes(node: Expression, rows: Rows) -> tuple[nw.Expr, int]:
    """The place of each row's value among the public ones, -1 for none; and how many there are."""
    kind = rows.kind(node)
    if isinstance(kind, Category):
        return rows.codes(node), len(kind.values)
    if isinstance(kind, Truth):
        condition = rows.truth(node)
        found = nw.when(condition.false).then(nw.lit(0)).otherwise(nw.lit(-1))
        return nw.when(condition.true).then(nw.lit(1)).otherwise(found).cast(nw.Int64), 2
    number = rows.numbers(node)
    low, high = math.ceil(kind.low), math.floor(kind.high)  # type: ignore[union-attr]  # keys_of has seen to it
    step = step_of(node)
    inside = number.there & (number.value >= low) & (number.value <= high)
    above = nw.when(inside).then(number.value).otherwise(nw.lit(float(low))) - float(low)
    place = rows.divided(above, float(step)).floor()
    return nw.when(inside).then(place.cast(nw.Int64)).otherwise(nw.lit(-1)), (high - low) // step + 1


def refuse_expression(node: Node, schema: Schema, engine: str) -> None:
    """Refuse what engines round in ways of their own.

    Raises
    ------
    UnsupportedError
    """
    if isinstance(node, Arithmetic) and node.operator in ("//", "%"):
        kind = kind_of(node.left, schema)
        fraction = not isinstance(kind, Number) or not kind.whole or not _literal(node.right).is_integer()
        if fraction or kind.magnitude >= 2**52:  # type: ignore[union-attr]
            raise UnsupportedError(
                f"{words(node)}: {node.operator} is of whole numbers on {engine}, since engines round remainders of "
                "others each in a way of their own; .round() both sides first, or compute the column in the engine"
            )
    for inner in _inner(node):
        refuse_expression(inner, schema, engine)


def _inner(node: Node) -> list[Node]:
    """What a node is made of."""
    found: list[Node] = []
    for field in node.__struct_fields__:
        part = getattr(node, field)
        found += [one for one in (part if isinstance(part, tuple) else (part,)) if isinstance(one, Node)]
    return found


def _literal(node: Expression) -> float:
    if not isinstance(node, Literal):  # kind_of has seen to it
        raise TypeError(type(node).__name__)
    return float(node.value)


def _column_name(node: Node) -> str:
    if not isinstance(node, Column):
        raise TypeError(type(node).__name__)
    return node.name
