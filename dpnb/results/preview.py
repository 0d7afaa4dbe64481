"""What a release would cost and give.  Free: made of schema, plan, budget and released values only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpnb._plan.schema import Key
from dpnb.accounting.losses import GDP
from dpnb.results.display import Displayed
from dpnb.results.estimates.noisy import Cells

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, repr=False)
class Preview(Displayed):
    """The price of a target.

    Parameters
    ----------
    words : str
        The question.
    asked : str
        The target as it was written.
    target : GDP
        How well the question would be known.
    cost : GDP
        What the release would be charged; less than `target` when the question is known in part.
    cost_share : float
        The same as a share of the whole budget, rounded up; above 1 for what no fresh budget would cover.
    confidence : float
    errors : float64 array or None
        Half-widths of the intervals to expect, shape (groups, outputs); None where they hang on what nobody has
        released.
    error_unit : str or None
        Unit of the errors: the answer's, but for quantiles rows of rank; None for plain numbers.
    names, keys, outputs
        What the groups and outputs are called, as in the answer.
    headroom_after : float
        Share of the budget that would be left, rounded down; 0 when it does not fit.
    fits : bool
        Whether the filter would admit it now.
    largest : float or None
        The largest mu that would fit, rounded down, 0 if none; None if the target itself fits.
    times : int
        How many questions at this cost the filter would still admit.
    contribution : str
        What one privacy unit can change, in words.
    refining : str or None
        What refining this answer later would cost, if that is more than asking at the finer level at once.
    assumption : str or None
        What the expected errors rest on.
    assumed : str or None
        What they assume that is neither released nor public, as the words after "assumed that"; shown beside them.
    known_errors : float64 array or None
        Half-widths as they are known by now, of the same shape as `errors`; None where nothing is known or combined.
    notice : str or None
        Says loudly if the session is not real or not private.
    who : str or None
        Who would take part, where each unit has a budget of its own.
    """

    words: str
    asked: str
    target: GDP
    cost: GDP
    cost_share: float
    confidence: float
    errors: Cells | None
    error_unit: str | None
    names: tuple[str, ...]
    keys: tuple[tuple[Key, ...], ...]
    outputs: tuple[str, tuple[Key, ...]] | None
    headroom_after: float
    fits: bool
    largest: float | None
    times: int | None
    contribution: str
    refining: str | None
    assumption: str | None
    assumed: str | None
    known_errors: Cells | None
    notice: str | None
    who: str | None = None

    @property
    def narrows(self) -> bool:
        """Whether any interval is expected to be narrower than what is known by now.

        A further look has to share its error probability with the first, so a small one costs and narrows nothing.
        """
        if self.errors is None or self.known_errors is None or not self.cost.mu_squared:
            return True
        return bool((self.errors < self.known_errors * (1 - 1e-9)).any())

    @property
    def expected_error(self) -> float | None:
        """Half-width of the interval to expect, of the worst group; None where nobody can know, or for mixed units."""
        if self.errors is None or (self.outputs and self.outputs[0] == "statistic"):
            return None
        return float(np.max(self.errors))

    @property
    def expected_errors(self) -> pd.Series | None:
        """The same of each group and output; None where nobody can know."""
        import pandas as pd  # imported when first used

        if self.errors is None:
            return None
        labels = [(label,) for label in self.outputs[1]] if self.outputs else [()]
        rows = [(*key, *label) for key in self.keys for label in labels]
        names = [*self.names, *([self.outputs[0]] if self.outputs else [])]
        index: Any = pd.MultiIndex.from_tuples(rows, names=names) if names else pd.RangeIndex(1)
        if len(names) == 1:
            index = pd.Index([row[0] for row in rows], name=names[0])
        return pd.Series(self.errors.ravel().copy(), index=index, name="expected error")


@dataclass(frozen=True, repr=False)
class Previews(Displayed):
    """The prices of several targets side by side.

    Parameters
    ----------
    previews : tuple of Preview
        Of one question.
    """

    previews: tuple[Preview, ...]

    def __len__(self) -> int:
        return len(self.previews)

    def __getitem__(self, place: int) -> Preview:
        return self.previews[place]

    def to_pandas(self) -> pd.DataFrame:
        """One row for each target: cost, expected error (of the worst group), headroom after, and whether it fits."""
        import pandas as pd  # imported when first used

        columns = {
            "mu": [preview.cost.mu for preview in self.previews],
            "cost_share": [preview.cost_share for preview in self.previews],
            "expected_error": [preview.expected_error for preview in self.previews],
            "headroom_after": [preview.headroom_after for preview in self.previews],
            "fits": [preview.fits for preview in self.previews],
        }
        return pd.DataFrame(columns, index=pd.Index([preview.asked for preview in self.previews], name="asked"))
