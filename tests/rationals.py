"""Strategies of exact numbers: hypothesis' `fractions` makes a new strategy for each, which takes as long as a test."""

from __future__ import annotations

import math
import random
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


def listed(high: int, *, bits: int) -> st.SearchStrategy[Fraction]:
    """Fractions from 0 to `high`, simple and others, with denominators up to ``2**bits``, for tests that draw many.

    Each is one choice from a list that is made once, which takes half as long as to make it of two integers.
    """
    chance, least = random.Random(0), Fraction(1, 2**bits)
    simple = [Fraction(k, n) for n in range(1, 11) for k in range(12) if k <= high * n]
    pairs = [
        (chance.randrange(2 ** chance.randint(1, bits + high.bit_length())), chance.randint(1, 2**size))
        for size in range(bits + 1)
        for _ in range(200)
    ]
    return st.sampled_from([*simple, least, high - least, high, *(Fraction(k, n) for k, n in pairs if k <= high * n)])
