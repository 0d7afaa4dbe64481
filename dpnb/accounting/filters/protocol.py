"""The interface that all filters have in common."""

from __future__ import annotations

from typing import Protocol, Self, runtime_checkable

from dpnb.accounting.exact import Number, percent_down
from dpnb.accounting.losses import Loss

__all__ = ["Filter", "refusal"]


@runtime_checkable
class Filter(Protocol):
    """The interface of all filters; every filter is frozen.

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
        """The bound that was fixed beforehand, in the kind of loss that the filter counts."""
        ...

    @property
    def spent(self) -> Loss:
        """The sum of the losses admitted so far, in the same kind, rounded up."""
        ...

    @property
    def headroom(self) -> float:
        """Share of the budget that remains, in the filter's additive scale, 0 to 1, rounded down."""
        ...

    @property
    def rule(self) -> str:
        """The rule that the filter enforces, in words."""
        ...

    def admits(self, loss: Loss) -> bool:
        """Whether `step` would accept the loss.

        Parameters
        ----------
        loss : Loss
            The loss of one release.
        """
        ...

    def step(self, loss: Loss) -> Self:
        """The filter after the loss; raises `dpnb.errors.BudgetExceeded` if the loss does not fit.

        Parameters
        ----------
        loss : Loss
            The loss of one release.
        """
        ...

    def budget_fraction(self, loss: Loss) -> float:
        """The share of the whole budget that the loss takes, whether it fits or not; rounded up.

        Parameters
        ----------
        loss : Loss
            The loss of one release.
        """
        ...

    def affordable(self) -> Loss:
        """The largest single loss that is still admitted."""
        ...

    def max_repetitions(self, loss: Loss) -> int | None:
        """How many more losses like this one are admitted; None for a loss of 0.

        Parameters
        ----------
        loss : Loss
            The loss of one release.
        """
        ...

    def guaranteed_epsilon(self, delta: Number) -> float:
        """The epsilon at `delta` that the whole budget guarantees, rounded up.

        Parameters
        ----------
        delta : Number
            In [0, 1).
        """
        ...


def refusal(*, rule: str, loss: str, left: str, headroom: float, anything: bool) -> str:
    """The message of a refusal.

    Parameters
    ----------
    rule : str
        The rule that the filter enforces.
    loss, left : str
        The requested loss, and the largest loss that is still admitted.
    headroom : float
        Share of the budget that remains.
    anything : bool
        Whether any loss above 0 is still admitted.
    """
    remedy = f"request at most {left}" if anything else "queries with a non-zero cost are refused"
    return (
        f"budget: {rule}; requested {loss}, remaining is {percent_down(headroom)} of the budget ({left}); "
        f"{remedy}; nothing was charged"
    )
