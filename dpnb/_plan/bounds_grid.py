"""The public bins in which a bounds finder counts rows: 1, 2 and 5 times each power of ten, on both sides of zero.

A value belongs to the bin of its magnitude, so one histogram covers a declared range of any width.  The edges follow
from the declared bounds alone.  The bins grow like those of ApproxBounds in R. J. Wilson et al., *Differentially
Private SQL with Bounded User Contribution*, PoPETs 2020(2), which are powers of a base; 1-2-5 gives readable bounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

from dpnb.schema import MIN_MAGNITUDE, MIN_RELATIVE_RANGE

DECADES = 12
"""Magnitudes this many powers of ten below the declared bounds are told apart; smaller ones count as near zero."""

STEPS = (1, 2, 5)

Range = tuple[float, float]


@dataclass(frozen=True)
class BoundsGrid:
    """The bins of a declared range."""

    edges: tuple[float, ...]  # ascending; a bin includes its upper edge, the first one also its lower edge
    labels: tuple[str, ...]  # a name for each bin
    # The numbers of each bin as they are read: below zero, an edge is the next number below a step, so that a bin there
    # includes the step of larger magnitude, as above zero.
    ranges: tuple[Range, ...]


def bounds_grid(low: float, high: float, *, whole: bool) -> BoundsGrid:
    """The bins between two finite bounds, ``low < high``; the smallest step is 1 if the values are whole numbers."""

    def is_inside(edge: float) -> bool:
        """Whether the edge is far enough from both bounds that the bins there could be declared as bounds."""
        least = 2 * MIN_RELATIVE_RANGE * abs(edge)
        return edge - low > least and high - edge > least

    shown = {low: low, high: high}
    for step in _steps(max(abs(low), abs(high)), whole=whole):
        shown |= {edge: value for edge, value in ((step, step), (_below(-step, whole), -step)) if is_inside(edge)}
    if low < 0 <= high:  # zero has a bin of its own
        shown |= {edge: 0.0 for edge in (_below(0.0, whole), 0.0) if low < edge <= high}
    edges = sorted(shown)
    ranges = [(shown[a], shown[b]) for a, b in pairwise(edges)]
    labels = [_label(part, first=index == 0, last=index == len(ranges) - 1) for index, part in enumerate(ranges)]
    return BoundsGrid(tuple(edges), tuple(labels), tuple(ranges))


def _steps(magnitude: float, *, whole: bool) -> list[float]:
    top = math.floor(math.log10(magnitude)) + 1
    bottom = max(top - DECADES, 0 if whole else math.ceil(math.log10(MIN_MAGNITUDE)) + 1)
    return [float(f"{step}e{power}") for power in range(bottom, top + 1) for step in STEPS]


def _below(number: float, whole: bool) -> float:
    """The largest number that a column can have below `number`, or below which all numbers count as 0."""
    if whole:
        return min(number - 1, math.nextafter(number, -math.inf))  # above 2**53 doubles are further apart
    return math.nextafter(number, -math.inf) if number else -MIN_MAGNITUDE


def _label(part: Range, *, first: bool, last: bool) -> str:
    low, high = part
    if low == high:
        return _text(low)
    start = "[" if first or low < 0 else "("
    end = ")" if high <= 0 and low < 0 and not last else "]"
    return f"{start}{_text(low)}, {_text(high)}{end}"


def _text(number: float) -> str:
    short = f"{number:g}"
    return short if float(short) == number else repr(number)
