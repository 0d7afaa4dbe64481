"""A filter without a bound, for a session without a budget: it counts losses and admits all of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from dpnb.accounting.budget import Budget
from dpnb.accounting.conversions.directed import checked_delta
from dpnb.accounting.convert import convert
from dpnb.accounting.exact import Number
from dpnb.accounting.filters.protocol import Filter
from dpnb.accounting.losses import GDP, Loss
from dpnb.copying import safe_repr


@dataclass(frozen=True, init=False, repr=False)
class UnboundedFilter(Filter):
    """Admits every loss that implies GDP, and adds mu squared; it guarantees nothing.

    What is relative to a budget does not exist: `budget`, :meth:`affordable` and :meth:`max_repetitions` are None,
    `headroom` and :meth:`budget_fraction` are NaN, and :meth:`guaranteed_epsilon` is infinite.  `spent` is the sum of
    the losses as GDP, so it is the mu of an accumulator (Smith and Thakurta 2022, Theorem 1): everything so far is
    within every budget that was fixed beforehand and is at least `spent`, because a filter with that budget would have
    admitted the same losses.  This says nothing about a moment that is chosen because of the answers; for that there
    are the time-uniform odometers.

    Attributes
    ----------
    spent : GDP
        The sum so far.

    Examples
    --------
    >>> from dpnb.accounting import GDP, UnboundedFilter
    >>> UnboundedFilter().step(GDP(3)).step(GDP(4)).spent
    GDP(mu=5.0)
    """

    name = "none"
    is_served = True
    label = "none"
    guarantee = "no guarantee (no budget limits the privacy loss)"
    rule = "there is no budget, and nothing is refused"
    interleaving_obstacle = None
    counts_range = True
    partition_obstacle = None
    counted_filters = ("gdp",)
    spent: GDP

    def __init__(self) -> None:
        self._set(spent=GDP.of(Fraction(0), Fraction(0)))

    @property
    def budget(self) -> None:
        """None: there is no budget."""
        return

    @property
    def headroom(self) -> float:
        """NaN: a share of no budget is not defined."""
        return math.nan

    @property
    def spent_words(self) -> str:
        """The sum of mu squared, as mu."""
        return f"{self.spent.words} in total"

    @classmethod
    def from_budget(cls, budget: Budget) -> Self:
        """The filter of a session without a budget, whatever its reference."""
        return cls()

    def to_filter_loss(self, loss: Loss) -> GDP:
        return convert(loss, GDP)

    def admits(self, loss: Loss) -> bool:
        self.to_filter_loss(loss)
        return True

    def step(self, loss: Loss) -> Self:
        return self._changed(spent=self.spent + self.to_filter_loss(loss))

    def budget_fraction(self, loss: Loss) -> float:
        self.to_filter_loss(loss)
        return math.nan

    def affordable(self) -> None:
        return

    def max_repetitions(self, loss: Loss) -> None:
        self.to_filter_loss(loss)

    def guaranteed_epsilon(self, delta: Number) -> float:
        checked_delta(delta)
        return math.inf

    @safe_repr
    def __repr__(self) -> str:
        return f"UnboundedFilter(spent={self.spent!r})"
