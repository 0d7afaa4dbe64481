"""What a release would cost and give.  Free: made of schema, plan, budget and released values only."""

from __future__ import annotations

from dataclasses import dataclass

from dpnb.accounting.losses import GDP
from dpnb.answer import faces
from dpnb.query.plan import Plan


@dataclass(frozen=True, repr=False)
class Preview:
    """The price of a target.

    Parameters
    ----------
    plan : Plan
        The question.
    target : GDP
        How well the question would be known.
    cost : GDP
        What the release would be charged; less than `target` when the question is known in part.
    cost_share : float
        The same as a share of the whole budget, rounded up; above 1 for what no fresh budget would cover.
    confidence : float
    expected_error : float or None
        Half-width of the interval to expect, in the answer's units; of the smallest group.  None where it hangs on a
        count that nobody has released.
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
        What the expected error rests on.
    notice : str or None
        Says loudly if the session is not real or not private.
    """

    plan: Plan
    target: GDP
    cost: GDP
    cost_share: float
    confidence: float
    expected_error: float | None
    headroom_after: float
    fits: bool
    largest: float | None
    times: int | None
    contribution: str
    refining: str | None
    assumption: str | None
    notice: str | None

    def __repr__(self) -> str:
        return faces.preview_text(self)

    def _repr_html_(self) -> str:
        return faces.preview_html(self)
