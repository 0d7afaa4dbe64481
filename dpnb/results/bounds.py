"""The answer of a bounds finder: the smallest range of bins whose noisy counts are above the noise.

One noisy histogram on a public logarithmic grid, as in ApproxBounds of R. J. Wilson et al.,
*Differentially Private SQL with Bounded User Contribution*, PoPETs 2020(2).  Everything here is computed from the noisy
counts, so it is post-processing.  What differs from that paper: the noise is Gaussian, the threshold follows from the
number of bins by the union bound, and the answer also states how many rows may lie outside.

With B bins and alpha = 1 - confidence, all of these hold together with probability at least 1 - alpha:

- no bin above the threshold is empty (B events);
- of the rows below each bin, and above each bin, there are at most as many as stated (B events each, since the range is
  chosen from the same noise);
- there are at least as many rows as stated (1 event).

These are 3 B + 1 <= 4 B one-sided events, so each gets alpha / 4 B: the intervals of single counts are two-sided at
alpha / 2 B.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpnb._plan.measurements import BoundsView
from dpnb.results.answer import Answer
from dpnb.schema import Bounded

EVENTS_PER_BIN = 2
"""Two-sided events for each bin in the union bound."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class BoundsAnswer(Answer):
    """Noisy counts of rows by magnitude, and the bounds that follow from them.

    Examples
    --------
    >>> import dpnb
    >>> import pandas as pd
    >>> from dpnb.ledger import MEMORY
    >>> session = dpnb.Session(
    ...     pd.DataFrame({"wage": range(3000)}),
    ...     name="people",
    ...     budget=dpnb.Budget(epsilon=1, delta=1e-6),
    ...     schema={"wage": dpnb.Bounded(-1e9, 1e9)},
    ...     ledger=MEMORY,
    ...     not_private_test_seed=1,
    ... )
    >>> answer = session.frame["wage"].find_bounds().release(share=0.5)
    >>> answer.bounds
    Bounded(low=50.0, high=5000.0, integer=False, outside='clamp')
    """

    @property
    def bounds(self) -> Bounded | None:
        """The smallest range of bins that are above the noise; None if none is."""
        first_last = self._first_last
        if first_last is None or not isinstance(self.view, BoundsView):
            return None
        first, last = first_last
        ranges, whole = self.view.ranges, self.view.whole
        low, high = ranges[first][0], ranges[last][1]
        if low == high:  # only the bin of zero, which has no width
            high = ranges[last + 1][1] if last + 1 < len(ranges) else high
            low = ranges[first - 1][0] if low == high else low
        return Bounded(low, high, integer=whole)

    @property
    def threshold(self) -> float:
        """The largest noisy count that an empty bin may have, over all bins at once."""
        value, low, _ = self.arrays.unclipped
        return float((value - low).max())

    @property
    def rows_outside(self) -> float:
        """The largest number of rows that may have a value outside the bounds; infinite if there are none."""
        return sum(max(self._sum(part, 1.0), 0.0) for part in self._tails) if self._tails else math.inf

    @property
    def share_outside(self) -> float:
        """The largest share of the rows with a value that may lie outside the bounds; 1 if there are none."""
        total = self._sum(slice(None), -1.0)
        outside = self.rows_outside
        return min(outside / total, 1.0) if total > 0 else 1.0

    @property
    def around(self) -> BoundsAnswer:
        """The bins of the bounds, with one more on each side; without bounds, all bins."""
        first, last = self._first_last or (0, len(self.keys) - 1)
        part = slice(max(first - 1, 0), last + 2)
        return replace(
            self,
            keys=self.keys[part],
            measurement_ids=self.measurement_ids[part],
            group_values=self.group_values[part],
            **self._intervals(lambda arrays: arrays.select(part, slice(None))),
        )

    @property
    def _first_last(self) -> tuple[int, int] | None:
        """The indices of the outermost bins that are above the noise."""
        above = np.flatnonzero(self.arrays.low[:, 0] > 0)
        return (int(above[0]), int(above[-1])) if len(above) else None

    @property
    def _tails(self) -> tuple[slice, ...]:
        """The bins below and above the bounds; none if there are no bounds."""
        first_last = self._first_last
        return (slice(0, first_last[0]), slice(first_last[1] + 1, None)) if first_last is not None else ()

    def _sum(self, part: slice, sign: float) -> float:
        """The limit of the number of rows in some adjacent bins, whose noise is independent."""
        # The intersection of the intervals of several observations is not that of a sum.
        arrays = self.anytime_arrays if self.is_refined and self.anytime_arrays is not None else self.arrays
        value, low, _ = (array[part, 0] for array in arrays.unclipped)
        return float(value.sum() + sign * np.sqrt(((value - low) ** 2).sum()))
