"""The sum that a filter has counted so far, as an accumulator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

from dpnb.accounting.exact import decimal_up, display_up
from dpnb.accounting.filters import RogersFilter, SumFilter, UnboundedFilter
from dpnb.accounting.losses import GDP, RDP, Loss
from dpnb.accounting.odometers.protocol import OdometerKind, OdometerState
from dpnb.accounting.odometers.statements import spent_statement
from dpnb.errors import ConversionError

__all__ = ["SpentAccumulator"]


@dataclass(frozen=True, init=False, repr=False)
class SpentAccumulator(OdometerState):
    """Everything so far is within every budget of the filter's kind that was fixed beforehand and is at least `spent`.

    A filter with such a budget would have admitted all losses so far; the statement is its theorem, also for
    interactive mechanisms wherever it holds for them (Haney et al. 2023; for which filters, see
    :ref:`proof-which-filters-allow-concurrent-mechanisms`).  Unlike the other accumulators it has every component of
    the filter's loss, including a delta, and counts parts of partitions as the filter does.

    Parameters
    ----------
    filter : filter
        The filter in its current state.

    Attributes
    ----------
    spent : Loss
        The sum of the losses that the filter has admitted.

    Examples
    --------
    >>> from dpnb.accounting import GDP, GDPFilter, SpentAccumulator
    >>> SpentAccumulator(GDPFilter(mu=1).step(GDP(0.5))).bound
    0.5
    """

    measure: ClassVar[str] = "spent"
    spent: Loss

    def __init__(self, filter: SumFilter[Any] | RogersFilter | UnboundedFilter) -> None:
        self._set(spent=filter.spent)

    @property
    def kind(self) -> OdometerKind:
        """``"accumulator"``."""
        return "accumulator"

    @property
    def bound(self) -> float:
        """The first component of `spent` (mu for GDP), rounded up."""
        return self.spent.mu if isinstance(self.spent, GDP) else decimal_up(self.spent.parts[0])

    @property
    def words(self) -> str:
        """`spent` in few digits, rounded up, for example ``mu 0.1002``; for RDP every order in full."""
        if isinstance(self.spent, RDP):
            return self.spent.format(up=True)
        name = "mu" if isinstance(self.spent, GDP) else self.spent.names[0]
        delta = f" and delta {display_up(decimal_up(self.spent.delta))}" if self.spent.delta else ""
        return f"{name} {display_up(self.bound)}{delta}"

    def step(self, loss: Loss) -> NoReturn:
        """Not supported: step the filter, and make a new accumulator from it.

        Parameters
        ----------
        loss : Loss
            Not used.

        Raises
        ------
        ConversionError
            Always.
        """
        raise ConversionError("accumulator: it shows the spending of a filter; call step() of the filter instead")

    def statement(self) -> str:
        """The reading in words; all numbers are rounded in the safe direction."""
        return spent_statement(self.words if self.spent else "", type(self.spent).__name__)
