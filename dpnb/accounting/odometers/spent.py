"""What a filter has counted so far, read as an accumulator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

from dpnb.accounting.exact import decimal_up, display_up
from dpnb.accounting.filters import RogersFilter, SumFilter
from dpnb.accounting.losses import GDP, RDP, Loss
from dpnb.accounting.odometers.protocol import OdometerKind, OdometerState
from dpnb.accounting.odometers.statements import spent_statement
from dpnb.errors import ConversionError

__all__ = ["SpentAccumulator"]


@dataclass(frozen=True, init=False, repr=False)
class SpentAccumulator(OdometerState):
    """Everything so far is inside every budget of the filter's kind that was fixed beforehand and covers what is spent.

    A filter with such a budget would have admitted everything so far; its theorem is the statement, also for
    interactive mechanisms wherever it holds for them (Haney et al. 2023; `interleaving` lists where).  Unlike the other
    accumulators it has every component of the filter's loss, a delta too, and counts parts of partitions as the filter
    does.

    Parameters
    ----------
    filter : filter
        As it stands.

    Attributes
    ----------
    spent : Loss

    Examples
    --------
    >>> from dpnb.accounting import GDP, GDPFilter, SpentAccumulator
    >>> SpentAccumulator(GDPFilter(mu=1).step(GDP(0.5))).bound
    0.5
    """

    measure: ClassVar[str] = "spent"
    spent: Loss

    def __init__(self, filter: SumFilter[Any] | RogersFilter) -> None:
        self._set(spent=filter.spent)

    @property
    def kind(self) -> OdometerKind:
        """``"accumulator"``."""
        return "accumulator"

    @property
    def bound(self) -> float:
        """The first component of what is spent (mu itself for GDP), rounded up."""
        return self.spent.mu if isinstance(self.spent, GDP) else decimal_up(self.spent.parts[0])

    @property
    def words(self) -> str:
        """What is spent, in few digits and rounded up, for example ``mu 0.1002``; of several orders all of it."""
        if isinstance(self.spent, RDP):
            return self.spent.format(up=True)
        name = "mu" if isinstance(self.spent, GDP) else self.spent.names[0]
        delta = f" and delta {display_up(decimal_up(self.spent.delta))}" if self.spent.delta else ""
        return f"{name} {display_up(self.bound)}{delta}"

    def step(self, loss: Loss) -> NoReturn:
        """The filter steps; see there.

        Raises
        ------
        ConversionError
            Always.
        """
        raise ConversionError("accumulator: what a filter has spent follows the filter; step that instead")

    def statement(self) -> str:
        """The reading in words, with its numbers, each rounded against us."""
        return spent_statement(self.words if self.spent else "", type(self.spent).__name__)
