"""Evaluation of expressions for the rows of a table, common to all backends.

It is total: whatever the values of a row, the result of every step is a value within its bounds, or missing.  A number
(or date) is a value or missing, a category is a code, -1 if missing, and a condition is two masks, where it is true and
where it is false.  A backend defines how its library represents these, and the elementary steps: see
`dpnb._backends.protocol.EvaluationSteps`.
"""

from __future__ import annotations

import math
from typing import Any

from dpnb._backends.protocol import B, BooleanColumn, C, EvaluationSteps, N
from dpnb._plan.expressions.choices import COMPARE
from dpnb._plan.expressions.dtypes import Boolean, Categorical, Dtype, Numeric, String, Timestamp, number_of
from dpnb._plan.expressions.nodes import (
    And,
    Apply,
    Arithmetic,
    AsNumber,
    ChangeCase,
    Clip,
    Column,
    Compare,
    Cut,
    Expression,
    ExtractDatePart,
    FillNull,
    IsIn,
    IsNull,
    Literal,
    Lookup,
    MatchText,
    Not,
    OnlyWhere,
    Or,
    Period,
    Round,
    Seconds,
    TextLength,
    Where,
    arguments,
)
from dpnb._plan.expressions.periods import index_range
from dpnb._plan.expressions.rules import TypedSchema, dtype_of, is_never_null, is_rounded
from dpnb.schema import Key, text_of


