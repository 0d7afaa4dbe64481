"""The base class of all filters: what a filter decides, and how it describes itself.

The filters under which interactive mechanisms may run concurrently, with requests to them in any order
(:attr:`Filter.interleaving_obstacle`):

=====================================  ==============================================================================
GDP, also with a delta; no budget      f-DP: an interactive mechanism with a trade-off function is an interactive
                                       post-processing of the pair of distributions that has it (Vadhan and Zhang
                                       2023), so a filter that is valid for non-interactive ones is valid for these
                                       (Haney et al. 2023, Section 3; with losses that are fixed in advance also Lyu
                                       2022, arXiv:2207.09397).  Delta-approximate mu-GDP is the trade-off
                                       function of two distributions: with probability delta the outcome reveals the
                                       table, otherwise it is N(0, 1) or N(mu, 1).  Both are mixtures as in the notes
                                       of :class:`dpnb.Budget`
(epsilon, delta)-DP: basic, Rogers     Haney et al. 2023, Section 3
RDP of one order                       Haney et al. 2023, Theorem 4.6
zCDP without a delta, and the sum V    Haney et al. 2023, Theorem 4.10
zCDP or RDP with a delta, RDP of       for the mechanisms of dpnb: :mod:`dpnb.accounting.filters.renyi`; for arbitrary
several orders                         interactive mechanisms this is open (Haney et al. 2023, Section 4)
any other filter                       refused, unless it names a theorem
=====================================  ==============================================================================

The theorems are for finite communication: finitely many messages, each from a finite set.  A notebook makes finitely
many requests, and dpnb releases integers of finitely many digits.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self

from dpnb.accounting.budget import Budget
from dpnb.accounting.exact import Frozen, Number
from dpnb.accounting.losses import Loss, PureGDP
from dpnb.errors import ConversionError, InvalidValueError, LedgerError


class Filter(Frozen):
    """Base class of all filters; every filter is frozen.

    A filter describes itself: a session uses one that was added to the registry
    :data:`dpnb.accounting.filters.FILTERS` like every other.  The defaults of a description are the cautious ones.

    Attributes
    ----------
    budget : Loss
        The bound that was fixed beforehand, in the kind of loss that the filter counts.
    spent : Loss
        The sum of the losses admitted so far, in the same kind, rounded up.
    name : str
        What ``filter=`` of a session accepts.

    Examples
    --------
    >>> from dpnb.accounting import Filter, GDP, GDPFilter
    >>> isinstance(GDPFilter(mu=1), Filter)
    True
    >>> filter_ = GDPFilter(mu=1).step(GDP("0.6"))
    >>> filter_.affordable(), filter_.admits(GDP(0.9))
    (GDP(mu=0.8), False)
    >>> filter_.budget_fraction(GDP(0.4)), filter_.max_repetitions(GDP(0.1))
    (0.16, 64)
    >>> from dpnb.accounting import RDPFilter, ZCDPFilter
    >>> filters = GDPFilter(mu=1), ZCDPFilter(rho=0.5), RDPFilter({8: 1})
    >>> [round(each.guaranteed_epsilon(delta=1e-6), 3) for each in filters]
    [4.887, 5.222, 2.543]
    >>> [each.to_filter_loss(GDP(mu="0.5")) for each in filters]
    [GDP(mu=0.5), ZCDP(rho=0.125), RDP({8.0: 1.0})]
    """

    name: ClassVar[str]
    is_individual: ClassVar[bool] = False
    """Whether each unit has the budget for itself."""
    records_charge: ClassVar[bool] = False
    """Whether it is written down what a loss without Gaussian noise was charged, since that depended on what was left;
    such charges are in mu squared, delta and epsilon."""
    adds_up: ClassVar[bool] = False
    """Whether a sum of Gaussian losses is admitted precisely if each of them is in turn."""
    is_served: ClassVar[bool] = False
    """Whether a service enforces it; otherwise only a session does."""
    counts_range: bool = False
    """Whether it counts a bounded range for less than pure DP with that epsilon."""

    if TYPE_CHECKING:  # at runtime a property of a base class would be the default of a dataclass's field

        @property
        def budget(self) -> Any:
            """The bound."""

        @property
        def spent(self) -> Any:
            """The sum of the losses so far."""

    @property
    def headroom(self) -> float:
        """Share of the budget that remains, in the filter's additive scale, 0 to 1, rounded down."""
        raise NotImplementedError

    @property
    def rule(self) -> str:
        """The rule that the filter enforces, in words."""
        raise NotImplementedError

    def admits(self, loss: Loss) -> bool:
        """Whether `step` would accept the loss.

        Parameters
        ----------
        loss : Loss
            The loss of one release.

        Raises
        ------
        ConversionError
            The loss cannot be converted to the kind that the filter counts.
        """
        raise NotImplementedError

    def step(self, loss: Loss) -> Self:
        """The filter after the loss.

        Parameters
        ----------
        loss : Loss
            The loss of one release.

        Raises
        ------
        BudgetExceeded
            The budget does not cover the loss; this filter is unchanged.
        ConversionError
            The loss cannot be converted to the kind that the filter counts.

        Examples
        --------
        >>> from dpnb.accounting import GDP, GDPFilter
        >>> GDPFilter(mu=1).step(GDP(0.6)).spent
        GDP(mu=0.6)
        """
        raise NotImplementedError

    def budget_fraction(self, loss: Loss) -> float:
        """The share of the whole budget that the loss takes, rounded up; above 1 or infinite for one that never fits.

        Parameters
        ----------
        loss : Loss
            The loss of one release, or of a mechanism.

        Raises
        ------
        ConversionError
            The loss cannot be converted to the kind that the filter counts.
        """
        raise NotImplementedError

    def affordable(self) -> Loss | None:
        """The largest single loss that is still admitted."""
        raise NotImplementedError

    def max_repetitions(self, loss: Loss) -> int | None:
        """How many more losses like this one are admitted; None for a loss of 0.

        Parameters
        ----------
        loss : Loss
            The loss of one release.
        """
        raise NotImplementedError

    def guaranteed_epsilon(self, delta: Number) -> float:
        """The epsilon for which all releases together are (epsilon, `delta`)-DP, rounded up; infinite if there is none.

        Parameters
        ----------
        delta : Number
            In [0, 1); another one is refused.
        """
        raise NotImplementedError

    def to_filter_loss(self, loss: Loss) -> Loss:
        """The loss converted to the kind that this filter counts.

        Parameters
        ----------
        loss : Loss
            The loss of one release.

        Raises
        ------
        ConversionError
            No theorem allows the conversion.
        """
        raise NotImplementedError

    def with_budget(self, budget: Loss) -> Self:
        """A new filter with the same rule and another budget of the same kind.

        Parameters
        ----------
        budget : Loss
            A loss of the same kind.

        Raises
        ------
        ConversionError
            The budget is of another kind, or the rule has no other budget.
        InvalidValueError
            Its delta is above 1.
        """
        if budget != self.budget:
            raise ConversionError(f"budget: must be {self.budget!r}, got {budget!r}; make a new filter instead")
        return self

    def after_repeated(self, loss: Loss, count: int) -> Self:
        """The filter after equal losses; refused like `step`.

        Parameters
        ----------
        loss : Loss
            The loss of one release.
        count : int
            The number of releases.
        """
        return self.step(loss.with_parts(tuple(count * part for part in loss.parts)))

    # --- a budget in a session ----------------------------------------------------------------------------------

    @classmethod
    def from_budget(cls, budget: Budget) -> Self:
        """The filter that enforces a declared budget, before the first release; refuses one that it cannot enforce.

        Parameters
        ----------
        budget : Budget
            The declared budget.
        """
        raise NotImplementedError

    @classmethod
    def _epsilon_delta(cls, budget: Budget, *, discovery: bool = False) -> tuple[Fraction, Fraction]:
        """The epsilon of a budget, and its delta without that for discoveries, if the filter supports one."""
        if budget.pure_epsilon:
            raise InvalidValueError(
                f"filter: {cls.name!r} does not support pure_epsilon; got {budget!r}; use filter='gdp', or a budget "
                "without it"
            )
        if budget.epsilon is None or budget.delta is None:
            raise InvalidValueError(
                f"filter: {cls.name!r} needs a budget in epsilon and delta; got {budget!r}; give Budget(epsilon=, "
                "delta=), or filter='gdp'"
            )
        if budget.discovery_delta and not discovery:
            raise InvalidValueError(
                f"filter: {cls.name!r} does not support discovery_delta; got {budget!r}; use filter='gdp', 'zcdp', "
                "'rdp' or 'approx-dp', or give the groups' keys"
            )
        return budget.epsilon, budget.delta - budget.discovery_delta

    @property
    def counted_filters(self) -> tuple[str, ...]:
        """The names of the filters whose guarantee this filter can count, by a theorem: those of sub-sessions."""
        return ()

    @property
    def shared_delta(self) -> Fraction | None:
        """The delta that is divided among the answers, if it counts epsilons; None otherwise."""
        return None

    @property
    def mu_squared_left(self) -> Fraction | None:
        """What is left, as mu squared of one Gaussian release; None if that is found by trying."""
        return None

    @property
    def reserve(self) -> Fraction:
        """The epsilon of a reserve for pure DP beside the rest of the budget; 0 for none."""
        return Fraction(0)

    @property
    def reserve_headroom(self) -> float:
        """The share of the reserve that remains, 0 to 1, rounded down; 0 if there is none."""
        return 0.0

    def loss_of_release(self, loss: Loss) -> Loss:
        """The loss with which this filter, before the first release, counts a Gaussian release; others as they are.

        Parameters
        ----------
        loss : Loss
            The loss of the release.
        """
        return loss

    def launch_charge(self, loss: Loss) -> Loss:
        """What a mechanism is charged at launch in the current state.

        Parameters
        ----------
        loss : Loss
            The loss of the mechanism.
        """
        return loss

    def largest_launch(self, loss: Loss) -> str | None:
        """The largest mechanism of the same kind that fits, in words, empty if none does; None if a mu says it.

        Parameters
        ----------
        loss : Loss
            The loss of the mechanism.
        """
        return None

    def recorded_charge(self, loss: Loss, counted: Loss) -> PureGDP | None:
        """What a row of the ledger says that it was charged for a loss; None if that is the loss.

        Parameters
        ----------
        loss : Loss
            The loss of the row.
        counted : Loss
            The loss as the filter counts it.
        """
        return None

    def recorded_loss(self, loss: Loss, charged: PureGDP | None) -> Loss:
        """The loss with which a row of the ledger was counted, when it was admitted.

        Parameters
        ----------
        loss : Loss
            The loss of the row.
        charged : PureGDP or None
            What the row says that it was charged; refused if this filter does not record charges.
        """
        if charged is not None:
            raise LedgerError(f"filter={self.name!r} charges no {charged!r} for {loss!r}; was the ledger edited?")
        return self.loss_of_release(loss)

    @property
    def sums_up_for_every_budget(self) -> bool:
        """Whether every filter with a budget of at least `spent` would have admitted the same losses."""
        return True

    @property
    def interleaving_obstacle(self) -> str | None:
        """Why interactive mechanisms may not be launched under this filter; None if a theorem says that they may."""
        return f"the filter {self.name!r} names no theorem on interactive mechanisms that are interleaved"

    @property
    def partition_obstacle(self) -> str | None:
        """Why a partition may not be charged by its largest parts (:mod:`dpnb.accounting.partition_cost`)."""
        return f"the filter {self.name!r} has no rule for charging the largest part alone"

    @property
    def label(self) -> str:
        """The name in gauges and reports."""
        return self.name

    @property
    def theorem(self) -> str:
        """The theorem and the rule, in words."""
        return self.rule

    @property
    def guarantee(self) -> str:
        """What is guaranteed, for example ``0.2368-GDP``; rounded up, since the whole budget may be spent."""
        return self.rule

    @property
    def spent_words(self) -> str:
        """The loss spent and the budget in the filter's own measure."""
        raise NotImplementedError

    def admits_all_units(self, loss: Loss) -> bool:
        """Whether every unit certainly takes part in a query.

        Parameters
        ----------
        loss : Loss
            The loss of the query.
        """
        return True

    def mu_squared(self, loss: Loss) -> Fraction:
        """A loss as mu squared, for a Gaussian answer: the scale in which units are charged.

        Parameters
        ----------
        loss : Loss
            The loss of the answer.
        """
        return self.to_filter_loss(loss).noise_mu_squared or Fraction(0)

    @property
    def unit_budget(self) -> Fraction:
        """The total loss of each unit, as mu squared."""
        return self.mu_squared(self.budget)
