"""The reference figures of conversions, by our names."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from dpnb.accounting.conversions import (
    delta_from_mu,
    delta_from_rdp,
    delta_from_rho,
    epsilon_from_mu,
    epsilon_from_rdp,
    epsilon_from_rho,
    mu_from_epsilon,
    mu_from_pure,
    pointwise_delta,
    rdp_from_epsilon,
    rdp_from_mu,
    rho_from_epsilon,
    rho_from_mu,
    rho_from_pure,
)
from dpnb.accounting.convert import good_delta, group_privacy
from dpnb.accounting.losses import GDP, ZCDP


def _approximate(rho: Fraction, delta_bad: Fraction, delta_conv: Fraction) -> list[Any]:
    """Given the total delta, the good part has what it had before."""
    total = delta_bad + (1 - delta_bad) * delta_conv
    return [epsilon_from_rho(rho, delta=good_delta(total, delta_bad), method="simple"), total]


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "gdp_delta": lambda eps, mu: delta_from_mu(mu, epsilon=eps),
    "gdp_eps": lambda mu, delta: epsilon_from_mu(mu, delta=delta),
    "gdp_mu": lambda eps, delta: mu_from_epsilon(eps, delta=delta),
    "gdp_to_zcdp": rho_from_mu,
    "gaussian_rdp": lambda alpha, mu: rdp_from_mu(mu, order=alpha),
    "zcdp_eps_simple": lambda rho, delta: epsilon_from_rho(rho, delta=delta, method="simple"),
    "zcdp_eps_cks": lambda rho, delta: epsilon_from_rho(rho, delta=delta),
    "zcdp_rho_simple": lambda eps, delta: rho_from_epsilon(eps, delta=delta, method="simple"),
    "zcdp_rho_cks": lambda eps, delta: rho_from_epsilon(eps, delta=delta),
    "zcdp_delta_simple": lambda rho, eps: delta_from_rho(rho, epsilon=eps, method="simple"),
    "zcdp_delta_cks": lambda rho, eps: delta_from_rho(rho, epsilon=eps),
    "rdp_eps_mironov": lambda alpha, r, delta: epsilon_from_rdp(alpha, r, delta=delta, method="simple"),
    "rdp_eps_cks": lambda alpha, r, delta: epsilon_from_rdp(alpha, r, delta=delta),
    "rdp_delta_mironov": lambda alpha, r, eps: delta_from_rdp(alpha, r, epsilon=eps, method="simple"),
    "rdp_delta_cks": lambda alpha, r, eps: delta_from_rdp(alpha, r, epsilon=eps),
    "rdp_budget_for_dp": lambda alpha, eps, delta, improved: rdp_from_epsilon(
        eps, order=alpha, delta=delta, method="tight" if improved else "simple"
    ),
    "pure_to_zcdp": lambda eps: rho_from_pure(eps, "simple"),
    "pure_to_zcdp_tight": lambda eps: rho_from_pure(eps),
    "pure_to_gdp": lambda eps: mu_from_pure(eps),
    "approx_zcdp_to_dp": _approximate,
    "dp_to_pdp_delta": lambda eps, delta: pointwise_delta(eps, delta=delta),
    "group_zcdp": lambda rho, k: group_privacy(ZCDP(rho), int(k)).rho,
    "group_gdp": lambda mu, k: group_privacy(GDP(mu), int(k)).mu,
    "fz_dp_Bstar": lambda eps_g, delta_g, conversion: rho_from_epsilon(
        eps_g, delta=delta_g, method="simple" if conversion == "simple" else "tight"
    ),
}