class Evaluation(EvaluationSteps[B, N, C]):
    """The rows of one table, for the expressions of one query; each expression is computed once."""

    _schema: TypedSchema

    def kind(self, node: Expression) -> Dtype:
        """The type of the expression."""
        return dtype_of(node, self._schema)

    def present(self, node: Expression) -> B:
        """Where the expression is not missing."""
        if is_never_null(node):
            return self.everywhere
        kind = self.kind(node)
        if isinstance(kind, Boolean):
            condition: Any = self.truth(node)
            return condition.true | condition.false  # type: ignore[no-any-return]
        if isinstance(kind, Categorical):
            codes: Any = self.codes(node)
            return codes >= 0  # type: ignore[no-any-return]
        if isinstance(kind, String):
            return self._text_present(node)
        return self._number_present(self.numbers(node))

    def numbers(self, node: Expression) -> N:
        """Numbers, points in time or durations.  A condition is 1 or 0."""
        return self._once("numbers", node, self._numbers)  # type: ignore[no-any-return]

    def codes(self, node: Expression) -> C:
        """The index of each row's value among the values of its type; -1 if missing."""
        return self._once("codes", node, self._codes)  # type: ignore[no-any-return]

    def truth(self, node: Expression) -> BooleanColumn[B]:
        """Where a condition is true and where it is false."""
        return self._once("truth", node, self._truth)  # type: ignore[no-any-return]

    def holds(self, node: Expression) -> B:
        """Where a condition is true."""
        return self._once("holds", node, self._holds)  # type: ignore[no-any-return]

    def level_codes(self, node: Expression) -> tuple[C, int]:
        """The index of each row's value among the public ones, -1 for none; and their number."""
        kind = self.kind(node)
        if isinstance(kind, Categorical):
            return self.codes(node), len(kind.values)
        if isinstance(kind, Boolean):
            return self._codes_of(self.truth(node)), 2
        if not isinstance(kind, Numeric):
            raise TypeError(type(kind).__name__)  # unreachable: `public_keys_of` has refused it
        low, high = math.ceil(kind.low), math.floor(kind.high)
        return self._steps_at(self.numbers(node), low, high, kind.step), (high - low) // kind.step + 1

    def _numbers(self, node: Expression) -> N:
        kind = self.kind(node)
        if isinstance(kind, Boolean):
            return self._numbers_of(self.truth(node))
        if isinstance(node, Column):
            return self._number_column(node.name)
        numbers = self._computed(node)
        return self._within(numbers, kind) if isinstance(kind, Numeric) and is_rounded(node) else numbers

    def _computed(self, node: Expression) -> N:
        match node:
            case Literal():
                return self._side(node)
            case ExtractDatePart(_, inner):
                return self._step(node, self._local_times(inner))
            case Arithmetic() | Clip() | Apply() | Round():
                return self._step(node, *map(self._side, arguments(node)))
            case FillNull(inner, value):
                return self._filled(self.numbers(inner), number_of(value, self.kind(inner)))
            case Where(condition, inner, otherwise):
                return self._chosen(self.truth(condition), self._side(inner), self._side(otherwise))
            case OnlyWhere(condition, inner):
                kind = self.kind(node)
                placeholder = self._constant(kind.low)  # type: ignore[union-attr]  # as a number, a date or a duration
                return self._chosen(self._true_only(condition), self.numbers(inner), placeholder)
            case TextLength(inner):
                return self._text_lengths(inner, self.kind(node).high)  # type: ignore[union-attr]  # a number
            case Seconds(inner):
                return self.numbers(inner)
            case AsNumber(inner):
                kind = self.kind(inner)
                if isinstance(kind, Categorical):
                    return self._numbers_at(self.codes(inner), [float(value) for value in kind.values])
                return self.numbers(inner)
            case Lookup(values=values):
                numbers = [None if value is None else float(value) for value in values]
                return self._numbers_at(self.looked_up(node), numbers)
        raise TypeError(type(node).__name__)

    def _local_times(self, node: Expression) -> N:
        """Dates in the local time of their zone, computed once for all of their parts; durations as they are."""
        kind = self.kind(node)
        if not isinstance(kind, Timestamp) or kind.zone is None:
            return self.numbers(node)
        zone = kind.zone
        return self._once("local", node, lambda dates: self._local(self.numbers(dates), zone))  # type: ignore[no-any-return]

    def _side(self, node: Expression) -> N:
        """An operand; a string among numbers is a date."""
        if isinstance(node, Literal):
            kind = Timestamp(0, 0) if isinstance(node.value, str) else self.kind(node)
            return self._constant(number_of(node.value, kind))
        return self.numbers(node)

    def _codes(self, node: Expression) -> C:
        if isinstance(node, Column):
            return self._code_column(node.name)
        kind = self.kind(node)
        values = kind.values if isinstance(kind, Categorical) else ()
        match node:
            case Literal():
                return self._recoded(node, values)
            case FillNull(inner, value):
                return self._filled_codes(self._recoded(inner, values), values.index(value))
            case Where(condition, inner, otherwise):
                kept, other = self._recoded(inner, values), self._recoded(otherwise, values)
                return self._chosen_codes(self.truth(condition), kept, other)
            case OnlyWhere(condition, inner):
                return self._chosen_codes(self._true_only(condition), self.codes(inner), self._code(-1))
            case ChangeCase():
                return self._texts_changed(node)
            case Cut(inner, edges, labels, right):
                index = _indices(values)
                return self.translated(
                    self._bins(self.numbers(inner), edges, right), [index[label] for label in labels]
                )
            case Period(unit, inner):
                first, last = index_range(unit, self.kind(inner))  # type: ignore[arg-type]  # dates, by its rule
                return self._steps_at(self._step(node, self._local_times(inner)), first, last, 1)
            case Lookup():
                index = _indices(values)
                to = [-1 if value is None else index[value] for value in node.values]
                return self.translated(self.looked_up(node), to)
        raise TypeError(type(node).__name__)

    def _recoded(self, node: Expression, values: tuple[Key, ...]) -> C:
        """Codes of one list of categories as codes of a longer one."""
        if isinstance(node, Literal):
            return self._code(values.index(node.value))
        kind = self.kind(node)
        own = kind.values if isinstance(kind, Categorical) else ()
        index = _indices(values)
        return self.translated(self.codes(node), [index[value] for value in own])

    def _truth(self, node: Expression) -> BooleanColumn[B]:
        """Kleene's logic: a missing condition is neither true nor false."""
        a: Any
        b: Any
        match node:
            case And(left, right):
                a, b = self.truth(left), self.truth(right)
                return BooleanColumn(a.true & b.true, a.false | b.false)
            case Or(left, right):
                a, b = self.truth(left), self.truth(right)
                return BooleanColumn(a.true | b.true, a.false & b.false)
            case Not(inner):
                a = self.truth(inner)
                return BooleanColumn(a.false, a.true)
            case IsNull(inner):
                present: Any = self.present(inner)
                return BooleanColumn(~present, present)
            case Literal(value):
                sides = self.everywhere, self.nowhere
                return BooleanColumn(*(sides if value else sides[::-1]))
            case Compare() | IsIn() | MatchText():
                known = self._known(node)
                true: Any = self._reused(self._satisfied(node))
                return BooleanColumn(self.both(true, known), self.both(~true, known))
            case Where(condition, inner, otherwise):
                chosen: Any = self.truth(condition)
                a, b = self.truth(inner), self.truth(otherwise)
                return BooleanColumn(
                    (chosen.true & a.true) | (chosen.false & b.true),
                    (chosen.true & a.false) | (chosen.false & b.false),
                )
            case OnlyWhere(condition, inner):
                chosen, a = self.truth(condition), self.truth(inner)
                return BooleanColumn(chosen.true & a.true, chosen.true & a.false)
            case FillNull(inner, value):
                a = self.truth(inner)
                return BooleanColumn(~a.false, a.false) if value else BooleanColumn(a.true, ~a.true)
        raise TypeError(type(node).__name__)

    def _holds(self, node: Expression) -> B:
        """As the first part of `_truth`, without the second one."""
        left: Any
        match node:
            case And():
                return self.both(self.holds(node.left), self.holds(node.right))
            case Or():
                left = self.holds(node.left)
                return left | self.holds(node.right)  # type: ignore[no-any-return]
            case Compare() | IsIn() | MatchText():
                return self.both(self._satisfied(node), self._known(node))
        return self.truth(node).true

    def _known(self, node: Compare | IsIn | MatchText) -> B:
        """Where no argument is missing."""
        known = self.everywhere
        for inner in arguments(node):
            if not isinstance(inner, Literal):
                known = self.both(known, self.present(inner))
        return known

    def _true_only(self, condition: Expression) -> BooleanColumn[B]:
        """The condition, neither true nor false where it is not true."""
        return BooleanColumn(self.truth(condition).true, self.nowhere)

    def _satisfied(self, node: Compare | IsIn | MatchText) -> B:
        if isinstance(node, Compare):
            return self._compared(node)
        if isinstance(node, MatchText):
            return self._matched_text(node) if node.text else self.everywhere
        kind = self.kind(node.inner)
        if isinstance(kind, Timestamp):
            return self._is_number(self.numbers(node.inner), [number_of(value, kind) for value in node.values])
        return self._is_key(node)

    def _compared(self, node: Compare) -> B:
        compare, left, right = COMPARE[node.operator], node.left, node.right
        kind = self.kind(left)
        if isinstance(kind, Categorical) and isinstance(right, Literal):
            return self._is_code(self.codes(left), [bool(compare(value, right.value)) for value in kind.values])
        if isinstance(kind, String) and isinstance(right, Literal):
            return self._compared_text(compare, left, text_of(right.value) or "")
        if isinstance(kind, Boolean):
            same: Any = self._same(self.truth(left).true, self.truth(right).true)
            return same if node.operator == "==" else ~same  # type: ignore[no-any-return]
        return self._compared_numbers(compare, self.numbers(left), self._side(right))


def _indices(values: tuple[Key, ...]) -> dict[Key, int]:
    """The index of each of some distinct values."""
    return {value: index for index, value in enumerate(values)}


def column_name(node: Expression) -> str:
    """The name of a string column: no other expression is a string."""
    if not isinstance(node, Column):
        raise TypeError(type(node).__name__)
    return node.name
