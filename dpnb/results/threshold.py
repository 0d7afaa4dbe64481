"""The result of one query to an above-threshold mechanism."""

from __future__ import annotations

from dataclasses import dataclass

from dpnb.results.display import Displayed


@dataclass(frozen=True, repr=False)
class ThresholdResult(Displayed):
    """Whether a count or sum of this table is above a threshold, by noisy comparison.

    Parameters
    ----------
    description : str
        The query in words.
    threshold : float
    above : bool
    value : float or None
        A noisy value, if the mechanism returns one (`return_values`).
    half_width : float or None
        Half-width of the value's noise interval.
    confidence : float
        Confidence of the interval.
    notice : str or None
        Warning that the answer is from a rehearsal or not private.

    Examples
    --------
    >>> scan = session.above_threshold(100, name="many", epsilon=0.2, monotonic=True)
    >>> result = scan.ask(df[df["age"] > 65].count_units())
    >>> result.above in (True, False)
    True
    """

    description: str
    threshold: float
    above: bool
    value: float | None = None
    half_width: float | None = None
    confidence: float = 0.95
    notice: str | None = None

    def __bool__(self) -> bool:
        """Whether the count or sum is above the threshold."""
        return self.above

    @property
    def interval(self) -> tuple[float, float] | None:
        """The noise interval ``(low, high)`` around the value."""
        if self.value is None or self.half_width is None:
            return None
        return self.value - self.half_width, self.value + self.half_width
