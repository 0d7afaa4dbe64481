"""Expressions as the engine is asked to compute them, in narwhals; see `dpnb._backends.evaluation`.

A number comes with where it is there, and has a stand-in within its bounds elsewhere, so that interval arithmetic holds
for every row and nothing overflows, divides by zero or is undefined, which some engines answer with an error; a code is
-1 for nothing; a condition is two truth values, where true and where false.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import narwhals as nw

from dpnb._backends.evaluation import BooleanColumn, Comparing, Evaluation, NumberStep, column_name
from dpnb._backends.lazy import arithmetic, calendar
from dpnb._backends.lazy.lazy_columns import LazyTable
from dpnb._plan.expressions.dtypes import Boolean, Categorical, Dtype, Numeric, String
from dpnb._plan.expressions.nodes import (
    Apply,
    Arithmetic,
    Clip,
    Expression,
    ExtractDatePart,
    IsIn,
    Literal,
    Lookup,
    Node,
    Round,
    arguments,
)
from dpnb._plan.expressions.rules import dtype_of
from dpnb._plan.expressions.text import words
from dpnb._plan.schema import Key, Schema, text_of
from dpnb.errors import UnsupportedError

HEAVY = 30
"""Of an expression, about as many times as columns are named in it."""

ALWAYS, NEVER = nw.lit(True), nw.lit(False)


@dataclass(frozen=True)
class NumberColumn:
    """A number, a moment or a span: a value for every row, and where it counts."""

    value: nw.Expr
    there: nw.Expr


class NarwhalsEvaluator(Evaluation[nw.Expr, NumberColumn, nw.Expr]):
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

    def __init__(self, table: LazyTable, schema: Schema) -> None:
        self._table, self._schema = table, schema
        self.frame = table.frame
        self._done: dict[tuple[str, Expression], Any] = {}
        self._weights: dict[Node, int] = {}
        self._made = 0

    @property
    def everywhere(self) -> nw.Expr:
        """True for each row."""
        return ALWAYS

    @property
    def nowhere(self) -> nw.Expr:
        """False for each row."""
        return NEVER

    def both(self, left: nw.Expr, right: nw.Expr) -> nw.Expr:
        """Where both are true."""
        return right if left is ALWAYS else left if right is ALWAYS else left & right

    def kind(self, node: Expression) -> Dtype:
        """What the expression gives."""
        return dtype_of(node, self._schema)

    def text(self, node: Expression) -> NumberColumn:
        """A column of texts."""
        stem = self._table.stems[column_name(node)]
        return NumberColumn(nw.col(stem), nw.col(f"{stem}_there"))

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
            weight = self._weights[node] = 1 + 2 * sum(self._weights.get(inner, 1) for inner in arguments(node))
            if weight > HEAVY:
                self._weights[node] = 1
                if isinstance(found, NumberColumn):
                    found = NumberColumn(self.made(found.value), self.made(found.there))
                elif isinstance(found, BooleanColumn):
                    found = BooleanColumn(self.made(found.true), self.made(found.false))
                else:
                    found = self.made(found)
            self._done[what, node] = found
        return found

    def _settled(self, mask: nw.Expr) -> nw.Expr:
        return self.made(mask)

    # --- numbers -----------------------------------------------------------------------------------------------

    def _number_column(self, name: str) -> NumberColumn:
        stem = self._table.stems[name]
        return NumberColumn(nw.col(stem), nw.col(f"{stem}_there"))

    def _there(self, numbers: NumberColumn) -> nw.Expr:
        return numbers.there

    def _constant(self, value: float) -> NumberColumn:
        return NumberColumn(nw.lit(value), ALWAYS)

    def _numbers_of(self, condition: BooleanColumn[nw.Expr]) -> NumberColumn:
        value = nw.when(condition.true).then(nw.lit(1.0)).otherwise(nw.lit(0.0))
        return NumberColumn(value, condition.true | condition.false)

    def _within(self, numbers: NumberColumn, kind: Numeric) -> NumberColumn:
        """What was rounded, within its bounds; nothing where an engine gave no number."""
        value = self.made(numbers.value)
        finite = value.is_finite().fill_null(False)
        value = nw.when(finite).then(value).otherwise(nw.lit(kind.low))
        return NumberColumn(self.made(arithmetic.clipped(value, kind.low, kind.high)), numbers.there & finite)

    def _step(self, node: NumberStep, number: NumberColumn, other: NumberColumn | None = None) -> NumberColumn:
        if isinstance(node, Arithmetic) and other is not None:
            value = self._arithmetic(node, number.value, other.value)
            return NumberColumn(value, self.both(number.there, other.there))
        return NumberColumn(self._of_one(node, number.value), number.there)

    def _of_one(self, node: NumberStep, number: nw.Expr) -> nw.Expr:
        match node:
            case Clip(_, low, high):
                return arithmetic.clipped(number, low, high)
            case Apply(function, _):
                return {"abs": number.abs, "exp": number.exp, "log1p": (number + 1.0).log}[function]()
            case Round(_, decimals):
                return arithmetic.rounded(number, decimals, self._table.engine)
            case ExtractDatePart(part, _):
                return calendar.part_of(part, number, self._dated, self.divided)
        raise TypeError(type(node).__name__)

    def _arithmetic(self, node: Arithmetic, left: nw.Expr, right: nw.Expr) -> nw.Expr:
        match node.operator:
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return left * right
            case "/" if isinstance(node.right, Literal):
                return self.divided(left, _literal(node.right))
            case "/":
                return left / right
            case "**":
                return arithmetic.powered(left, _literal(node.right))
            case _:
                # A kind that is refused by `refuse_expression` unless both sides are whole.
                by = _literal(node.right)
                quotient = self.made(self.divided(left, by).floor())
                return quotient if node.operator == "//" else left - quotient * by

    def _filled(self, numbers: NumberColumn, value: float) -> NumberColumn:
        return NumberColumn(nw.when(numbers.there).then(numbers.value).otherwise(nw.lit(value)), ALWAYS)

    def _chosen(
        self, condition: BooleanColumn[nw.Expr], numbers: NumberColumn, otherwise: NumberColumn
    ) -> NumberColumn:
        there = (condition.true & numbers.there) | (condition.false & otherwise.there)
        return NumberColumn(nw.when(condition.true).then(numbers.value).otherwise(otherwise.value), there)

    def _numbers_at(self, places: nw.Expr, values: Sequence[float | None]) -> NumberColumn:
        """The number at each place of a list; a row without a place, or at None, gets a value of the list too."""
        lacking = [number for number, value in enumerate(values) if value is None]
        there = places >= 0
        there = there & ~places.is_in(lacking) if lacking else there
        stand_in = next((value for value in values if value is not None), 0.0)
        listed = [stand_in if value is None else value for value in values]
        distinct = sorted(set(listed))
        rank = {value: number for number, value in enumerate(distinct)}
        if distinct == [distinct[0] + number for number in range(len(distinct))]:
            number = self.translated(places, [rank[value] for value in listed])
            return NumberColumn(
                nw.when(number < 0).then(nw.lit(0)).otherwise(number).cast(nw.Float64) + distinct[0], there
            )
        found = places.replace_strict(list(range(len(listed))), listed, default=listed[0], return_dtype=nw.Float64)
        return NumberColumn(found, there)

    # --- categories --------------------------------------------------------------------------------------------

    def _code_column(self, name: str) -> nw.Expr:
        return nw.col(self._table.stems[name])

    def _text_there(self, name: str) -> nw.Expr:
        return self._number_column(name).there

    def _code(self, code: int) -> nw.Expr:
        return nw.lit(code).cast(nw.Int64)

    def _codes_of(self, condition: BooleanColumn[nw.Expr]) -> nw.Expr:
        found = nw.when(condition.false).then(nw.lit(0)).otherwise(nw.lit(-1))
        return nw.when(condition.true).then(nw.lit(1)).otherwise(found).cast(nw.Int64)

    def _filled_codes(self, codes: nw.Expr, code: int) -> nw.Expr:
        return nw.when(codes < 0).then(nw.lit(code)).otherwise(codes)

    def _chosen_codes(self, condition: BooleanColumn[nw.Expr], codes: nw.Expr, otherwise: nw.Expr) -> nw.Expr:
        found = nw.when(condition.false).then(otherwise).otherwise(nw.lit(-1))
        return nw.when(condition.true).then(codes).otherwise(found)

    def translated(self, codes: nw.Expr, to: list[int]) -> nw.Expr:
        """Codes as those of another list; -1 stays."""
        if to == list(range(len(to))):
            return codes
        return self._table.engine.placed(codes, list(range(len(to))), to)

    def _bins(self, numbers: NumberColumn, edges: tuple[float, ...], right: bool) -> nw.Expr:
        x = numbers.value
        place = reduce(
            lambda found, edge: found + nw.when(x > edge if right else x >= edge).then(1).otherwise(0),
            edges,
            nw.lit(-1),
        )
        last = len(edges) - 2
        at_end = (x == edges[0]) if right else (x == edges[-1])
        place = nw.when(at_end).then(nw.lit(0 if right else last)).otherwise(place)
        inside = numbers.there & (x >= edges[0]) & (x <= edges[-1])
        return self.made(nw.when(inside).then(place).otherwise(nw.lit(-1)).cast(nw.Int64))

    def _steps_at(self, numbers: NumberColumn, low: int, high: int, step: int) -> nw.Expr:
        inside = numbers.there & (numbers.value >= low) & (numbers.value <= high)
        above = nw.when(inside).then(numbers.value).otherwise(nw.lit(float(low))) - float(low)
        place = self.divided(above, float(step)).floor()
        return nw.when(inside).then(place.cast(nw.Int64)).otherwise(nw.lit(-1))

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
        if isinstance(kind, Categorical):
            return self.translated(self.codes(node), [listed.get(value, -1) for value in kind.values])
        if isinstance(kind, String):
            text = self.text(node)
            by_text = {text_of(key) or "": place for key, place in listed.items()}
            codes = engine.placed(text.value, list(by_text), list(by_text.values()))
            return nw.when(text.there).then(codes).otherwise(nw.lit(-1))
        if isinstance(kind, Numeric | Boolean):
            number = self.numbers(node)
            by_value = {float(key): place for key, place in listed.items()}
            codes = arithmetic.placed(number.value, list(by_value), list(by_value.values()), engine)
            return nw.when(number.there).then(codes).otherwise(nw.lit(-1))
        raise TypeError(type(kind).__name__)

    # --- conditions --------------------------------------------------------------------------------------------

    def _same(self, left: nw.Expr, right: nw.Expr) -> nw.Expr:
        return (left & right) | (~left & ~right)

    def _compared_numbers(self, compare: Comparing, left: NumberColumn, right: NumberColumn) -> nw.Expr:
        return compare(left.value, right.value)  # type: ignore[no-any-return]

    def _compared_text(self, compare: Comparing, name: str, text: str) -> nw.Expr:
        return compare(nw.col(self._table.stems[name]), nw.lit(text))  # type: ignore[no-any-return]

    def _is_code(self, codes: nw.Expr, wanted: list[bool]) -> nw.Expr:
        listed = [code for code, one in enumerate(wanted) if one]
        return codes.is_in(listed) if listed else codes < -1

    def _is_number(self, numbers: NumberColumn, wanted: list[float]) -> nw.Expr:
        return numbers.value.is_in(wanted)

    def _is_key(self, node: IsIn) -> nw.Expr:
        return self.key_codes(node.inner, {key: place for place, key in enumerate(dict.fromkeys(node.values))}) >= 0


def refuse_expression(node: Node, schema: Schema, engine: str) -> None:
    """Refuse what engines round in ways of their own.

    Raises
    ------
    UnsupportedError
    """
    if isinstance(node, Arithmetic) and node.operator in ("//", "%"):
        kind = dtype_of(node.left, schema)
        fraction = not isinstance(kind, Numeric) or not kind.whole or not _literal(node.right).is_integer()
        if fraction or kind.magnitude >= 2**52:  # type: ignore[union-attr]
            raise UnsupportedError(
                f"{words(node)}: {node.operator} is of whole numbers on {engine}, since engines round remainders of "
                "others each in a way of their own; .round() both sides first, or compute the column in the engine"
            )
    for inner in arguments(node):
        refuse_expression(inner, schema, engine)


def _literal(node: Expression) -> float:
    if not isinstance(node, Literal):  # kind_of has seen to it
        raise TypeError(type(node).__name__)
    return float(node.value)
