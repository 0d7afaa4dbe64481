"""Bounds on the spending of one unit, and of a hypothetical unit that every query uses in full.

The filter of a unit says what it can lose at most, in the end.  The tracker of one unit (Feldman and Zrnic 2021,
Algorithm 5, for one individual) says, after each query, what it has lost at most until then: a bound that grows by
whole increments.

Claim.  Let mu_t^2 be what a unit u is charged for query t, a function of u's own rows and of earlier answers, and d a
number that was fixed before the first query.  For two tables that differ in u, the answers before the first query with
which the tracker's bound would exceed d are together sqrt(d)-GDP, hence d/2-zCDP and, at every order a, Renyi DP with
the loss a d/2.

Proof.  For this pair of tables, u's rows are fixed.  So what u is charged for the next query, and with it the next
bound, is a function of the answers so far, the same for both tables, and the answers are cut by a rule that is known
before each query.  Given the past, each answer is mu_t-GDP for the pair (:mod:`dpnb._core.unit_budgets`), and the bound
is never below the sum of mu_t^2 (:class:`~dpnb.accounting.RenyiTracker`), which is therefore at most d before the cut.
Smith and Thakurta 2022, Theorem 1, applied to the pair, gives the claim.  ∎

One tracker serves all orders.  At order a the loss of a Gaussian answer is a mu^2/2 (Mironov 2017, Proposition 7), so
with increments in proportion to a the blocks are the same at every order.  The state is that of order 2, whose loss is
mu^2 itself.

A discovery of groups also has a delta, which every unit is charged equally and is not counted here: with deltas that
add up to delta the claim holds for delta-approximate GDP, zCDP and Renyi DP (:mod:`dpnb.accounting.filters.renyi`).

The bound is SENSITIVE: it follows from the unit's rows.  It may be shown to that unit alone.  That it has few possible
values makes it coarse, not private.

The hypothetical unit is public.  Each unit has the whole budget for itself, so no query is refused but for its delta.
The sum of the worst cases, up to the budget, is never below the spending of any unit: while it is within the budget,
every unit certainly takes part; once it would exceed the budget, units may be excluded, and whether any is excluded is
private.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from dpnb.accounting.convert import convert
from dpnb.accounting.exact import Frozen, Number, decimal_up, non_negative, positive, shown
from dpnb.accounting.filters import GDPFilter, SumFilter, ZCDPFilter
from dpnb.accounting.losses import GDP, Loss
from dpnb.accounting.odometers.accumulators import RenyiTracker
from dpnb.copying import safe_repr
from dpnb.errors import BudgetExceeded, InvalidValueError

INCREMENTS = 20
"""Increments in which a budget is spent: each is 5% of it."""


@dataclass(frozen=True, init=False, repr=False, eq=False)
class UnitTracker(Frozen):
    """A bound on what one unit has lost so far, in mu squared, that grows by whole increments.

    Feldman and Zrnic 2021, Algorithm 5, for one individual: see :ref:`proof-the-tracker-of-one-unit`.  All answers so
    far are, for this unit, inside every budget of Gaussian DP that was fixed beforehand and whose mu squared is at
    least `bound`.  SENSITIVE: for the unit alone, so the repr does not show it, and two trackers are not compared.

    Parameters
    ----------
    budget : Number
        The unit's budget, as mu squared, greater than 0.
    increments : int, default 20
        Number of increments in the budget, at least 1.

    Raises
    ------
    InvalidValueError
        A number is out of range.

    Examples
    --------
    >>> from dpnb.accounting.individual import UnitTracker
    >>> tracker = UnitTracker(budget=1)
    >>> for charge in ("0.03", "0.04", "0.12"):
    ...     tracker = tracker.step(charge)
    ...     print(float(tracker.bound))
    0.05
    0.1
    0.25
    >>> tracker
    UnitTracker(increment=0.05)
    """

    _tracker: RenyiTracker

    def __init__(self, budget: Number, increments: int = INCREMENTS) -> None:
        whole: object = increments
        if isinstance(whole, bool) or not isinstance(whole, int) or whole < 1:
            raise InvalidValueError(f"increments must be a whole number of at least 1, got {shown(whole)}; give 20")
        self._set(_tracker=RenyiTracker(2, positive(budget, name="budget") / increments))

    def step(self, charge: Number) -> Self:
        """The tracker after a query.

        Parameters
        ----------
        charge : Number
            What the unit was charged for the query, as mu squared, at least 0; 0 if the query did not use its data.

        Raises
        ------
        InvalidValueError
            The charge is negative, not finite or not a number; the message is constant.

        Examples
        --------
        >>> from dpnb.accounting.individual import UnitTracker
        >>> UnitTracker(budget=1, increments=10).step("0.25").bound
        Fraction(3, 10)
        """
        try:
            squared = non_negative(charge)
        except InvalidValueError:
            squared = None
        if squared is None:  # raised here, so that the error carries no charge
            raise InvalidValueError("charge: must be a finite number of at least 0; give it as mu squared")
        return self._changed(_tracker=self._tracker.step(GDP.from_mu_squared(squared)))

    @property
    def increment(self) -> Fraction:
        """The increment, as mu squared, which is public."""
        return self._tracker.increment

    @property
    def bound(self) -> Fraction:
        """The bound, as mu squared: a whole number of increments, at least one.  SENSITIVE."""
        return self._tracker.blocks * self._tracker.increment

    @safe_repr
    def __repr__(self) -> str:
        return f"UnitTracker(increment={decimal_up(self.increment)!r})"


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
        return self.each.interleaving_obstacle

    @property
    def counted_filters(self) -> tuple[str, ...]:
        return self.each.counted_filters

    @property
    def label(self) -> str:
        return self.each.label

    @property
    def theorem(self) -> str:
        return f"{self.each.theorem}, for each unit (Feldman and Zrnic 2021; Koskela, Tobaben and Honkela 2023)"

    @property
    def guarantee(self) -> str:
        """What is guaranteed to each unit."""
        return self.each.guarantee

    @property
    def spent_words(self) -> str:
        """The worst case, in the measure of the filter of each unit."""
        return self.each._changed(spent=self.spent).spent_words


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
        new = object.__new__(WorstCaseFilter)
        new._set(each=filter_)
        return new._started()
    raise InvalidValueError(
        f"accounting: 'individual' is proved for filter='gdp' and filter='zcdp'; got {type(filter_).__name__}; use "
        "one of these"
    )
