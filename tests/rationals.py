"""A strategy of exact numbers: hypothesis' `fractions` makes a new strategy for each, which takes as long as a test."""

from __future__ import annotations

import math
from fractions import Fraction

from hypothesis import strategies as st

PARTS = 2**64


def fractions(
    low: Fraction | int | str, high: Fraction | int | str, *, max_denominator: int = 10**12
) -> st.SearchStrategy[Fraction]:
    """Fractions from `low` to `high`, which are among them, with denominators of all sizes."""
    first, last = Fraction(low), Fraction(high)

    def made(drawn: tuple[int, int]) -> Fraction:
        denominator, part = drawn
        if part in (0, PARTS):
            return last if part else first
        least, most = math.ceil(first * denominator), math.floor(last * denominator)
        return Fraction(least + part * (most - least) // PARTS, denominator) if least <= most else first

    return st.tuples(st.integers(1, max_denominator), st.integers(0, PARTS)).map(made)
