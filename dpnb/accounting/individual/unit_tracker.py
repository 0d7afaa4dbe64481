"""The tracker of one unit: a bound on what the unit has lost so far, which grows by whole increments.

Feldman and Zrnic 2021, Algorithm 5, for one individual: the filter of a unit says what it can lose at most, in the end;
the tracker says, after each query, what it has lost at most until then.

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
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from dpnb.accounting.exact import Number, decimal_up, non_negative, positive, shown
from dpnb.accounting.frozen import Frozen
from dpnb.accounting.losses import GDP
from dpnb.accounting.odometers.accumulators import RenyiTracker
from dpnb.copying import safe_repr
from dpnb.errors import InvalidValueError

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
