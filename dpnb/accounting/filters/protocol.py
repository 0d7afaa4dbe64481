"""What every filter can do."""

from __future__ import annotations

from typing import Protocol, Self, runtime_checkable

from dpnb.accounting.exact import Number, percent_down
from dpnb.accounting.losses import Loss

__all__ = ["Filter", "refusal"]


@runtime_checkable
class Filter(Protocol):
    """What every filter can do; all filters are frozen.

    Examples
    --------
    >>> from dpnb.accounting import Filter, GDP, GDPFilter
    >>> isinstance(GDPFilter(mu=1), Filter)
    True
    >>> filter_ = GDPFilter(mu=1).step(GDP(0.6))
    >>> filter_.budget_fraction(GDP(0.4)), filter_.max_repetitions(GDP(0.1))
    (0.16, 64)
    """

    @property
    def budget(self) -> Loss:
        """The bound that was fixed beforehand, in the kind in which the filter counts."""
        ...

    @property
    def spent(self) -> Loss:
        """Everything admitted so far, in the same kind, rounded up."""
        ...

    @property
    def headroom(self) -> float:
        """Share of the budget left in the scale in which it is spent, 0 to 1, rounded down."""
        ...

    @property
    def rule(self) -> str:
        """What the filter holds to, in words."""
        ...

    def admits(self, loss: Loss) -> bool:
        """Whether `step` would accept the loss."""
        ...

    def step(self, loss: Loss) -> Self:
        """The filter after the loss, or `BudgetExceeded`."""
        ...

    def budget_fraction(self, loss: Loss) -> float:
        """The share of the whole budget that the loss takes, whether it fits or not; rounded up."""
        ...

    def affordable(self) -> Loss:
        """The largest single loss that is still admitted."""
        ...

    def max_repetitions(self, loss: Loss) -> int | None:
        """How many more losses like this one are admitted; None for one that costs nothing."""
        ...

    def guaranteed_epsilon(self, delta: Number) -> float:
        """The epsilon at `delta` that the whole budget promises, rounded up."""
        ...


def refusal(*, rule: str, loss: str, left: str, headroom: float, anything: bool) -> str:
    """The message of a refusal.

    Parameters
    ----------
    rule : str
        What the filter holds to.
    loss, left : str
        What was asked for, and the largest loss that is still admitted.
    headroom : float
    anything : bool
        Whether any loss that costs something is still admitted.
    """
    remedy = f"ask for at most {left}" if anything else "every question that costs is now refused"
    return (
        f"budget: {rule}; asked for {loss}, remaining is {left} ({percent_down(headroom)} of the budget); "
        f"{remedy}; nothing was charged"
    )
