"""One privacy guarantee, enforced by any of the filters, when every release is Gaussian.

A session releases sums with Gaussian noise, so every charge is a mu.  Each filter counts it as follows:

==========  ========================================================================================================
gdp         mu^2 against mu0^2; pure-DP mechanisms by their residue, or from the budget's reserve for them
zcdp        rho = mu^2/2 against the rho that implies (epsilon, delta)
rdp         order mu^2/2 against the budget of one order, the one that admits the most Gaussian releases.  Several
            orders must all admit, and for Gaussian releases the best one alone admits as much as zCDP's whole curve.
approx-dp   V = mu^2 against y*, with the whole delta for the conversion, since Gaussian losses have none
rogers      (epsilon_m, delta_m) at which the largest number of equal releases fits
            (:mod:`dpnb.accounting.delta_split`); half of delta is divided among the delta_m
basic       likewise, with all of delta divided among them
==========  ========================================================================================================

Under the first four, mu^2 adds, so refining an answer costs no more than one release at the finer level.  Under the
last two an epsilon is charged for each answer, and refining costs more than one release.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

from dpnb.accounting.budget import Budget
from dpnb.accounting.conversions import optimal_order, rdp_from_epsilon, rho_from_epsilon
from dpnb.accounting.convert import convert
from dpnb.accounting.delta_split import equivalent_epsilon_delta
from dpnb.accounting.exact import (
    decimal_down,
    decimal_sqrt_down,
    decimal_sqrt_up,
    decimal_up,
    display_down,
    display_up,
    exact,
    from_text,
    shown,
    to_text,
)
from dpnb.accounting.filters import (
    ApproxDPFilter,
    BasicFilter,
    GDPFilter,
    GDPReserveFilter,
    GDPResidueFilter,
    RDPFilter,
    RogersFilter,
    SumFilter,
    UnboundedFilter,
    ZCDPFilter,
)
from dpnb.accounting.individual import worst_case_filter
from dpnb.accounting.losses import GDP, RDP, ZCDP, ApproxDP, Loss, PureGDP, loss_from_json
from dpnb.accounting.no_budget import NoBudget
from dpnb.errors import InvalidValueError, LedgerError, RequestError

__all__ = ["FILTERS", "AnyFilter", "FilterName", "PrivacyGuarantee", "display_bound", "make_guarantee"]

AnyFilter = SumFilter[Any] | RogersFilter | UnboundedFilter
FilterName = Literal["gdp", "zcdp", "rdp", "approx-dp", "rogers", "basic"]
DELTA_SPLIT = "equal_releases"
"""How a filter that counts epsilons chooses each release's delta; a ledger made under another rule is refused."""
# A remainder below this share of mu0 squared comes from rounding and counts as 0.
ROUNDING_TOLERANCE = Fraction(1, 10**10)

NO_FILTER = "none"
"""The name of the filter of a session without a budget, in the ledger; ``filter=`` does not accept it."""

FILTERS = {
    "gdp": (
        "GDP",
        "Smith and Thakurta 2022, Theorem 1, and Regehr et al. 2026 for mechanisms in pure DP: the sum of mu^2 "
        "against mu0^2",
    ),
    "zcdp": ("zCDP", "Feldman and Zrnic 2021, Remark 4.4, and Whitehouse et al. 2023, Theorem 1: the sum of rho"),
    "rdp": ("RDP", "Feldman and Zrnic 2021, Theorem 4.3: the Renyi loss of one order chosen beforehand"),
    "approx-dp": (
        "approx. DP",
        "Whitehouse et al. 2023, Theorem 8: the sum V of mu^2, so that sqrt(2 V log(1/delta)) + V/2 is within epsilon",
    ),
    "rogers": (
        "Rogers",
        "Rogers et al. 2016, Theorem 5.1: K of each answer's own epsilon; a quarter of epsilon or more from the start",
    ),
    "basic": ("basic", "Rogers et al. 2016, Theorem 3.3: the sums of each answer's own epsilon and delta"),
}
"""Names that ``filter=`` accepts, each with a label and the rule that the filter enforces."""


