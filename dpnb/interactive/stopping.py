"""When an answer is good enough: rules that see released intervals and nothing else.

An interval of a refined answer holds however its looks came about, so a rule that stops because of it leaves it true:
see :mod:`dpnb.results.observations`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpnb.accounting.exact import Number, binary_down, exact, positive

__all__ = ["AbsoluteError", "ExcludesValue", "RelativeError", "StoppingRule"]

Floats = NDArray[np.float64]


class StoppingRule(Protocol):
    """When to stop refining."""

    def is_satisfied(self, low: Floats, high: Floats) -> bool:
        """Whether released intervals, one number each, are good enough."""
        ...


@dataclass(frozen=True)
class RelativeError:
    """Every number is known to this share of itself, as the middle of its interval: 0.05 for five percent.

    With m the middle of the interval and w half of its width, whatever the truth q in it,
    |m - q| <= w <= share (|m| - w) <= share |q|.

    Parameters
    ----------
    tolerance : Number
        Greater than 0.
    """

    tolerance: Number

    def __post_init__(self) -> None:
        positive(self.tolerance, name="share")

    def is_satisfied(self, low: Floats, high: Floats) -> bool:
        """Whether all intervals are so narrow."""
        with np.errstate(invalid="ignore"):  # infinite limits say nothing, and meet nothing
            middle, width = np.abs(low + high) / 2, (high - low) / 2
        return bool(np.all(width <= binary_down(exact(self.tolerance)) * (middle - width)))


@dataclass(frozen=True)
class AbsoluteError:
    """Half of every interval's width is at most this, in the answer's units.

    Parameters
    ----------
    within : Number
        Greater than 0.
    """

    within: Number

    def __post_init__(self) -> None:
        positive(self.within, name="within")

    def is_satisfied(self, low: Floats, high: Floats) -> bool:
        """Whether all intervals are so narrow."""
        return bool(np.all((high - low) / 2 <= binary_down(exact(self.within))))


@dataclass(frozen=True)
class ExcludesValue:
    """No interval holds this value: on which side of it the truth is has been decided.

    Parameters
    ----------
    value : Number
    """

    value: Number

    def __post_init__(self) -> None:
        exact(self.value, name="value")

    def is_satisfied(self, low: Floats, high: Floats) -> bool:
        """Whether the value is outside all intervals."""
        value = float(exact(self.value))
        return bool(np.all((low > value) | (high < value)))
