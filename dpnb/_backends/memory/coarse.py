"""Comparisons of a column with a constant, which read 16 bits of a value instead of 64 wherever these decide.

A comparison of 64-bit numbers takes as long as memory needs to deliver them.  A coarse code is a monotone function of
the value, so different codes are in the order of the values; where the codes are equal, `Kernels.at_least` compares the
values.  The result is that of comparing all values; the time depends on how many codes are equal.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpnb._backends.memory.blocks import by_blocks, even_blocks
from dpnb._backends.memory.kernels import Kernels
from dpnb._plan.expressions.nodes import Column, Compare, ComparisonOperator, Expression, Literal, nodes_of
from dpnb.schema import Bounded

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
