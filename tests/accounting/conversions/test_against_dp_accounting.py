"""Agreement with Google's dp-accounting, which computes in doubles and does not round against itself."""

from __future__ import annotations

import math

import pytest

from dpnb.accounting.conversions import (
    delta_from_rdp,
    epsilon_from_mu,
    epsilon_from_rdp,
    epsilon_from_rho,
    mu_from_epsilon,
    rdp_from_mu,
    rdp_from_pure,
)
from dpnb.accounting.convert import convert
from dpnb.accounting.filters import RDPFilter
from dpnb.accounting.losses import RDP, ApproxDP

pytestmark = pytest.mark.slow  # it is installed for the thorough level alone, so each test imports it

ORDERS = [1.25, 2.0, 7.5, 64.0]
RDPS = [1e-4, 0.1, 2.0]
DELTAS = [1e-3, 1e-6, 1e-12]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("rdp", RDPS)
def test_renyi_conversions_agree(order: float, rdp: float) -> None:
    from dp_accounting.rdp.rdp_privacy_accountant import compute_delta, compute_epsilon

    for delta in DELTAS:
        theirs, _ = compute_epsilon([order], [rdp], delta)
        ours = epsilon_from_rdp(order, rdp, delta=delta)
        assert math.isclose(ours, theirs, rel_tol=1e-12, abs_tol=1e-12)
    for epsilon in (0.1, 1.0, 5.0):
        theirs, _ = compute_delta([order], [rdp], epsilon)
        ours = delta_from_rdp(order, rdp, epsilon=epsilon)
        # Theirs may also take the total variation that follows from the divergence (Bretagnolle and Huber).
        assert ours >= theirs * (1 - 1e-12)
        assert math.isclose(ours, theirs, rel_tol=1e-11) or theirs <= math.sqrt(-math.expm1(-rdp)) * (1 + 1e-12)


@pytest.mark.parametrize("rdp", [0.0, 1e-30, 1e-14, 1e-12, 1e-9])
def test_tiny_divergences_agree_as_losses(rdp: float) -> None:
    """There the total variation is below delta: theirs takes it in at once, ours where a loss is converted."""
    from dp_accounting.rdp.rdp_privacy_accountant import compute_epsilon

    for delta in DELTAS:
        theirs, _ = compute_epsilon([2.0], [rdp], delta)
        ours = convert(RDP({2: rdp}), ApproxDP, delta=delta).epsilon
        assert math.isclose(ours, theirs, rel_tol=1e-12)
        assert RDPFilter({2: rdp}).guaranteed_epsilon(delta) == float(ours)


@pytest.mark.parametrize("mu", [0.01, 0.3, 1.0, 4.0])
@pytest.mark.parametrize("delta", DELTAS)
def test_gaussian_conversions_agree(mu: float, delta: float) -> None:
    from dp_accounting.gaussian_mechanism import get_epsilon_gaussian, get_sigma_gaussian

    theirs = get_epsilon_gaussian(1 / mu, delta)
    ours = epsilon_from_mu(mu, delta=delta)
    assert math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-9)
    if ours > 1e-3:
        assert math.isclose(1 / get_sigma_gaussian(ours, delta), mu_from_epsilon(ours, delta=delta), rel_tol=1e-9)


def test_many_gaussian_releases_agree_with_their_accountant() -> None:
    from dp_accounting import GaussianDpEvent, SelfComposedDpEvent
    from dp_accounting.rdp import RdpAccountant

    mu, count, delta = 0.1, 100, 1e-6
    orders = [1 + x / 10 for x in range(1, 2000)]
    accountant = RdpAccountant(orders).compose(SelfComposedDpEvent(GaussianDpEvent(1 / mu), count))
    theirs = accountant.get_epsilon(delta)
    for order, rdp in zip(accountant.orders, accountant._rdp, strict=True):
        assert math.isclose(rdp, count * rdp_from_mu(mu, order=float(order)), rel_tol=1e-12)
    # Ours is the best of all orders, theirs of a fine grid.
    ours = epsilon_from_rho(count * mu**2 / 2, delta=delta)
    assert ours <= theirs * (1 + 1e-12)
    assert math.isclose(ours, theirs, rel_tol=1e-4)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_randomised_response_agrees_with_their_accountant(epsilon: float) -> None:
    from dp_accounting import NeighboringRelation, RandomizedResponseDpEvent
    from dp_accounting.rdp import RdpAccountant

    # Their `noise_parameter` is the probability of a uniform answer: of two, the true one has 1 - noise/2.
    noise = 2 / (1 + math.exp(epsilon))
    accountant = RdpAccountant(ORDERS, NeighboringRelation.REPLACE_ONE).compose(
        RandomizedResponseDpEvent(noise_parameter=noise, num_buckets=2)
    )
    for order, theirs in zip(accountant.orders, accountant._rdp, strict=True):
        assert math.isclose(rdp_from_pure(epsilon, order=float(order)), theirs, rel_tol=1e-9)
