"""Ticks of an axis: multiples of 1, 2 or 5, with one number of decimals."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Ticks:
    """The ticks of an axis of values."""

    step: float  # distance of the ticks, which are its multiples
    decimals: int  # of every label

    @classmethod
    def between(cls, low: float, high: float, most: int) -> Ticks | None:
        """At most about `most` ticks for a range; None if it needs exponents, or is empty.

        >>> Ticks.between(0, 2400, 6)
        Ticks(step=500, decimals=0)
        >>> Ticks.between(3.68, 4.45, 6)
        Ticks(step=0.2, decimals=1)
        """
        length = float(high) - float(low)
        if not 1e-9 < length < 1e15 or max(abs(low), abs(high)) >= 1e15:
            return None
        exponent = math.floor(math.log10(length / most))
        for factor in (1, 2, 5, 10):
            step = factor * 10**exponent if exponent >= 0 else factor / 10**-exponent
            if length / step <= most:
                break
        return cls(step, max(0, -exponent - (factor == 10)))

    def within(self, low: float, high: float) -> list[float]:
        """The ticks from `low` to `high`."""
        first, last = math.ceil(low / self.step - 1e-9), math.floor(high / self.step + 1e-9)
        return [index * self.step for index in range(first, last + 1)]

    def label(self, value: float) -> str:
        """The label of a tick."""
        return f"{value:z,.{self.decimals}f}"
