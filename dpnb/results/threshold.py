"""What an above-threshold mechanism says of one question."""

from __future__ import annotations

from dataclasses import dataclass

from dpnb.results.display import Displayed


@dataclass(frozen=True, repr=False)
class ThresholdResult(Displayed):
    """Whether a count or sum is above a threshold, by noisy comparison.

    Parameters
    ----------
    description : str
        The question.
    threshold : float
    above : bool
    value : float or None
        A noisy value, where the mechanism gives one.
    half_width : float or None
        Of the value's interval.
    confidence : float
        Of the interval.
    notice : str or None
        Says loudly if the answer is not real or not private.
    """

    description: str
    threshold: float
    above: bool
    value: float | None = None
    half_width: float | None = None
    confidence: float = 0.95
    notice: str | None = None

    def __bool__(self) -> bool:
        """Whether it is above."""
        return self.above

    @property
    def interval(self) -> tuple[float, float] | None:
        """``(low, high)`` around the value."""
        if self.value is None or self.half_width is None:
            return None
        return self.value - self.half_width, self.value + self.half_width
