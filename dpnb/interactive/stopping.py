"""Stopping rules: whether an answer is accurate enough, decided from released intervals only.

The interval of a refined answer is valid for every choice of observations, so it remains valid when a rule stops
because of it: see :mod:`dpnb.results.observations`.
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
    """When to stop refining.

    Examples
    --------
    >>> import numpy as np
    >>> from dpnb.interactive import AbsoluteError, StoppingRule
    >>> rule: StoppingRule = AbsoluteError(10)
    >>> rule.is_satisfied(np.array([90.0]), np.array([110.0]))
    True
    """

    def is_satisfied(self, low: Floats, high: Floats) -> bool:
        """Whether released intervals, given by their ends, are narrow enough.

        Parameters
        ----------
        low, high : array of float
            The lower and the upper ends of the intervals.

        Examples
        --------
        >>> import numpy as np
        >>> from dpnb.interactive import AbsoluteError, ExcludesValue, RelativeError
        >>> rules = AbsoluteError(3), ExcludesValue(0), RelativeError(0.05)
        >>> [rule.is_satisfied(np.array([98.0]), np.array([102.0])) for rule in rules]
        [True, True, True]
        """
        ...


@dataclass(frozen=True)
class RelativeError(StoppingRule):
    """The midpoint of every interval has at most this relative error: 0.05 for five percent.

    With m the midpoint of the interval and w its half-width, for any true value q in it,
    ``|m - q| <= w <= tolerance (|m| - w) <= tolerance |q|``.

    Parameters
    ----------
    tolerance : Number
        Greater than 0.

    Examples
    --------
    >>> import numpy as np
    >>> from dpnb.interactive import RelativeError
    >>> RelativeError(0.05).is_satisfied(np.array([98.0]), np.array([102.0]))
    True
    """

    tolerance: Number

    def __post_init__(self) -> None:
        positive(self.tolerance, name="tolerance")

    def is_satisfied(self, low: Floats, high: Floats) -> bool:
        with np.errstate(invalid="ignore"):  # infinite intervals never satisfy the rule
            middle, width = np.abs(low + high) / 2, (high - low) / 2
        return bool(np.all(width <= binary_down(exact(self.tolerance)) * (middle - width)))


@dataclass(frozen=True)
class AbsoluteError(StoppingRule):
    """The half-width of every interval is at most this, in the answer's units.

    Parameters
    ----------
    within : Number
        Greater than 0.

    Examples
    --------
    >>> import numpy as np
    >>> from dpnb.interactive import AbsoluteError
    >>> AbsoluteError(10).is_satisfied(np.array([80.0]), np.array([120.0]))
    False
    """

    within: Number

    def __post_init__(self) -> None:
        positive(self.within, name="within")

    def is_satisfied(self, low: Floats, high: Floats) -> bool:
        return bool(np.all((high - low) / 2 <= binary_down(exact(self.within))))


@dataclass(frozen=True)
class ExcludesValue(StoppingRule):
    """No noise interval contains this value: each value of this table is above it or below it, with their confidence.

    Parameters
    ----------
    value : Number

    Examples
    --------
    >>> import numpy as np
    >>> from dpnb.interactive import ExcludesValue
    >>> ExcludesValue(0).is_satisfied(np.array([2.0]), np.array([7.0]))
    True
    """

    value: Number

    def __post_init__(self) -> None:
        exact(self.value, name="value")

    def is_satisfied(self, low: Floats, high: Floats) -> bool:
        value = float(exact(self.value))
        return bool(np.all((low > value) | (high < value)))
