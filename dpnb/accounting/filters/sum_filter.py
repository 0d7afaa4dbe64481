"""Filters that compare an exact sum of losses with a bound, and the one without a bound.

Sums are exact, and nothing above the budget is ever admitted.  An irrational bound is rounded down, a converted loss is
rounded up.  The time and memory of a step do not depend on the number of earlier steps, as long as the losses are
decimals or doubles; Fractions with always new denominators make the sums longer and longer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Generic, Self, TypeVar

from dpnb.accounting.budget import Budget
from dpnb.accounting.conversions.directed import checked_delta
from dpnb.accounting.convert import convert, good_delta
from dpnb.accounting.exact import Number, decimal_down, decimal_up, display_down, of_budget, percent_down
from dpnb.accounting.filters.base import Filter
from dpnb.accounting.losses import GDP, Loss
from dpnb.copying import safe_repr
from dpnb.errors import BudgetExceeded, ConversionError, InvalidValueError

Parts = tuple[Fraction, ...]

L = TypeVar("L", bound=Loss)
_ZERO = Fraction(0)


@lru_cache(maxsize=1024)
def share_of(parts: Parts, budget: Parts) -> float:
    """The largest share that a part takes of its budget, rounded up."""
    shares = [part / whole if whole else math.inf for part, whole in zip(parts, budget, strict=True) if part]
    return max((decimal_up(share) if isinstance(share, Fraction) else share for share in shares), default=0.0)


@dataclass(frozen=True, init=False, repr=False)
class SumFilter(Filter, Generic[L]):
    """Admits losses while every part of their sum is within the budget; base class of all filters but RogersFilter.

    Attributes
    ----------
    budget, spent : Loss
        The bound and the sum so far, in the kind of loss that the filter counts.

    Examples
    --------
    >>> from dpnb.accounting import GDP, SumFilter, ZCDPFilter
    >>> isinstance(ZCDPFilter(rho=1), SumFilter)
    True
    >>> ZCDPFilter(rho=1).step(GDP(1)).headroom
    0.5
    """

    budget: L
    spent: L
    measure = "epsilon"
    adds_up = True
    _in_headroom = slice(None)

    def to_filter_loss(self, loss: Loss) -> L:
        raise NotImplementedError

    @property
    def _delta_rule(self) -> str:
        delta = self.budget.delta
        return f", and the sum of the losses' deltas within {display_down(decimal_down(delta))}" if delta else ""

    def _guarantee(self, delta: Number, epsilon: Callable[[Fraction], float]) -> float:
        """The epsilon at the part of `delta` that the filter's own delta leaves; infinite if it leaves too little."""
        good = good_delta(checked_delta(delta), self.budget.delta)
        return math.inf if good is None else epsilon(good)

    def admits(self, loss: Loss) -> bool:
        return (self.spent + self.to_filter_loss(loss)).within(self.budget)

    def step(self, loss: Loss) -> Self:
        total = self.spent + self.to_filter_loss(loss)
        if not total.within(self.budget):
            raise BudgetExceeded(self._refusal(loss))
        return self._changed(spent=total)

    @property
    def headroom(self) -> float:
        """1 - spent/budget, for the part with the smallest share left; 0 to 1, rounded down.

        The headroom of a budget of 0 is 0; a delta of 0 is not counted.
        """
        which = self._in_headroom
        pairs = zip(self.budget.names[which], self.spent.parts[which], self.budget.parts[which], strict=True)
        shares = [1 - part / whole if whole else _ZERO for name, part, whole in pairs if whole or name != "delta"]
        return decimal_down(min(shares))

    def budget_fraction(self, loss: Loss) -> float:
        return share_of(self.to_filter_loss(loss).parts, self.budget.parts)

    def affordable(self) -> Loss:
        return self.budget - self.spent

    def max_repetitions(self, loss: Loss) -> int | None:
        return times_within((self.budget - self.spent).parts, self.to_filter_loss(loss).parts)

    @property
    def mu_squared_left(self) -> Fraction | None:
        """What is left, as mu squared of one Gaussian release."""
        return (self.budget - self.spent).noise_mu_squared

    @property
    def partition_obstacle(self) -> str | None:
        """None: the sum is bounded in each component separately."""
        return None

    @property
    def spent_words(self) -> str:
        """The first component of the sum and of the budget."""
        return of_budget(self.measure, decimal_up(self.spent.parts[0]), decimal_down(self.budget.parts[0]))

    @safe_repr
    def __repr__(self) -> str:
        return f"{type(self).__name__}(budget={self.budget!r}, spent={self.spent!r})"

    def with_budget(self, budget: Loss) -> Self:
        if type(budget) is not type(self.budget):
            raise ConversionError(
                f"budget: must be {type(self.budget).__name__}, got {type(budget).__name__}; give one of the same kind"
            )
        new = self._changed()
        new._start(budget)
        return new

    def _start(self, budget: L) -> None:
        if budget.delta > 1:
            raise InvalidValueError(f"delta must be at most 1, got {decimal_up(budget.delta)!r}; give for example 1e-6")
        self._set(budget=budget, spent=budget.with_parts((Fraction(0),) * len(budget.parts)))

    def _refusal(self, loss: Loss) -> str:
        left = self.affordable()
        with_delta = bool(self.budget.delta or loss.delta)
        return refusal(
            rule=self.rule,
            loss=loss.format(up=True, digits=4),
            left=left.format(up=False, with_delta=with_delta, digits=4),
            headroom=self.headroom,
            anything=self._is_anything_left,
        )

    @property
    def _is_anything_left(self) -> bool:
        """Whether any loss above 0 is still admitted, apart from a delta alone."""
        left = self.budget - self.spent
        named = zip(left.names, left.parts, self.budget.parts, strict=True)
        rest = [part for name, part, whole in named if whole and name != "delta"]
        return all(rest) if rest else bool(left.delta)


def times_within(left: Parts, cost: Parts) -> int | None:
    """How often a cost is within what is left; None if it is 0."""
    return min([int(rest // part) for rest, part in zip(left, cost, strict=True) if part], default=None)


def refusal(*, rule: str, loss: str, left: str, headroom: float, anything: bool) -> str:
    """The message of a refusal; `left` is the largest loss that is admitted, if `anything` above 0 is."""
    remedy = f"request at most {left}" if anything else "queries with a non-zero cost are refused"
    return (
        f"budget: {rule}; requested {loss}, remaining is {percent_down(headroom)} of the budget ({left}); "
        f"{remedy}; nothing was charged"
    )


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
