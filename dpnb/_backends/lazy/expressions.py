"""Expressions of rows as expressions of narwhals, which the engine computes; see `dpnb._backends.evaluation`.

A number is a value and a mask of the rows where it is present; elsewhere the value is a placeholder within its bounds.
So interval arithmetic holds for every row, and no step overflows, divides by zero or is undefined, which some engines
report as an error.  A code is -1 if missing; a condition is two masks, where it is true and where it is false.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw

from dpnb._backends.evaluation import Evaluation, column_name
from dpnb._backends.lazy import arithmetic
from dpnb._backends.lazy.lazy_table import LazyTable
from dpnb._backends.protocol import BooleanColumn, Comparing, NumberStep
from dpnb._plan.expressions.choices import COMPARE
from dpnb._plan.expressions.dtypes import Boolean, Categorical, Numeric, String
from dpnb._plan.expressions.nodes import (
    Apply,
    Arithmetic,
    ChangeCase,
    Clip,
    Column,
    Compare,
    Expression,
    ExtractDatePart,
    IsIn,
    Literal,
    Lookup,
    MatchText,
    Node,
    Period,
    Round,
    arguments,
    columns_of,
)
from dpnb._plan.expressions.rules import TypedSchema
from dpnb.schema import Key, Schema, text_of
from dpnb.times import Zone

MAX_INLINE_SIZE = 30
"""A larger expression becomes a column; the size is about the number of references to columns."""

MAX_LISTED = 64
"""Longer lists of values are not part of an expression, but of a public table."""

ALWAYS, NEVER = nw.lit(True), nw.lit(False)


@dataclass(frozen=True)
class NumberColumn:
    """A number, point in time or duration: a value for every row, and where it is present."""

    value: nw.Expr
    present: nw.Expr


class NarwhalsEvaluator(Evaluation[nw.Expr, NumberColumn, nw.Expr]):
    """The rows of one table, for the expressions of one query.

    A long expression is materialised as a column of `frame` and used by its name, so that the engine's plan grows
    linearly with the query, not exponentially.  `frame` has only the rows that are kept.
    """

    def __init__(self, table: LazyTable, schema: Schema) -> None:
        self._table, self._schema = table, TypedSchema(schema)
        self.frame = table.frame
        self._results: dict[tuple[str, Expression], Any] = {}
        self._sizes: dict[Node, int] = {}
        self._column_count = 0
        self._in_frame: set[str] = set()

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

    def text(self, node: Expression) -> NumberColumn:
        """A column of texts; an empty text where it is missing."""
        if isinstance(node, ChangeCase):
            return NumberColumn(self.codes(node), self.text(node.inner).present)
        return self._number_column(column_name(node))

    def text_hash(self, node: Expression) -> nw.Expr:
        """The hash of each text by `dpnb._backends.contribution.label_hash`."""
        if isinstance(node, Column) and self._table.is_prepared:
            return nw.col(f"{self._table.stems[node.name]}_hash")
        text, name = self._texts_as_column(node)
        self.frame = self._table.engine.hashed(self.frame, {text: name})
        return nw.col(name)

    def _texts_as_column(self, node: Expression) -> tuple[str, str]:
        """The name of a column of `frame` with the texts, and of one to be computed from it."""
        texts = self.text(node).value  # adds columns to `frame`
        return self._named(texts), self._new_name()

    def materialized(self, value: nw.Expr) -> nw.Expr:
        """The expression as a column of `frame`."""
        return nw.col(self._named(value))

    def _named(self, value: nw.Expr) -> str:
        return self.named(value)[0]

    def named(self, *values: nw.Expr) -> list[str]:
        """The names of columns of `frame` with these values, added in one step: some engines check a plan at each."""
        columns = {self._new_name(): value for value in values}
        self.frame = self.frame.with_columns(**columns)
        return [*columns]

    def _new_name(self) -> str:
        self._column_count += 1
        return f"e{self._column_count}"

    def truncated(self, value: nw.Expr, low: float) -> nw.Expr:
        """Doubles, none below `low`, as integers, rounded toward zero; a column of `frame`."""
        number, name = self._named(value), self._new_name()
        self.frame = self._table.engine.truncated(self.frame, number, name, low)
        return nw.col(name)

    def divided(self, column: nw.Expr, by: float) -> nw.Expr:
        """A column of finite doubles divided by a constant."""
        return self._table.engine.divided(column, by)

    def _dates(self, days: nw.Expr) -> nw.Expr:
        """Dates, from days since 1970, as a column of `frame`."""
        day, name = self._named(days), self._new_name()
        self.frame = self._table.engine.dated(self.frame, day, name)
        return nw.col(name)

    def _once(self, what: str, node: Expression, compute: Callable[[Expression], Any]) -> Any:
        result = self._results.get((what, node))
        if result is None:
            result = compute(node)
            size = self._sizes[node] = 1 + 2 * sum(self._sizes.get(inner, 1) for inner in arguments(node))
            # Engines do not look up a constant as they do a column.
            if size > MAX_INLINE_SIZE or not columns_of(node):
                self._sizes[node] = 1
                if isinstance(result, NumberColumn):
                    result = NumberColumn(self.materialized(result.value), self.materialized(result.present))
                elif isinstance(result, BooleanColumn):
                    result = BooleanColumn(self.materialized(result.true), self.materialized(result.false))
                else:
                    result = self.materialized(result)
            self._results[what, node] = result
        return result

    def _reused(self, mask: nw.Expr) -> nw.Expr:
        return self.materialized(mask)

    def _number_column(self, name: str) -> NumberColumn:
        stem = self._prepared(name)
        return NumberColumn(nw.col(f"{stem}_value"), self._table.present(name))

    def _prepared(self, name: str) -> str:
        """The stem of a column of the table, prepared in `frame`."""
        if name not in self._in_frame:
            self._in_frame.add(name)
            self.frame = self._table.prepared(self.frame, name)
        return self._table.stems[name]

    def keep(self, conditions: list[nw.Expr]) -> None:
        """Keep only the rows of `frame` in which all conditions are true."""
        uncertain = [condition for condition in conditions if condition is not ALWAYS]
        if uncertain:
            self.frame = self.frame.filter(nw.all_horizontal(*uncertain, ignore_nulls=False))

    def _number_present(self, numbers: NumberColumn) -> nw.Expr:
        return numbers.present

    def _constant(self, value: float) -> NumberColumn:
        return NumberColumn(nw.lit(value), ALWAYS)

    def _numbers_of(self, condition: BooleanColumn[nw.Expr]) -> NumberColumn:
        value = nw.when(condition.true).then(nw.lit(1.0)).otherwise(nw.lit(0.0))
        return NumberColumn(value, condition.true | condition.false)

    def _within(self, numbers: NumberColumn, kind: Numeric) -> NumberColumn:
        """Rounded numbers, clamped to their bounds; missing where the engine returned no finite number."""
        value = self.materialized(numbers.value)
        finite = value.is_finite().fill_null(False)
        value = nw.when(finite).then(value).otherwise(nw.lit(kind.low))
        return NumberColumn(self.materialized(arithmetic.clipped(value, kind.low, kind.high)), numbers.present & finite)

    def _step(self, node: NumberStep, number: NumberColumn, other: NumberColumn | None = None) -> NumberColumn:
        if isinstance(node, Arithmetic) and other is not None:
            value = arithmetic.computed(node, number.value, other.value, self.divided, self.materialized)
            return NumberColumn(value, self.both(number.present, other.present))
        return NumberColumn(self._unary_step(node, number.value), number.present)

    def _unary_step(self, node: NumberStep, number: nw.Expr) -> nw.Expr:
        match node:
            case Clip(_, low, high):
                return arithmetic.clipped(number, low, high)
            case Apply(function, _):
                return arithmetic.applied(function, number, self._table.engine)
            case Round(_, decimals):
                return arithmetic.rounded(number, decimals, self._table.engine)
            case ExtractDatePart(part, _):
                return arithmetic.part_of(part, number, self._dates, self.divided)
            case Period(unit, _):
                return self.materialized(arithmetic.index_of(unit, number, self._dates, self.divided))
        raise TypeError(type(node).__name__)

    def _local(self, seconds: NumberColumn, zone: Zone) -> NumberColumn:
        local = arithmetic.to_local(self.materialized(seconds.value.floor()), zone)
        return NumberColumn(self.materialized(local), seconds.present)

    def _filled(self, numbers: NumberColumn, value: float) -> NumberColumn:
        return NumberColumn(nw.when(numbers.present).then(numbers.value).otherwise(nw.lit(value)), ALWAYS)

    def _chosen(
        self, condition: BooleanColumn[nw.Expr], numbers: NumberColumn, otherwise: NumberColumn
    ) -> NumberColumn:
        present = (condition.true & numbers.present) | (condition.false & otherwise.present)
        return NumberColumn(nw.when(condition.true).then(numbers.value).otherwise(otherwise.value), present)

    def _numbers_at(self, indices: nw.Expr, values: Sequence[float | None]) -> NumberColumn:
        """The number at each index of a list; a placeholder for None and for -1."""
        without_value = [index for index, value in enumerate(values) if value is None]
        present = indices >= 0
        present = present & ~indices.is_in(without_value) if without_value else present
        placeholder = next((value for value in values if value is not None), 0.0)
        filled = [placeholder if value is None else value for value in values]
        return NumberColumn(self._valued(indices, range(len(filled)), filled, filled[0]), present)

    def _code_column(self, name: str) -> nw.Expr:
        return nw.col(f"{self._prepared(name)}_code")

    def _text_present(self, node: Expression) -> nw.Expr:
        return self.text(node).present

    def _texts_changed(self, node: ChangeCase) -> nw.Expr:
        text, name = self._texts_as_column(node.inner)
        self.frame = self._table.engine.with_case(self.frame, text, name, node.case)
        return nw.col(name)

    def _matched_text(self, node: MatchText) -> nw.Expr:
        texts = self.text(node.inner).value.str
        match node.relation:
            case "startswith":
                return texts.starts_with(node.text)
            case "endswith":
                return texts.ends_with(node.text)
        return texts.contains(node.text, literal=True)

    def _text_lengths(self, node: Expression, most: float) -> NumberColumn:
        text = self.text(node)
        return NumberColumn(arithmetic.clipped(text.value.str.len_chars().cast(nw.Float64), None, most), text.present)

    def _code(self, code: int) -> nw.Expr:
        return nw.lit(code).cast(nw.Int64)

    def _codes_of(self, condition: BooleanColumn[nw.Expr]) -> nw.Expr:
        false_or_missing = nw.when(condition.false).then(nw.lit(0)).otherwise(nw.lit(-1))
        return nw.when(condition.true).then(nw.lit(1)).otherwise(false_or_missing).cast(nw.Int64)

    def _filled_codes(self, codes: nw.Expr, code: int) -> nw.Expr:
        return nw.when(codes < 0).then(nw.lit(code)).otherwise(codes)

    def _chosen_codes(self, condition: BooleanColumn[nw.Expr], codes: nw.Expr, otherwise: nw.Expr) -> nw.Expr:
        false_or_missing = nw.when(condition.false).then(otherwise).otherwise(nw.lit(-1))
        return nw.when(condition.true).then(codes).otherwise(false_or_missing)

    def translated(self, codes: nw.Expr, to: list[int]) -> nw.Expr:
        """Codes translated to those of another list; -1 stays."""
        if to == list(range(len(to))):
            return codes
        return self._valued(codes, range(len(to)), to)

    def _bins(self, numbers: NumberColumn, edges: tuple[float, ...], right: bool) -> nw.Expr:
        inside = numbers.present & (numbers.value >= edges[0]) & (numbers.value <= edges[-1])
        index = arithmetic.bin_of(numbers.value, edges, self.materialized, right=right)
        return self.materialized(nw.when(inside).then(index).otherwise(nw.lit(-1)).cast(nw.Int64))

    def _steps_at(self, numbers: NumberColumn, low: int, high: int, step: int) -> nw.Expr:
        inside = numbers.present & (numbers.value >= low) & (numbers.value <= high)
        above = nw.when(inside).then(numbers.value).otherwise(nw.lit(float(low))) - float(low)
        steps = self.divided(above, float(step)).floor()
        return nw.when(inside).then(steps.cast(nw.Int64)).otherwise(nw.lit(-1))

    def looked_up(self, node: Lookup) -> nw.Expr:
        """The index in `keys` of each row's key; -1 for any other key.  Level by level, as in memory."""
        prefix_codes: nw.Expr | None = None
        prefixes = [0] * len(node.keys)
        for level, inner in enumerate(node.inner):
            own = {key: code for code, key in enumerate(dict.fromkeys(key[level] for key in node.keys))}
            codes = self.key_codes(inner, own)
            size = max(len(own), 1)
            prefixes = [prefix * size + own[key[level]] for prefix, key in zip(prefixes, node.keys, strict=True)]
            if prefix_codes is not None:
                missing = (prefix_codes < 0) | (codes < 0)
                codes = nw.when(missing).then(nw.lit(-1)).otherwise(prefix_codes * size + codes)
            distinct = sorted(set(prefixes))
            code_of = {prefix: code for code, prefix in enumerate(distinct)}
            prefixes = [code_of[prefix] for prefix in prefixes]
            prefix_codes = self._valued(codes, distinct, range(len(distinct)))
        if prefix_codes is None:
            raise TypeError("lookup")
        indices = [0] * len(prefixes)
        for index, prefix in enumerate(prefixes):
            indices[prefix] = index
        return self.translated(prefix_codes, indices)

    def key_codes(self, node: Expression, code_of: dict[Key, int]) -> nw.Expr:
        """The code of each row's key; -1 for other keys."""
        kind = self.kind(node)
        if isinstance(kind, Categorical):
            return self.translated(self.codes(node), [code_of.get(value, -1) for value in kind.values])
        if isinstance(kind, String):
            text = self.text(node)
            by_text = {text_of(key) or "": code for key, code in code_of.items()}
            codes = self._valued(text.value, list(by_text), list(by_text.values()))
            return nw.when(text.present).then(codes).otherwise(nw.lit(-1))
        if isinstance(kind, Numeric | Boolean):
            number = self.numbers(node)
            by_value = {float(key): code for key, code in code_of.items()}
            codes = self._valued(number.value, list(by_value), list(by_value.values()))
            return nw.when(number.present).then(codes).otherwise(nw.lit(-1))
        raise TypeError(type(kind).__name__)

    def _valued(self, column: nw.Expr, keys: Sequence[Any], values: Sequence[Any], default: Any = -1) -> nw.Expr:
        """The value of each key of a public list, as a column of `frame`; the default for anything else."""
        key, to = self._named(column), self._new_name()
        self.frame = self._table.public.with_values(self.frame, key, list(keys), list(values), default, to)
        return nw.col(to)

    def _same(self, left: nw.Expr, right: nw.Expr) -> nw.Expr:
        return (left & right) | (~left & ~right)

    def _holds(self, node: Expression) -> nw.Expr:
        bound = self._bound(node)
        if bound is None:
            return super()._holds(node)
        # A number on one side of the constant counts if it is within the limit on that side.
        number, constant, operator, least, most = bound
        inside = number <= most if operator in (">", ">=") else number >= least
        return COMPARE[operator](number, constant) & inside  # type: ignore[no-any-return]

    def _compared(self, node: Compare) -> nw.Expr:
        bound = self._bound(node)
        if bound is None:
            return super()._compared(node)
        number, constant, operator, *_ = bound
        return COMPARE[operator](number, constant)  # type: ignore[no-any-return]

    def _bound(self, node: Expression) -> tuple[nw.Expr, nw.Expr, str, float, float] | None:
        """For a bound on a column that need not be clamped first: column, constant, operator, and what counts."""
        match node:
            case Compare("<" | "<=" | ">" | ">=" as operator, Column(name), Literal(int() | float() as constant)):
                unclamped = self._table.unclamped(name, constant)
                if unclamped is not None:
                    number, least, most = unclamped
                    return number, nw.lit(float(constant)), operator, least, most
        return None

    def _compared_numbers(self, compare: Comparing, left: NumberColumn, right: NumberColumn) -> nw.Expr:
        return compare(left.value, right.value)  # type: ignore[no-any-return]

    def _compared_text(self, compare: Comparing, node: Expression, text: str) -> nw.Expr:
        return compare(self.text(node).value, nw.lit(text))  # type: ignore[no-any-return]

    def _is_code(self, codes: nw.Expr, wanted: list[bool]) -> nw.Expr:
        return self._is_in(codes, [code for code, is_wanted in enumerate(wanted) if is_wanted])

    def _is_number(self, numbers: NumberColumn, wanted: list[float]) -> nw.Expr:
        return self._is_in(numbers.value, wanted)

    def _is_in(self, column: nw.Expr, values: Sequence[Any]) -> nw.Expr:
        distinct = list(dict.fromkeys(values))
        if len(distinct) > MAX_LISTED:
            return self._valued(column, distinct, range(len(distinct))) >= 0
        return column.is_in(distinct) if distinct else NEVER

    def _is_key(self, node: IsIn) -> nw.Expr:
        kind = self.kind(node.inner)
        if isinstance(kind, Categorical):
            wanted = set(node.values)
            return self._is_code(self.codes(node.inner), [value in wanted for value in kind.values])
        if isinstance(kind, String):
            return self._is_in(self.text(node.inner).value, [text_of(value) or "" for value in node.values])
        return self._is_number(self.numbers(node.inner), [float(value) for value in node.values])
