"""Codes of cells and of values, and comparisons that read 16 bits of a value instead of 64.

Comparisons of a column with a constant, which read 16 bits of a value instead of 64 wherever these decide.

A comparison of 64-bit numbers takes as long as memory needs to deliver them.  A coarse code is a monotone function of
the value, so different codes are in the order of the values; where the codes are equal, `Kernels.at_least` compares the
values.  The result is that of comparing all values; the time depends on how many codes are equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpnb._backends.memory.blocks import by_blocks, even_blocks
from dpnb._backends.memory.kernels import Kernels
from dpnb._plan.expressions.dtypes import Boolean, Categorical, Dtype, Numeric, String
from dpnb._plan.expressions.nodes import Column, Compare, ComparisonOperator, Expression, Literal, nodes_of
from dpnb.schema import Bounded, Key, text_of


def combined_codes(codes: list[NDArray[Any]], sizes: list[int]) -> tuple[NDArray[np.int64], int]:
    """Several codes combined into one, the last varying fastest, -1 where any is -1; and the number of combinations.

    Not for sizes whose product exceeds 64 bits; see `dense_codes`.
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
    """Several codes combined into one, numbered densely in the order of the tuples; -1 where any is -1."""
    combined = codes[0].astype(np.int64)
    for code in codes[1:]:
        pair = np.where((combined < 0) | (code < 0), -1, combined * (int(code.max(initial=0)) + 1) + code)
        distinct, dense = np.unique(pair, return_inverse=True)
        combined = dense.reshape(-1) - int(len(distinct) > 0 and distinct[0] < 0)
    return combined


@dataclass(frozen=True)
class LookupKeys:
    """Values of a key column to look up."""

    code_of: Mapping[Key, int]
    # the code for each code of the column, -1 for none; for a numeric column the code of each of `numbers`
    table: NDArray[np.int64]
    numbers: NDArray[np.float64] | None  # the values of a numeric column, ascending; otherwise None

    @classmethod
    def of(cls, keys: Iterable[Key], kind: Dtype, texts: Mapping[str, int]) -> LookupKeys:
        """Some values of a column of a type, with codes 0, 1, ...; `texts` has the codes of a column of texts."""
        code_of = {key: code for code, key in enumerate(dict.fromkeys(keys))}
        if isinstance(kind, Categorical):
            table = [code_of.get(value, -1) for value in kind.values]
        elif isinstance(kind, String):
            table = [-1] * len(texts)
            for key, code in code_of.items():
                if (text_code := texts.get(text_of(key) or "")) is not None:
                    table[text_code] = code
        elif isinstance(kind, Numeric | Boolean):
            order = sorted(code_of, key=float)
            numbers = np.array([float(value) for value in order])
            return cls(code_of, np.array([code_of[key] for key in order], np.int64), numbers)
        else:
            raise TypeError(type(kind).__name__)
        return cls(code_of, np.array([*table, -1], np.int64), None)

    def of_codes(self, codes: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """The code of each row's value, by the codes of the column; -1 for other values."""
        found: NDArray[np.int64] = self.table[codes]
        return found

    def of_numbers(self, numbers: NDArray[np.float64]) -> NDArray[np.int64]:
        """The code of each row's number; -1 for other numbers."""
        if self.numbers is None or not self.code_of:
            return np.full(len(numbers), -1)
        at = np.clip(np.searchsorted(self.numbers, numbers), 0, len(self.table) - 1)
        return np.where(self.numbers[at] == numbers, self.table[at], -1)


CODES = 2**16
"""Number of codes."""

CodeArray = NDArray[np.int16]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


def ordered_columns(node: Expression | None) -> set[str]:
    """Columns that a condition compares with a constant by an order."""
    names = set()
    for part in nodes_of(node):
        match part:
            case Compare("<" | "<=" | ">" | ">=", Column(name), Literal()):
                names.add(name)
    return names


def coarse_codes(values: Floats, column: Bounded) -> CodeArray:
    """The code of each value, which is within the bounds; arbitrary for NaN."""
    codes = np.empty(len(values), np.int16)

    def fill(part: slice) -> None:
        codes[part] = _codes(values[part], column)

    by_blocks(fill, even_blocks(len(values)))
    return codes


class Threshold(NamedTuple):
    """A comparison of a column with a constant, as the kernel takes it."""

    least: np.float64  # values that are at least this are on one side
    code: np.int16  # of `least`
    above: bool  # whether the comparison is true for these values, or for the others

    @classmethod
    def of(cls, operator: ComparisonOperator, constant: float, column: Bounded) -> Threshold:
        """The threshold of ``value operator constant``, for an operator of `ordered_columns`."""
        # Greater than a number is at least the next one.
        least = np.nextafter(constant, np.inf) if operator in (">", "<=") else np.float64(constant)
        return cls(least, _codes(np.array([least]), column)[0], operator in (">", ">="))

    def compared(self, values: Floats, codes: CodeArray, kernels: Kernels) -> Mask:
        """Where the comparison is true; arbitrary for NaN."""
        true = np.empty(len(codes), np.bool_)
        kernels.at_least(values, codes, self.least, self.code, self.above, true)
        return true


def _codes(values: Floats, column: Bounded) -> CodeArray:
    # Each step is monotone in floating-point arithmetic too, and `Bounded` excludes a range that would overflow.
    steps = np.clip(values, column.low, column.high)
    steps -= column.low
    steps *= (CODES - 1) / (column.high - column.low)
    np.clip(steps, 0, CODES - 1, out=steps)
    np.floor(steps, out=steps)
    steps -= CODES // 2
    return steps.astype(np.int16)
