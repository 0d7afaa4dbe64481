"""The sum that a filter has counted so far, as an accumulator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NoReturn, Self

from dpnb.accounting.exact import decimal_up, display_up
from dpnb.accounting.filters import Filter
from dpnb.accounting.losses import GDP, RDP, Loss
from dpnb.accounting.odometers.protocol import Odometer, OdometerKind
from dpnb.accounting.odometers.statements import spent_statement
from dpnb.errors import ConversionError


@dataclass(frozen=True, init=False, repr=False)
class SpentAccumulator(Odometer):
    """Everything so far is within every budget of the filter's kind that was fixed beforehand and is at least `spent`.

    A filter with such a budget would have admitted all losses so far; the statement is its theorem, also for
    interactive mechanisms wherever it holds for them (Haney et al. 2023; for which filters, see
    :ref:`proof-which-filters-allow-concurrent-mechanisms`).  Unlike the other accumulators it has every component of
    the filter's loss, including a delta, and counts parts of partitions as the filter does.

    What a `GDPFilter` charges for a pure-DP loss is valid only for the budget that was left at that moment, and may be
    too little for others, so its sum then allows no such statement.  A charge from `launch_charge` that was given to
    `step` as GDP looks like the loss of Gaussian noise: a sum with such charges must not be read here either.

    Parameters
    ----------
    filter : filter
        The filter in its current state.

    Attributes
    ----------
    spent : Loss
        The sum of the losses that the filter has admitted.

    Raises
    ------
    ConversionError
        The charges of the filter depend on its budget: use `GDPAccumulator`, or `from_loss`.

    Examples
    --------
    >>> from dpnb.accounting import GDP, GDPFilter, SpentAccumulator
    >>> SpentAccumulator(GDPFilter(mu=1).step(GDP(0.5))).bound
    0.5
    """

    measure: ClassVar[str] = "spent"
    spent: Loss

    def __init__(self, filter: Filter) -> None:
        if not filter.sums_up_for_every_budget:
            raise ConversionError(
                "filter: its charges for pure losses are valid for its own budget only; got "
                f"{filter!r}; use GDPAccumulator, which counts each loss for every budget"
            )
        self._set(spent=filter.spent)

    @classmethod
    def from_loss(cls, spent: Loss) -> Self:
        """The accumulator of a sum of losses, each of which was counted whatever else was left of a budget.

        Parameters
        ----------
        spent : Loss
            The sum.

        Examples
        --------
        >>> from dpnb.accounting import GDP, SpentAccumulator
        >>> SpentAccumulator.from_loss(GDP(0.5)).bound
        0.5
        """
        new = object.__new__(cls)
        new._set(spent=spent)
        return new

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
