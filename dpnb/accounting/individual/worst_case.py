"""The public state under individual accounting: the spending of a hypothetical unit that every query uses in full.

Each unit has the whole budget for itself, so no query is refused but for its delta.  The sum of the worst cases, up to
the budget, is never below the spending of any unit: while it is within the budget, every unit certainly takes part;
once it would exceed the budget, units may be excluded, and whether any is excluded is private.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from dpnb.accounting.convert import convert
from dpnb.accounting.exact import Number
from dpnb.accounting.filters import GDPFilter, SumFilter, ZCDPFilter
from dpnb.accounting.losses import Loss
from dpnb.errors import BudgetExceeded, InvalidValueError


@dataclass(frozen=True, init=False, repr=False)
class WorstCaseFilter(SumFilter[Any]):
    """Adds the worst cases, up to the budget, and refuses only a delta that does not fit.

    Every unit's own losses stay within the budget, whatever the queries (Feldman and Zrnic 2021, Theorem 4.3; for
    Gaussian noise Smith and Thakurta 2022, Theorem 1, applied to the two tables that differ in that unit).  The delta
    of a query is the same for all units, so deltas are added and refused as by the other filters.

    Notes
    -----
    `headroom`, `affordable` and `max_repetitions` describe the worst case: the remainder of a unit that pays for
    every query in full, and the number of further queries in which every unit takes part.  Once the sum of the worst
    cases has reached the budget it stays there, even for queries that are cheaper than the one that exceeded it.

    Examples
    --------
    >>> from dpnb.accounting import GDP, GDPFilter
    >>> from dpnb.accounting.individual import worst_case_filter
    >>> public = worst_case_filter(GDPFilter(mu=1)).step(GDP(0.8))
    >>> public.admits_all_units(GDP(0.5)), public.admits_all_units(GDP(0.8)), public.admits(GDP(0.8))
    (True, False, True)
    """

    name = "individual"
    is_served = True
    is_individual = True
    adds_up = False  # it stays at the budget
    each: SumFilter[Any]  # the filter of each unit, before its first loss

    def admits(self, loss: Loss) -> bool:
        # Only the delta must fit: a unit whose budget is too small is excluded from the query instead.
        return bool((self.spent + self.to_filter_loss(loss)).delta <= self.budget.delta)

    def admits_all_units(self, loss: Loss) -> bool:
        # The sum of all worst cases is within the budget.
        return super().admits(loss)

    def step(self, loss: Loss) -> Self:
        # The state after a query, whichever units took part in it.
        total = self.spent + self.to_filter_loss(loss)
        if total.delta > self.budget.delta:
            raise BudgetExceeded(self._refusal(loss))
        capped = tuple(min(part, whole) for part, whole in zip(total.parts, self.budget.parts, strict=True))
        return self._changed(spent=total.with_parts(capped))

    @property
    def is_exhausted(self) -> bool:
        """Whether nothing is left for a unit that is charged for every query in full."""
        return bool(self.spent.parts[0] == self.budget.parts[0])

    @property
    def rule(self) -> str:
        """The rule that holds for each unit, in words."""
        return f"for each unit separately, {self.each.rule}"

    def to_filter_loss(self, loss: Loss) -> Any:
        # Whatever is left of the budget.
        return convert(loss, type(self.budget))

    def with_budget(self, budget: Loss) -> Self:
        return self._changed(each=self.each.with_budget(budget))._started()

    def _started(self) -> Self:
        self._start(self.each.budget)
        return self

    def guaranteed_epsilon(self, delta: Number) -> float:
        return self.each.guaranteed_epsilon(delta)

    @property
    def interleaving_obstacle(self) -> str | None:
        """That of the filter of each unit."""
        return self.each.interleaving_obstacle

    @property
    def counted_filters(self) -> tuple[str, ...]:
        """Those of the filter of each unit."""
        return self.each.counted_filters

    @property
    def label(self) -> str:
        """The name of the filter of each unit."""
        return self.each.label

    @property
    def theorem(self) -> str:
        """The theorem for each unit, in words."""
        return f"{self.each.theorem}, for each unit (Feldman and Zrnic 2021; Koskela, Tobaben and Honkela 2023)"

    @property
    def guarantee(self) -> str:
        """What is guaranteed to each unit."""
        return self.each.guarantee

    @property
    def spent_words(self) -> str:
        """The worst case, in the measure of the filter of each unit."""
        return self.each._changed(spent=self.spent).spent_words


class WorstCaseGDPFilter(WorstCaseFilter):
    """The worst case under a budget in Gaussian differential privacy."""


class WorstCaseZCDPFilter(WorstCaseFilter):
    """The worst case under a budget in zero-concentrated differential privacy."""


def worst_case_filter(filter_: object) -> WorstCaseFilter:
    """The public worst case if each unit has the budget of a new filter for itself.

    Parameters
    ----------
    filter_ : GDPFilter or ZCDPFilter
        A filter before its first loss.

    Returns
    -------
    WorstCaseFilter
        Counts the same kind of loss, with the same budget.

    Raises
    ------
    InvalidValueError
        Individual accounting is proved for sums of mu squared and of rho; the filter is of another kind.

    Examples
    --------
    >>> from dpnb.accounting import ZCDPFilter
    >>> from dpnb.accounting.individual import worst_case_filter
    >>> worst_case_filter(ZCDPFilter(rho=0.5)).unit_budget
    Fraction(1, 1)
    """
    if isinstance(filter_, GDPFilter | ZCDPFilter):
        new = object.__new__(WorstCaseGDPFilter if isinstance(filter_, GDPFilter) else WorstCaseZCDPFilter)
        new._set(each=filter_)
        return new._started()
    raise InvalidValueError(
        f"accounting: 'individual' is proved for filter='gdp' and filter='zcdp'; got {type(filter_).__name__}; use "
        "one of these"
    )
