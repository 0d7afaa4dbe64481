"""The reference figures and decisions of filters, by our names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

from dpnb.accounting.conversions import rho_from_epsilon, rho_from_pure
from dpnb.accounting.exact import decimal_sqrt_down
from dpnb.accounting.filters import ApproxDPFilter, BasicFilter, GDPFilter, RDPFilter, RogersFilter, ZCDPFilter
from dpnb.accounting.losses import GDP, RDP, ZCDP, ApproxDP, Loss
from dpnb.errors import BudgetExceeded
from dpnb.mechanisms.gaussian import sigma_for

ORDER = 8


def stepped(state: Any, losses: Iterable[Loss]) -> Any:
    """The filter after all losses, or None once it has refused one: it stops there."""
    for loss in losses:
        try:
            state = state.step(loss)
        except BudgetExceeded:
            return None
    return state


def _admits(state: Any, history: Iterable[Loss], following: Loss) -> bool:
    after = stepped(state, history)
    return after is not None and bool(after.admits(following))


def _left(state: Any, history: Iterable[Loss]) -> Any:
    after = stepped(state, history)
    return None if after is None else after.affordable()


def _pairs(history: list[list[Fraction]]) -> list[Loss]:
    return [ApproxDP(*pair) for pair in history]


def _mu_left(budget: Fraction, history: list[Fraction]) -> float:
    left = _left(GDPFilter(budget), map(GDP, history))
    return decimal_sqrt_down(left.mu_squared) if left else 0.0


def _approx_dp_left(state: ApproxDPFilter, history: list[list[Fraction]]) -> list[Any]:
    after = stepped(state, _pairs(history))
    if after is None:
        return [0, 0, state.budget.delta - sum(pair[1] for pair in history)]
    left = after.budget - after.spent
    return [2 * left.rho, after.affordable().epsilon, after.affordable().delta]


def _rogers(eps_g: Fraction, delta_g: Fraction, pure_variant: bool) -> RogersFilter:
    return RogersFilter(eps_g, delta_g, pure=pure_variant)


def _rogers_left(
    hist: list[list[Fraction]], eps_g: Fraction, delta_g: Fraction, pure_variant: bool = False
) -> list[Any]:
    # Their pure variant keeps half of delta for deltas; a pure filter admits none, so the other form is asked for it.
    left = _left(_rogers(eps_g, delta_g, pure_variant), _pairs(hist))
    return [left.epsilon, _left(_rogers(eps_g, delta_g, False), _pairs(hist)).delta]


def _pure_losses(eps_hist: list[Fraction], tight: bool) -> list[Loss]:
    return [ZCDP(rho_from_pure(epsilon, "tight" if tight else "simple")) for epsilon in eps_hist]


def _pure_filter(eps_g: Fraction, delta_g: Fraction, conversion: str) -> ZCDPFilter:
    return ZCDPFilter(rho_from_epsilon(eps_g, delta=delta_g, method="simple" if conversion == "simple" else "tight"))


def _pure_left(eps_hist: list[Fraction], eps_g: Fraction, delta_g: Fraction, conversion: str, tight: bool) -> list[Any]:
    left = _left(_pure_filter(eps_g, delta_g, conversion), _pure_losses(eps_hist, tight))
    if left is None:
        return [0, 0]
    low, high = 0.0, 100.0
    while tight and low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if rho_from_pure(middle) <= left.rho else (low, middle)
    return [left.rho, low if tight else decimal_sqrt_down(2 * left.rho)]


def _curve(rhos: dict[str, Fraction]) -> RDP:
    return RDP({Fraction(order): rho for order, rho in rhos.items()})


def _several(budgets: dict[str, Fraction]) -> RDPFilter:
    return RDPFilter({Fraction(order): rho for order, rho in budgets.items()})


def _several_left(hist: list[dict[str, Fraction]], budgets: dict[str, Fraction]) -> dict[str, Any]:
    # Theirs goes on for an order that is over its budget; ours stops there, so each order is asked separately.
    return {order: _one_left([rhos[order] for rhos in hist], budgets[order]) for order in budgets}


def _one_left(hist: list[Fraction], budget: Fraction) -> Any:
    left = _left(RDPFilter({ORDER: budget}), [RDP({ORDER: rho}) for rho in hist])
    return left.curve[0][1] if left is not None else 0


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "basic_filter": lambda hist, nxt, eps_g, delta_g: _admits(
        BasicFilter(eps_g, delta_g), _pairs(hist), ApproxDP(*nxt)
    ),
    "basic_headroom": lambda hist, eps_g, delta_g: _left(BasicFilter(eps_g, delta_g), _pairs(hist)).parts,
    "rogers_K": lambda eps_list, eps_g, delta_g: (
        stepped(RogersFilter(eps_g, delta_g), [ApproxDP(epsilon, 0) for epsilon in eps_list]).k
    ),
    "rogers_filter": lambda hist, nxt, eps_g, delta_g, pure_variant: _admits(
        _rogers(eps_g, delta_g, pure_variant), _pairs(hist), ApproxDP(*nxt)
    ),
    "rogers_headroom": _rogers_left,
    "whitehouse_ystar": lambda eps, delta1: 2 * ApproxDPFilter(eps, conversion_delta=delta1).budget.rho,
    "whitehouse_filter": lambda hist, nxt, eps, delta1, delta2: _admits(
        ApproxDPFilter(eps, conversion_delta=delta1, slack_delta=delta2), _pairs(hist), ApproxDP(*nxt)
    ),
    "whitehouse_headroom": lambda hist, eps, delta1, delta2: _approx_dp_left(
        ApproxDPFilter(eps, conversion_delta=delta1, slack_delta=delta2), hist
    ),
    "haney_filter_37": lambda hist, nxt, eps, delta, delta1: _admits(
        ApproxDPFilter(eps, conversion_delta=delta1, slack_delta=delta - delta1), _pairs(hist), ApproxDP(*nxt)
    ),
    "haney_headroom_37": lambda hist, eps, delta, delta1: _approx_dp_left(
        ApproxDPFilter(eps, conversion_delta=delta1, slack_delta=delta - delta1), hist
    ),
    "approx_zcdp_filter": lambda hist, nxt, rho, delta: _admits(
        ZCDPFilter(rho, delta), [ZCDP(*pair) for pair in hist], ZCDP(*nxt)
    ),
    "approx_zcdp_headroom": lambda hist, rho, delta: (
        _left(ZCDPFilter(rho, delta), [ZCDP(*pair) for pair in hist]).parts
    ),
    "zcdp_filter": lambda hist, nxt, kappa: _admits(ZCDPFilter(kappa), map(ZCDP, hist), ZCDP(nxt)),
    "haney_zcdp_filter": lambda hist, nxt, rho: _admits(ZCDPFilter(rho), map(ZCDP, hist), ZCDP(nxt)),
    "zcdp_headroom": lambda hist, kappa: _left(ZCDPFilter(kappa), map(ZCDP, hist)).rho,
    "rdp_filter": lambda hist, nxt, B: _admits(
        RDPFilter({ORDER: B}), [RDP({ORDER: rho}) for rho in hist], RDP({ORDER: nxt})
    ),
    "haney_rdp_filter": lambda hist, nxt, eps: _admits(
        RDPFilter({ORDER: eps}), [RDP({ORDER: rho}) for rho in hist], RDP({ORDER: nxt})
    ),
    "rdp_filter_multi": lambda hist, nxt, budgets: _admits(_several(budgets), map(_curve, hist), _curve(nxt)),
    "rdp_headroom_multi": _several_left,
    "fz_dp_filter": lambda eps_hist, eps_next, eps_g, delta_g, conversion, tight: _admits(
        _pure_filter(eps_g, delta_g, conversion), _pure_losses(eps_hist, tight), *_pure_losses([eps_next], tight)
    ),
    "fz_dp_headroom": _pure_left,
    "gdp_filter": lambda mu_hist, mu_next, mu0: _admits(GDPFilter(mu0), map(GDP, mu_hist), GDP(mu_next)),
    "gdp_headroom": lambda mu_hist, mu0: _mu_left(mu0, mu_hist),
    "refine_mu": lambda mu_a, mu_b: _mu_left(mu_b, [mu_a]),
    "refine_sigma": lambda sensitivity, mu_a, mu_b: sigma_for(
        sensitivity**2, GDPFilter(mu_b).step(GDP(mu_a)).affordable()
    ),
}
