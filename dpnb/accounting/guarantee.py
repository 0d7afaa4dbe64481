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
from typing import Literal

from dpnb.accounting.budget import Budget, NoBudget
from dpnb.accounting.convert import convert
from dpnb.accounting.exact import decimal_sqrt_down, decimal_up, display_up, exact, from_text, shown, to_text
from dpnb.accounting.filters import FILTERS, Filter, UnboundedFilter
from dpnb.accounting.individual import worst_case_filter
from dpnb.accounting.losses import GDP, ZCDP, Loss, PureDP, PureGDP, loss_from_json
from dpnb.accounting.losses.gaussian import is_gaussian
from dpnb.errors import InvalidValueError, LedgerError, RequestError

FilterName = Literal["gdp", "zcdp", "rdp", "approx-dp", "rogers", "basic"]
DELTA_SPLIT = "equal_releases"
"""How a filter that counts epsilons chooses each release's delta; a ledger made under another rule is refused."""
# A remainder below this share of mu0 squared comes from rounding and counts as 0.
ROUNDING_TOLERANCE = Fraction(1, 10**10)

NO_FILTER = UnboundedFilter.name
"""The name of the filter of a session without a budget, in the ledger; ``filter=`` does not accept it."""


@dataclass(frozen=True)
class PrivacyGuarantee:
    """How a filter enforces a budget; `initial_filter` is the filter before the first release.

    `mu0_squared` is mu0 squared of the GDP budget for the same guarantee; of the GDP that it implies, if it is in pure
    DP; without a budget, of the reference.

    `horizon` is V, the sum of mu^2 and of 2 epsilon tanh(epsilon/2) for mechanisms in pure DP, when the whole budget is
    spent.  Under a filter that adds mu squared, it is the budget.  The others admit at most mu0 squared, since Gaussian
    releases with a larger sum would exceed the guarantee.  A pure-DP mechanism adds no more to V than it is charged:
    Kullback-Leibler divergences add, and grow with the trade-off function's distance from the diagonal.  For the same
    reason a reserve E adds at most 2 E tanh(E/2).  A bounded range e adds e^2/4, for a large e a little more than its
    charge: a time-uniform odometer holds there too, and is only tuned for a smaller V.
    """

    filter_name: str
    budget: Budget | NoBudget
    initial_filter: Filter
    mu0_squared: Fraction
    horizon: Fraction

    @property
    def has_budget(self) -> bool:
        """Whether a budget limits the privacy loss."""
        return self.budget.is_limited

    @property
    def shared_delta(self) -> Fraction | None:
        """The delta that is divided among the answers, for a filter that counts epsilons; None for the others."""
        return self.initial_filter.shared_delta

    @property
    def refining(self) -> str | None:
        """In words, what refining costs beyond one release at the finer level; None if nothing."""
        if self.shared_delta is None:
            return None
        return "costs more than one release at the finer level: this filter adds the epsilon of each answer"

    @property
    def words(self) -> str:
        """The guarantee in words, for example ``(1, 1e-06)-DP, enforced as 0.2368-GDP``."""
        enforced, limit = self.filter_guarantee, self.budget.limit
        if limit is None:
            return enforced
        if limit.epsilon is None or limit.delta is None:
            discovery = limit.discovery_delta
            return f"{enforced} but for a delta of {display_bound(discovery)}" if discovery else enforced
        return f"({display_bound(limit.epsilon)}, {display_bound(limit.delta)})-DP, enforced as {enforced}"

    @property
    def filter_guarantee(self) -> str:
        """The guarantee that the filter enforces, for example ``0.2368-GDP``."""
        return self.initial_filter.guarantee

    def to_filter_loss(self, loss: Loss) -> Loss:
        """The loss with which the filter counts a release: see :meth:`Filter.loss_of_release`."""
        return self.initial_filter.loss_of_release(loss)

    def recorded_loss(self, loss: Loss, charged: PureGDP | None) -> Loss:
        """The loss with which the filter counted a row of the ledger: see :meth:`Filter.recorded_loss`."""
        return self.initial_filter.recorded_loss(loss, charged)

    def charged_gdp(self, loss: Loss, charged: PureGDP | None) -> GDP:
        """What the filter charged for a row of the ledger, as the loss of Gaussian noise.

        The arguments are those of `recorded_loss`. Under a filter that adds mu squared or rho, the squares of these mu
        add up to the spent budget: a rho is given as the mu of Gaussian noise with the same charge, which need not
        bound the loss. Under a filter that adds epsilons, the mu that the loss implies.
        """
        if is_gaussian(loss):
            return loss
        if charged is not None:
            return GDP.of(charged.mu_squared, charged.delta)
        counted = self.initial_filter.to_filter_loss(self.recorded_loss(loss, None))
        squared = counted.noise_mu_squared
        return convert(loss, GDP) if squared is None else GDP.of(squared, counted.delta)

    def remaining(self, state: Filter, share: Fraction = Fraction(1)) -> GDP:
        """The largest Gaussian release that takes at most a share of the remaining budget, in the filter's scale.

        The share is in (0, 1]. For a filter that adds mu squared, the whole remainder is exact and a part of it is
        rounded down to a mu of few digits; for one that counts epsilons, mu is rounded down. A remainder left by such
        rounding counts as 0. Raises `RequestError` without a budget.
        """
        if not self.budget.is_limited:
            raise RequestError(
                "share: this session has no budget, so there is no share of what remains; give mu=, rho=, epsilon= or "
                "within= instead"
            )
        squared = state.mu_squared_left
        if squared is None:
            squared = exact(self._searched(state, share)) ** 2
        else:
            squared = squared if share == 1 else exact(decimal_sqrt_down(share * squared)) ** 2
        return GDP.from_mu_squared(squared if squared >= ROUNDING_TOLERANCE * self.mu0_squared else 0)

    def _searched(self, state: Filter, share: Fraction) -> float:
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
            "horizon": to_text(self.horizon),
            **({} if limit is None else {"filter_budget": json.dumps(limit.to_json())}),
            **({} if self.shared_delta is None else {"delta_split": DELTA_SPLIT}),
        }

    def with_parameters(self, stored: Mapping[str, str]) -> PrivacyGuarantee:
        """The same guarantee with the parameters that :meth:`to_json` wrote.

        A `KeyError`, `ValueError` or `DpnbError` means that they cannot be read, or were written under another rule.
        """
        if self.shared_delta is not None and stored.get("delta_split") != DELTA_SPLIT:
            raise LedgerError(
                f"filter={self.filter_name!r} chooses the delta of each answer differently since this ledger was made; "
                "start a new ledger, whose loss adds to what this one has spent"
            )
        mu0_squared = from_text(stored["mu0_squared"])
        known = replace(self, mu0_squared=mu0_squared, horizon=from_text(stored.get("horizon", stored["mu0_squared"])))
        if not self.budget.is_limited:
            return known
        budget = loss_from_json(json.loads(stored["filter_budget"]))
        return replace(known, initial_filter=self.initial_filter.with_budget(budget))


