"""Conversions between privacy parameters: exact curves and the tightest known bounds, rounded in the safe direction.

Every argument is an exact number (a float means its shortest decimal).  Every result is a double that is safe in its
decimal meaning: an implied epsilon, delta, rho or rdp is rounded up, a budget that is solved for is rounded down.

======================  =================================================================================
Function                Theorem
======================  =================================================================================
delta_from_mu           Dong, Roth and Su 2022, Corollary 2.13; an equality
epsilon_from_mu         the same, solved for epsilon; epsilon_of_gdp takes mu squared
mu_from_epsilon         the same, solved for mu
rho_from_mu             Bun and Steinke 2016, Proposition 1.6: mu^2/2
rdp_from_mu             Mironov 2017, Proposition 7: order mu^2/2
epsilon_from_rho        Canonne, Kamath and Steinke 2020, Corollary 13; simple: Bun and Steinke 2016, Prop. 1.3
delta_from_rho          the same, solved for delta
rho_from_epsilon        the same, solved for rho; simple: Feldman and Zrnic 2021, Theorem 4.9
optimal_order           the order at which rho_from_epsilon is attained
epsilon_from_rdp        Canonne, Kamath and Steinke 2020, Proposition 12; simple: Mironov 2017, Proposition 3
epsilon_from_curve      the same for several orders at once; Bretagnolle and Huber 1979 where rdp is tiny
delta_from_rdp          the same, solved for delta
rdp_from_epsilon        the same, solved for rdp
rho_from_pure           epsilon tanh(epsilon/2), best possible; simple: Bun and Steinke 2016, Proposition 1.4
rdp_from_pure           Mironov 2017, Proposition 5, with Kairouz, Oh and Viswanath 2015, Theorem 3.1; best possible
mu_from_pure            Dong, Roth and Su 2022, Proposition 2.5 and Definition 2.6; best possible
epsilon_from_pure       Kairouz, Oh and Viswanath 2015, Theorem 3.1; best possible
residue_charge          what a pure-DP mechanism is charged of a GDP budget (Regehr et al. 2026); proved in the module
mu_beside_reserve       Dong, Roth and Su 2022, Corollary 2.13, for a product with randomised response
epsilon_of_pure_gdp     the same, solved for epsilon
rho_from_range          own, a Kullback-Leibler divergence of Dong, Durfee and Rogers 2020; best possible
rdp_from_range          own; best possible
pointwise_delta         Whitehouse et al. 2023, Lemma 2, with the right constant; best possible
======================  =================================================================================

There is no function from rho or rdp to mu: no zCDP or RDP bound implies mu-GDP for any mu.
"""

from dpnb.accounting.conversions.concentrated import (
    delta_from_rho,
    epsilon_from_rho,
    optimal_order,
    rho_from_epsilon,
)
from dpnb.accounting.conversions.gaussian import (
    delta_from_mu,
    epsilon_from_mu,
    epsilon_of_gdp,
    mu_from_epsilon,
    rho_from_mu,
)
from dpnb.accounting.conversions.pure import (
    epsilon_from_pure,
    mu_from_pure,
    pointwise_delta,
    rdp_from_pure,
    rho_from_pure,
)
from dpnb.accounting.conversions.renyi import (
    delta_from_rdp,
    epsilon_from_curve,
    epsilon_from_rdp,
    rdp_from_epsilon,
    rdp_from_mu,
    rdp_from_range,
    rho_from_range,
)
from dpnb.accounting.conversions.reserve import epsilon_of_pure_gdp, mu_beside_reserve
from dpnb.accounting.conversions.residue import residue_charge

__all__ = [
    "delta_from_mu",
    "delta_from_rdp",
    "delta_from_rho",
    "epsilon_from_curve",
    "epsilon_from_mu",
    "epsilon_from_pure",
    "epsilon_from_rdp",
    "epsilon_from_rho",
    "epsilon_of_gdp",
    "epsilon_of_pure_gdp",
    "mu_beside_reserve",
    "mu_from_epsilon",
    "mu_from_pure",
    "optimal_order",
    "pointwise_delta",
    "rdp_from_epsilon",
    "rdp_from_mu",
    "rdp_from_pure",
    "rdp_from_range",
    "residue_charge",
    "rho_from_epsilon",
    "rho_from_mu",
    "rho_from_pure",
    "rho_from_range",
]
