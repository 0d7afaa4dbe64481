"""Expressions over prepared columns, in numpy.  Reads rows; every value in here is private.

Numbers (and dates) are float64 with NaN for missing, categories are codes with -1 for missing, conditions are
two masks, where true and where false: see `dpnb._backends.evaluation`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpnb._backends.evaluation import Evaluation, column_name
from dpnb._backends.memory import blocks
from dpnb._backends.memory.blocks import SubexpressionCache, bytes_without_views
from dpnb._backends.memory.codes import LookupKeys, Threshold
from dpnb._backends.memory.kernels import kernels_for
from dpnb._backends.memory.prepare.prepared_table import PreparedTable, StringCodes
from dpnb._backends.memory.prepare.values import Codes
from dpnb._backends.protocol import BooleanColumn, Comparing, NumberStep
from dpnb._plan.expressions.choices import COMPARE, RELATIONS
from dpnb._plan.expressions.dtypes import Numeric, String
from dpnb._plan.expressions.letters import changed_case
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
    Period,
    Round,
)
from dpnb._plan.expressions.periods import index_of, part_of, to_local
from dpnb._plan.expressions.rules import TypedSchema
from dpnb.schema import Categories, Key, Schema
from dpnb.times import Zone

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "//": np.floor_divide,
    "%": np.mod,
    "**": np.power,
}
FUNCTIONS: dict[str, Callable[[Floats], Floats]] = {
    name: getattr(np, name) for name in ("abs", "log1p", "exp", "log", "log2", "log10")
}


class NumpyEvaluator(Evaluation[Mask, Any, Any]):
    """The rows of one table, or a block of them, for the expressions of one query.

    Each is computed once, unless `forget` is called meanwhile.

    `rows_at_once` is the number of rows of each of the `pieces`, by default those of the whole block.
    """

    def __init__(
        self,
        table: PreparedTable,
        schema: Schema,
        rows_at_once: int | None = None,
        part: slice | None = None,
        shared: SubexpressionCache | None = None,
    ) -> None:
        self._table = table
        self._schema = schema if isinstance(schema, TypedSchema) else TypedSchema(schema)
        self._part, self._rows_at_once = slice(0, table.rows) if part is None else part, rows_at_once
        self.size = int(self._part.stop - self._part.start)  # number of rows
        self._shared = SubexpressionCache() if shared is None else shared
        self._results: dict[tuple[str, int], Any] = {}
        self._kept_bytes = 0

    def block(self, part: slice) -> NumpyEvaluator:
        """Some of the rows."""
        return NumpyEvaluator(self._table, self._schema, self._rows_at_once, part, self._shared)

    @property
    def pieces(self) -> Iterable[NumpyEvaluator]:
        """The rows in pieces, for what is computed row by row; a unit may have rows in several.

        One exists at a time, with the results that it keeps.
        """
        size = self._rows_at_once
        if size is None or self.size <= 2 * size:  # a block is larger than its pieces by the rows of its last unit
            return (self,)
        start, stop = self._part.start, self._part.stop
        return (self.block(slice(first, min(first + size, stop))) for first in range(start, stop, size))

    def by_pieces(self, work: Callable[[NumpyEvaluator], NDArray[Any]]) -> NDArray[Any]:
        """The values of all rows, which are computed row by row, in pieces."""
        parts = []
        for piece in self.pieces:
            parts.append(work(piece))
            piece.forget()
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def forget(self) -> None:
        """Forget the results if they are many; to be called between expressions, not while one is computed."""
        if self._kept_bytes > blocks.KEPT_BYTES:
            self._results.clear()
            self._kept_bytes = 0

    @property
    def max_rows(self) -> int | None:
        """Largest number of rows of a unit; None if unknown."""
        return self._table.max_rows

    @cached_property
    def units(self) -> NDArray[np.int64]:
        """The unit of each row, ascending."""
        return self.short_units.astype(np.int64)

    @property
    def short_units(self) -> NDArray[np.int32]:
        """The unit of each row, ascending, as stored."""
        return self._table.units[self._part]

    @property
    def rows_are_units(self) -> bool:
        """Whether the row with index i is the only one of unit i."""
        return self._table.rows_are_units

    def of_units(self, values: NDArray[Any]) -> NDArray[Any]:
        """The value of each row's unit."""
        return values[self._part] if self.rows_are_units else values.take(self.short_units)

    @property
    def names(self) -> NDArray[np.int64]:
        """The hash of the name of each row's unit."""
        return self._table.names[self.units]

    @property
    def ranks(self) -> NDArray[Any]:
        """The rank of each row among its unit's rows."""
        return self._table.ranks[self._part]

    @cached_property
    def everywhere(self) -> Mask:
        """True for each row."""
        return np.ones(self.size, np.bool_)

    @cached_property
    def nowhere(self) -> Mask:
        """False for each row."""
        return np.zeros(self.size, np.bool_)

    def both(self, left: Mask, right: Mask) -> Mask:
        """Where both are true; free if one is `everywhere`."""
        return right if left is self.everywhere else left if right is self.everywhere else left & right

    def steps(self, name: str) -> NDArray[np.int32] | None:
        """A column in grid steps, if it has them; arbitrary where it is missing."""
        steps = self._table.steps(name)
        return None if steps is None else steps[self._part]

    def present(self, node: Expression) -> Mask:
        """Where the expression is not missing."""
        if isinstance(node, Literal) or (isinstance(node, Column) and node.name in self._table.complete):
            return self.everywhere
        return self._once("present", node, super().present)  # type: ignore[no-any-return]

    def _once(self, what: str, node: Expression, compute: Callable[[Expression], Any]) -> Any:
        key = what, self._shared.number(node)
        result = self._results.get(key)
        if result is None:
            result = self._results[key] = compute(node)
            self._kept_bytes += bytes_without_views(result)
        return result

    def _reused(self, mask: Mask) -> Mask:
        return mask

    # --- numbers -----------------------------------------------------------------------------------------------

    def _number_column(self, name: str) -> Floats:
        return self._table.numbers[name][self._part]

    def _number_present(self, numbers: Floats) -> Mask:
        return ~np.isnan(numbers)

    def _constant(self, value: float) -> float:
        return value

    def _numbers_of(self, condition: BooleanColumn[Mask]) -> Floats:
        return np.where(condition.true, 1.0, np.where(condition.false, 0.0, np.nan))

    def _computed(self, node: Expression) -> Floats:
        values = np.asarray(super()._computed(node), np.float64)
        if not values.ndim:
            return np.full(self.size, values)
        # A result that overflows or is undefined is missing, like any other value that does not count.
        finite = np.isfinite(values)
        return values if finite.all() else np.where(finite, values, np.nan)

    def _within(self, numbers: Floats, kind: Numeric) -> Floats:
        return np.clip(numbers, kind.low, kind.high)

    def _step(self, node: NumberStep, number: Any, other: Any = None) -> Any:
        match node:
            case Arithmetic("**", _, Literal(2)):
                return np.square(number)
            case Arithmetic(operation, _, _):
                return ARITHMETIC[operation](number, other)
            case Clip(_, low, high):
                return np.clip(number, low, high)
            case Apply(function, _):
                return FUNCTIONS[function](number)
            case Round(_, decimals):
                return np.round(number, decimals)
            case ExtractDatePart(part, _):
                return part_of(part, number)
            case Period(unit, _):
                return index_of(unit, number)

    def _local(self, seconds: Floats, zone: Zone) -> Floats:
        return to_local(seconds, zone)

    def _filled(self, numbers: Floats, value: float) -> Floats:
        return np.where(np.isnan(numbers), value, numbers)

    def _chosen(self, condition: BooleanColumn[Mask], numbers: Any, otherwise: Any) -> Floats:
        return np.where(condition.true, numbers, np.where(condition.false, otherwise, np.nan))

    def _numbers_at(self, indices: NDArray[Any], values: Sequence[float | None]) -> Floats:
        numbers = np.array([*(np.nan if value is None else value for value in values), np.nan])
        return np.asarray(numbers[indices])

    # --- categories and texts ----------------------------------------------------------------------------------

    def _code_column(self, name: str) -> Codes:
        return self._table.codes[name][self._part]

    def level_codes(self, node: Expression) -> tuple[Codes, int]:
        """As in `Evaluation`; the codes of a declared column are those of its public values."""
        if isinstance(node, Column) and isinstance(declared := self._schema.get(node.name), Categories):
            return self._code_column(node.name), len(declared.values)
        return super().level_codes(node)

    def texts(self, node: Expression) -> StringCodes:
        """The code of each text that a row can have."""
        if isinstance(node, ChangeCase):
            return self._shared.once("texts", node, self._texts_in_case)[0]
        return self._table.texts[column_name(node)]

    def _texts_in_case(self, node: ChangeCase) -> tuple[StringCodes, NDArray[np.int32]]:
        """The texts in another case, and the code of each text in it; two texts can become equal."""
        changed = StringCodes()
        to = [changed.setdefault(changed_case(text, node.case), len(changed)) for text in self.texts(node.inner)]
        return changed, np.array([*to, -1], np.int32)

    def _texts_changed(self, node: ChangeCase) -> Codes:
        to = self._shared.once("texts", node, self._texts_in_case)[1]
        return np.asarray(to[self.codes(node.inner)])

    def _text_present(self, node: Expression) -> Mask:
        codes: Codes = self.codes(node)
        return np.asarray(codes >= 0)

    def _matched_text(self, node: MatchText) -> Mask:
        return np.asarray(self._shared.once("matches", node, self._matches)[self.codes(node.inner)])

    def _matches(self, node: MatchText) -> Mask:
        """Whether each text of the column matches; false for -1."""
        match = RELATIONS[node.relation]
        return np.array([*(match(text, node.text) for text in self.texts(node.inner)), False])

    def _text_lengths(self, node: Expression, most: float) -> Floats:
        def lengths(node: Expression) -> Floats:
            return np.array([*(min(len(text), most) for text in self.texts(node)), np.nan])

        return np.asarray(self._shared.once("lengths", node, lengths)[self.codes(node)])

    def _code(self, code: int) -> Codes:
        return np.full(self.size, code, np.int32)

    def _codes_of(self, condition: BooleanColumn[Mask]) -> NDArray[Any]:
        return np.where(condition.true, 1, np.where(condition.false, 0, -1))

    def _filled_codes(self, codes: Codes, code: int) -> Codes:
        return np.where(codes < 0, np.int32(code), codes)

    def _chosen_codes(self, condition: BooleanColumn[Mask], codes: Codes, otherwise: Codes) -> Codes:
        return np.where(condition.true, codes, np.where(condition.false, otherwise, np.int32(-1)))

    def translated(self, codes: NDArray[Any], to: list[int]) -> Codes:
        """Codes translated to those of another list; -1 stays."""
        return np.asarray(np.array([*to, -1], np.int32)[codes])

    def _bins(self, numbers: Floats, edges: tuple[float, ...], right: bool) -> NDArray[Any]:
        bins = np.searchsorted(np.array(edges), numbers, side="left" if right else "right") - 1
        bins = np.where(numbers == (edges[0] if right else edges[-1]), 0 if right else len(edges) - 2, bins)
        return np.where(np.isnan(numbers) | (numbers < edges[0]) | (numbers > edges[-1]), -1, bins)

    def _steps_at(self, numbers: Floats, low: int, high: int, step: int) -> NDArray[np.int64]:
        steps = np.where((numbers >= low) & (numbers <= high), numbers, low - step) - low  # NaN is neither
        return steps.astype(np.int64) // step

    def looked_up(self, node: Lookup) -> NDArray[np.int64]:
        """The index in `keys` of each row's key; -1 for any other key.

        Level by level: the distinct prefixes of the keys are numbered, so that no array grows with the product of the
        levels.
        """
        levels, index = self._shared.once("levels", node, self._levels)
        prefix = np.zeros(self.size, np.int64)
        for inner, (keys, distinct) in zip(node.inner, levels, strict=True):
            codes = self._key_codes(inner, keys)
            longer = np.where((prefix < 0) | (codes < 0), -1, prefix * len(keys.code_of) + codes)
            at = np.minimum(np.searchsorted(distinct, longer), max(len(distinct) - 1, 0))
            prefix = np.where((longer >= 0) & (distinct[at] == longer), at, -1)
        return index[prefix]

    def _levels(self, node: Lookup) -> tuple[list[tuple[LookupKeys, NDArray[np.int64]]], NDArray[np.int64]]:
        """For each level its keys and the distinct prefixes up to it, ascending; and the index of each full key."""
        levels = []
        prefix = np.zeros(len(node.keys), np.int64)
        for level, inner in enumerate(node.inner):
            keys = self._lookup_keys(inner, tuple(key[level] for key in node.keys))
            codes = np.array([keys.code_of[key[level]] for key in node.keys], np.int64)
            distinct, prefix = np.unique(prefix * len(keys.code_of) + codes, return_inverse=True)
            levels.append((keys, distinct))
        index = np.full(len(node.keys) + 1, -1, np.int64)
        index[prefix] = np.arange(len(node.keys))
        return levels, index

    def _lookup_keys(self, node: Expression, keys: tuple[Key, ...]) -> LookupKeys:
        """Some values of a key column, with codes 0, 1, ..."""
        kind = self.kind(node)
        return LookupKeys.of(keys, kind, self.texts(node) if isinstance(kind, String) else {})

    def _key_codes(self, node: Expression, keys: LookupKeys) -> NDArray[np.int64]:
        """The code of each row's value; -1 for other values."""
        return keys.of_codes(self.codes(node)) if keys.numbers is None else keys.of_numbers(self.numbers(node))

    # --- conditions --------------------------------------------------------------------------------------------

    def _same(self, left: Mask, right: Mask) -> Mask:
        return np.asarray(left == right)

    def _compared_numbers(self, compare: Comparing, left: Any, right: Any) -> Mask:
        return np.asarray(compare(left, right))

    def _compared(self, node: Compare) -> Mask:
        match node:
            case Compare(operator, Column(name), Literal(int() | float() as constant)) if name in self._table.numbers:
                values, codes = self._table.numbers[name], self._table.coarse_codes.get(name)
                kernels = None if codes is None or operator in ("==", "!=") else kernels_for(codes, values)
                if codes is None or kernels is None:
                    return np.asarray(COMPARE[operator](values[self._part], float(constant)))
                column = self._table.grids[name]
                threshold = self._shared.once(
                    "threshold", node, lambda _: Threshold.of(operator, float(constant), column)
                )
                return threshold.compared(values[self._part], codes[self._part], kernels)
        return super()._compared(node)

    def holds(self, node: Expression) -> Mask:
        """Where a condition is true."""
        match node:
            case Compare(_, Column(name) as left, Literal()) if name in self._table.numbers:
                return self.both(self._compared(node), self.present(left))  # computed as fast as it would be found
        return super().holds(node)

    def _compared_text(self, compare: Comparing, node: Expression, text: str) -> Mask:
        return np.asarray(compare(self.codes(node), self.texts(node).get(text, -2)))

    def _is_code(self, codes: Codes, wanted: list[bool]) -> Mask:
        return np.asarray(np.array([*wanted, False])[codes])

    def _is_number(self, numbers: Floats, wanted: list[float]) -> Mask:
        return np.isin(numbers, wanted)

    def _is_key(self, node: IsIn) -> Mask:
        keys = self._shared.once("keys", node, lambda node: self._lookup_keys(node.inner, node.values))
        return self._key_codes(node.inner, keys) >= 0