def display_bound(bound: Fraction) -> str:
    """An epsilon or delta in at most six digits, rounded up, so that the text claims no more than is enforced."""
    return f"{float(display_up(decimal_up(bound), 6)):.6g}"


def make_guarantee(name: str, budget: Budget | NoBudget, *, individual: bool = False) -> PrivacyGuarantee:
    """The guarantee of `budget`, enforced by the filter of this name; refused if it cannot enforce such a budget.

    A `NoBudget` has the name `NO_FILTER`.  If `individual`, each unit has the whole budget for itself
    (:mod:`dpnb.accounting.individual`), and the filter is the public worst case.
    """
    limit = budget.limit
    if limit is None and name != NO_FILTER:
        raise InvalidValueError(
            f"filter: must be {NO_FILTER!r} without a budget; got {shown(name)}; leave it out, or give a budget"
        )
    if limit is None:
        if individual:
            raise InvalidValueError(
                "accounting: 'individual' gives each unit a budget, and this session has none (budget=None); leave it "
                "out, or give a budget"
            )
        reference = budget.reference.loss.mu_squared
        return PrivacyGuarantee(name, budget, UnboundedFilter(), reference, reference)
    if individual and limit.pure_epsilon:
        raise InvalidValueError(
            f"budget: accounting='individual' has no pure_epsilon; got {limit!r}; give a budget without it"
        )
    filter_name: object = name
    if not isinstance(filter_name, str) or filter_name not in FILTERS:
        raise InvalidValueError(
            f"filter: must be one of {', '.join(map(repr, FILTERS))}; got {shown(filter_name)}; leave it out for 'gdp'"
        )
    start: Filter = FILTERS[filter_name].from_budget(limit)
    mu0_squared = limit.loss.mu_squared or convert(PureDP(limit.pure_epsilon), GDP).mu_squared
    filter_ = worst_case_filter(start) if individual else start
    fresh = PrivacyGuarantee(name, budget, filter_, mu0_squared, mu0_squared)
    if fresh.shared_delta is not None:
        return fresh
    reserve = 2 * convert(PureDP(limit.pure_epsilon), ZCDP).rho
    return replace(fresh, horizon=fresh.remaining(filter_).mu_squared + reserve)
