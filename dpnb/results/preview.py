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
    description : str
        The question.
    request : str
        The target as it was written.
    total_loss : GDP
        How well the question would be known.
    cost : GDP
        What the release would be charged; less than `total_loss` when the question is known in part.
    cost_fraction : float
        The same as a share of the whole budget, rounded up; above 1 for what no fresh budget would cover.
    confidence : float
    half_widths : float64 array or None
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
    max_mu : float or None
        The largest mu that would fit, rounded down, 0 if none; None if the target itself fits.
    max_repetitions : int
        How many questions at this cost the filter would still admit.
    contribution : str
        What one privacy unit can change, in words.
    refinement_note : str or None
        What refining this answer later would cost, if that is more than asking at the finer level at once.
    assumption : str or None
        What the expected errors rest on.
    assumed_description : str or None
        What they assume that is neither released nor public, as the words after "assumed that"; shown beside them.
    current_half_widths : float64 array or None
        Half-widths known by now, of the same shape as `half_widths`; None where nothing is known or combined.
    notice : str or None
        Says loudly if the session is not real or not private.
    participation : str or None
        Who would take part, where each unit has a budget of its own.
    """

    description: str
    request: str
    total_loss: GDP
    cost: GDP
    cost_fraction: float
    confidence: float
    half_widths: Cells | None
    error_unit: str | None
    names: tuple[str, ...]
    keys: tuple[tuple[Key, ...], ...]
    outputs: tuple[str, tuple[Key, ...]] | None
    headroom_after: float
    fits: bool
    max_mu: float | None
    max_repetitions: int | None
    contribution: str
    refinement_note: str | None
    assumption: str | None
    assumed_description: str | None
    current_half_widths: Cells | None
    notice: str | None
    participation: str | None = None

    @property
    def narrows_interval(self) -> bool:
        """Whether any interval is expected to be narrower than what is known by now.

        A further look has to share its error probability with the first, so a small one costs and narrows nothing.
        """
        if self.half_widths is None or self.current_half_widths is None or not self.cost.mu_squared:
            return True
        return bool((self.half_widths < self.current_half_widths * (1 - 1e-9)).any())

    @property
    def expected_error(self) -> float | None:
        """Half-width of the interval to expect, of the worst group; None where nobody can know, or for mixed units."""
        if self.half_widths is None or (self.outputs and self.outputs[0] == "statistic"):
            return None
        return float(np.max(self.half_widths))

    @property
    def expected_errors(self) -> pd.Series | None:
        """The same of each group and output; None where nobody can know."""
        import pandas as pd  # imported when first used

        if self.half_widths is None:
            return None
        labels = [(label,) for label in self.outputs[1]] if self.outputs else [()]
        rows = [(*key, *label) for key in self.keys for label in labels]
        names = [*self.names, *([self.outputs[0]] if self.outputs else [])]
        index: Any = pd.MultiIndex.from_tuples(rows, names=names) if names else pd.RangeIndex(1)
        if len(names) == 1:
            index = pd.Index([row[0] for row in rows], name=names[0])
        return pd.Series(self.half_widths.ravel().copy(), index=index, name="expected error")


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
            "cost_fraction": [preview.cost_fraction for preview in self.previews],
            "expected_error": [preview.expected_error for preview in self.previews],
            "headroom_after": [preview.headroom_after for preview in self.previews],
            "fits": [preview.fits for preview in self.previews],
        }
        return pd.DataFrame(columns, index=pd.Index([preview.request for preview in self.previews], name="asked"))