@dataclass(frozen=True)
class PrivacyGuarantee:
    """How a filter enforces a budget.

    Parameters
    ----------
    filter_name : str
        One of `FILTERS`, or `NO_FILTER`.
    budget : Budget or NoBudget
    initial_filter : filter
        The filter before the first release.
    mu0_squared : Fraction
        mu0 squared of the GDP budget for the same guarantee; of the GDP that it implies, if it is in pure DP; without a
        budget, of the reference.
    shared_delta : Fraction or None
        The delta that is divided among the answers, for a filter that counts epsilons; None for the others.
    """

    filter_name: str
    budget: Budget | NoBudget
    initial_filter: AnyFilter
    mu0_squared: Fraction
    shared_delta: Fraction | None = None

    @property
    def has_budget(self) -> bool:
        """Whether a budget limits the privacy loss."""
        return isinstance(self.budget, Budget)

    @property
    def refining(self) -> str | None:
        """In words, what refining costs beyond one release at the finer level; None if nothing."""
        if self.shared_delta is None:
            return None
        return "costs more than one release at the finer level: this filter adds the epsilon of each answer"

    @property
    def words(self) -> str:
        """The guarantee in words, for example ``(1, 1e-06)-DP, enforced as 0.2368-GDP``."""
        enforced = self.filter_guarantee
        if isinstance(self.budget, NoBudget):
            return enforced
        if self.budget.epsilon is None or self.budget.delta is None:
            discovery = self.budget.discovery_delta
            return f"{enforced} but for a delta of {display_bound(discovery)}" if discovery else enforced
        return f"({display_bound(self.budget.epsilon)}, {display_bound(self.budget.delta)})-DP, enforced as {enforced}"

    @property
    def filter_guarantee(self) -> str:
        """The guarantee that the filter enforces, for example ``0.2368-GDP``.

        Rounded up, since the whole budget may be spent: a smaller number would claim more than is enforced.  An order
        of a Renyi guarantee is rounded down: the loss grows with the order, so the guarantee holds at every lower one.
        """
        if isinstance(self.initial_filter, UnboundedFilter):
            return "no guarantee (no budget limits the privacy loss)"
        if isinstance(self.initial_filter, GDPReserveFilter):
            reserve = display_up(decimal_up(self.initial_filter.budget.epsilon))
            if not self.initial_filter.budget.mu_squared:
                return f"{reserve}-DP"
            gaussian = display_up(decimal_sqrt_up(self.initial_filter.budget.mu_squared))
            return f"{gaussian}-GDP and a reserve of epsilon {reserve} in pure DP"
        if isinstance(self.initial_filter, GDPFilter):
            return f"{display_up(decimal_sqrt_up(self.initial_filter.budget.mu_squared))}-GDP"
        if isinstance(self.initial_filter, ZCDPFilter):
            return f"{display_up(decimal_up(self.initial_filter.budget.rho))}-zCDP"
        if isinstance(self.initial_filter, RDPFilter):
            ((order, rho),) = self.initial_filter.budget.curve
            return f"{display_up(decimal_up(rho))}-RDP of order {display_down(decimal_down(order), 6)}"
        if isinstance(self.initial_filter, ApproxDPFilter):
            return f"V within {display_up(decimal_up(2 * self.initial_filter.budget.rho))}"
        if isinstance(self.initial_filter, RogersFilter):
            return f"K within {display_up(decimal_up(self.initial_filter.budget.epsilon))}"
        return "sums of epsilon and delta"

    def to_filter_loss(self, loss: Loss) -> Loss:
        """The loss with which the filter counts a release.

        A filter that counts epsilons counts a Gaussian release as
        :func:`dpnb.accounting.delta_split.equivalent_epsilon_delta`.
        """
        if (
            self.shared_delta is None
            or not isinstance(loss, GDP)
            or not isinstance(self.initial_filter, BasicFilter | RogersFilter)
        ):
            return loss
        return (
            equivalent_epsilon_delta(loss.mu_squared, self.initial_filter, self.shared_delta)
            if loss.mu_squared
            else ApproxDP(0)
        )

    def recorded_loss(self, loss: Loss, charged: PureGDP | None) -> Loss:
        """The loss with which the filter counted a row of the ledger, when it was admitted.

        Parameters
        ----------
        loss : Loss
            The loss of the row.
        charged : PureGDP or None
            What the row says that a GDP filter was charged.  A row without it is counted as it always was: a pure-DP
            loss is converted to GDP, whatever is left.

        Raises
        ------
        LedgerError
            This filter does not charge anything but the loss, or not in this way.
        """
        filter_ = self.initial_filter
        if charged is None:
            is_converted = isinstance(filter_, GDPResidueFilter) and not isinstance(loss, GDP)
            return convert(loss, GDP) if is_converted else self.to_filter_loss(loss)
        if isinstance(filter_, GDPReserveFilter):
            return charged
        if isinstance(filter_, GDPResidueFilter) and not charged.epsilon:
            return GDP.of(charged.mu_squared, charged.delta)
        raise LedgerError(f"filter={self.filter_name!r} charges no {charged!r} for {loss!r}; was the ledger edited?")

    def charged_gdp(self, loss: Loss, charged: PureGDP | None) -> GDP:
        """What the filter charged for a row of the ledger, as the loss of Gaussian noise.

        Under a filter that adds mu squared or rho, the squares of these mu add up to the spent budget: a rho is given
        as the mu of Gaussian noise with the same charge, which need not bound the loss.  Under a filter that adds
        epsilons, the mu that the loss implies.

        Parameters
        ----------
        loss, charged
            As for `recorded_loss`.
        """
        if isinstance(loss, GDP):
            return loss
        if charged is not None:
            return GDP.of(charged.mu_squared, charged.delta)
        counted, filter_ = self.recorded_loss(loss, None), self.initial_filter
        if isinstance(filter_, SumFilter):
            counted = filter_.to_filter_loss(counted)
        if isinstance(counted, ZCDP):
            return GDP.of(2 * counted.rho, counted.delta)
        if isinstance(counted, RDP):
            ((order, rho),) = counted.curve
            return GDP.of(2 * rho / order, counted.delta)
        return convert(loss, GDP)

    def remaining(self, state: AnyFilter, share: Fraction = Fraction(1)) -> GDP:
        """The largest Gaussian release that takes at most a share of the remaining budget, in the filter's scale.

        For a filter that adds mu squared, the whole remainder is exact and a part of it is rounded down to a mu of few
        digits; for one that counts epsilons, mu is rounded down.  A remainder left by such rounding counts as 0.

        Parameters
        ----------
        state : filter
            The current state of this guarantee's filter.
        share : Fraction, default 1
            In (0, 1].

        Raises
        ------
        RequestError
            There is no budget.
        """
        if isinstance(state, UnboundedFilter):
            raise RequestError(
                "share: this session has no budget, so there is no share of what remains; give mu=, rho=, epsilon= or "
                "within= instead"
            )
        if self.shared_delta is not None:
            squared = exact(self._searched(state, share)) ** 2
        else:
            squared = _mu_squared_left(state)
            squared = squared if share == 1 else exact(decimal_sqrt_down(share * squared)) ** 2
        return GDP.from_mu_squared(squared if squared >= ROUNDING_TOLERANCE * self.mu0_squared else 0)

    def _searched(self, state: SumFilter[Any] | RogersFilter, share: Fraction) -> float:
        """Search by bisection; the returned mu was checked and fits."""
        goal = exact(state.headroom) * (1 - share)

        def fits(mu: float) -> bool:
            loss = self.to_filter_loss(GDP(mu))
            return state.admits(loss) and (share == 1 or exact(state.step(loss).headroom) >= goal)

        low, high = 0.0, decimal_sqrt_down(self.mu0_squared)
        if fits(high):
            return high
        negligible = decimal_sqrt_down(ROUNDING_TOLERANCE * self.mu0_squared)
        while high - low > 1e-9 * high and high > negligible:
            middle = (low + high) / 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return low

    def to_json(self) -> dict[str, str]:
        """The computed parameters as texts, so that another version of a library cannot change them."""
        limit = self.initial_filter.budget
        return {
            "mu0_squared": to_text(self.mu0_squared),
            **({} if limit is None else {"filter_budget": json.dumps(limit.to_json())}),
            **({} if self.shared_delta is None else {"delta_split": DELTA_SPLIT}),
        }

    def with_parameters(self, stored: Mapping[str, str]) -> PrivacyGuarantee:
        """The same guarantee with the parameters that :meth:`to_json` wrote.

        Raises
        ------
        KeyError, ValueError, DpnbError
            The parameters cannot be read, or were written under another rule.
        """
        if self.shared_delta is not None and stored.get("delta_split") != DELTA_SPLIT:
            raise LedgerError(
                f"filter={self.filter_name!r} chooses the delta of each answer differently since this ledger was made; "
                "start a new ledger, whose loss adds to what this one has spent"
            )
        mu0_squared = from_text(stored["mu0_squared"])
        if isinstance(self.initial_filter, UnboundedFilter):
            return replace(self, mu0_squared=mu0_squared)
        budget = loss_from_json(json.loads(stored["filter_budget"]))
        start = (
            self.initial_filter.with_budget(budget)
            if isinstance(self.initial_filter, SumFilter)
            else self.initial_filter
        )
        return replace(self, mu0_squared=mu0_squared, initial_filter=start)


def display_bound(bound: Fraction) -> str:
    """An epsilon or delta in at most six digits, rounded up, so that the text claims no more than is enforced."""
    return f"{float(display_up(decimal_up(bound), 6)):.6g}"


def make_guarantee(name: str, budget: Budget | NoBudget, *, individual: bool = False) -> PrivacyGuarantee:
    """The guarantee of `budget`, enforced by the named filter.

    Parameters
    ----------
    name : str
        One of `FILTERS`.
    budget : Budget
        In epsilon and delta; for ``"gdp"`` also ``Budget.gdp``.  A `NoBudget` has the name `NO_FILTER`.
    individual : bool, default False
        Whether each unit has the whole budget for itself (:mod:`dpnb.accounting.individual`); the filter then is the
        public worst case.

    Raises
    ------
    InvalidValueError
        An unknown name, or a filter that cannot enforce such a budget.
    """
    if isinstance(budget, NoBudget):
        return _without_budget(name, budget, individual=individual)
    if individual:
        if budget.pure_epsilon:
            raise InvalidValueError(
                f"budget: accounting='individual' has no pure_epsilon; got {budget!r}; give a budget without it"
            )
        guarantee = make_guarantee(name, budget)
        return replace(guarantee, initial_filter=worst_case_filter(guarantee.initial_filter))
    filter_name: object = name
    if not isinstance(filter_name, str) or filter_name not in FILTERS:
        raise InvalidValueError(
            f"filter: must be one of {', '.join(map(repr, FILTERS))}; got {shown(filter_name)}; leave it out for 'gdp'"
        )
    epsilon, delta = budget.epsilon, budget.delta
    mu0_squared = budget.loss.mu_squared
    reserve = budget.pure_epsilon
    if name == "gdp":
        loss = budget.loss
        if not reserve:
            return PrivacyGuarantee(name, budget, GDPResidueFilter.from_loss(loss), mu0_squared)
        both = PureGDP.of(loss.mu_squared, loss.delta, reserve)
        implied = mu0_squared or convert(both, GDP).mu_squared
        return PrivacyGuarantee(name, budget, GDPReserveFilter.from_loss(both), implied)
    if reserve:
        raise InvalidValueError(
            f"filter: {name!r} does not support pure_epsilon; got {budget!r}; use filter='gdp', or a budget without it"
        )
    if epsilon is None or delta is None:
        raise InvalidValueError(
            f"filter: {name!r} needs a budget in epsilon and delta; got {budget!r}; give Budget(epsilon=, delta=), or "
            "filter='gdp'"
        )
    discovery = budget.discovery_delta
    if discovery and name not in ("zcdp", "approx-dp"):
        raise InvalidValueError(
            f"filter: {name!r} does not support discovery_delta; got {budget!r}; use filter='gdp', 'zcdp' or "
            "'approx-dp', or give the groups' keys"
        )
    if name == "zcdp":
        rho = rho_from_epsilon(epsilon, delta=delta - discovery)
        return PrivacyGuarantee(name, budget, ZCDPFilter(rho, discovery), mu0_squared)
    if name == "rdp":
        order = exact(optimal_order(epsilon, delta=delta))
        return PrivacyGuarantee(
            name, budget, RDPFilter({order: rdp_from_epsilon(epsilon, order=order, delta=delta)}), mu0_squared
        )
    if name == "approx-dp":
        filter_ = ApproxDPFilter(epsilon, conversion_delta=delta - discovery, slack_delta=discovery)
        return PrivacyGuarantee(name, budget, filter_, mu0_squared)
    if name == "rogers":
        return PrivacyGuarantee(name, budget, RogersFilter(epsilon, delta), mu0_squared, shared_delta=delta / 2)
    return PrivacyGuarantee(name, budget, BasicFilter(epsilon, delta), mu0_squared, shared_delta=delta)


def _without_budget(name: str, budget: NoBudget, *, individual: bool) -> PrivacyGuarantee:
    if name != NO_FILTER:
        raise InvalidValueError(
            f"filter: must be {NO_FILTER!r} without a budget; got {shown(name)}; leave it out, or give a budget"
        )
    if individual:
        raise InvalidValueError(
            "accounting: 'individual' gives each unit a budget, and this session has none (budget=None); leave it out, "
            "or give a budget"
        )
    return PrivacyGuarantee(name, budget, UnboundedFilter(), budget.reference.loss.mu_squared)


def _mu_squared_left(state: SumFilter[Any] | RogersFilter) -> Fraction:
    if isinstance(state, GDPFilter | GDPReserveFilter):
        return state.budget.mu_squared - state.spent.mu_squared
    if isinstance(state, RDPFilter):
        left = state.budget - state.spent
        return min(2 * rho / order for order, rho in left.curve)
    return 2 * (state.budget - state.spent).parts[0]
