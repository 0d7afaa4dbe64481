"""The amount that a loss adds to the sums of odometers."""

from __future__ import annotations

from fractions import Fraction

from dpnb.accounting.convert import convert
from dpnb.accounting.exact import shown
from dpnb.accounting.losses import GDP, RDP, ZCDP, EpsilonLoss, Loss, PureGDP
from dpnb.errors import ConversionError

__all__ = ["intrinsic_time", "renyi_loss"]

_ZERO = Fraction(0)


def intrinsic_time(loss: Loss) -> tuple[Fraction, Fraction]:
    """The amount that a loss adds to V, and its delta.

    mu^2 for GDP, 2 rho for zCDP and, as in Whitehouse et al. 2023, Theorem 3, epsilon^2 for a DP loss
    (for PureGDP both);
    ``convert(loss, ZCDP)`` beforehand gives 2 epsilon tanh(epsilon/2) instead, which is smaller.

    Raises
    ------
    ConversionError
        The loss is RDP of some orders, or not a known loss.
    """
    if isinstance(loss, GDP):
        return loss.mu_squared, loss.delta
    if isinstance(loss, ZCDP):
        return 2 * loss.rho, loss.delta
    if isinstance(loss, EpsilonLoss):
        return loss.epsilon * loss.epsilon, loss.delta
    if isinstance(loss, PureGDP):
        return loss.epsilon * loss.epsilon + loss.mu_squared, loss.delta
    if isinstance(loss, RDP) and not loss:
        return _ZERO, _ZERO
    raise ConversionError(
        f"loss: V counts GDP, ZCDP, PureDP, ApproxDP and PointwiseDP, got {type(loss).__name__} "
        f"{shown(loss)}; use RenyiOdometer or RDPAccumulator, which count one order"
    )


def renyi_loss(loss: Loss, order: Fraction) -> Fraction:
    """The Renyi loss at one order.

    Raises
    ------
    ConversionError
        No theorem bounds the loss at this order.
    """
    if isinstance(loss, RDP) and loss.orders == (order,):
        return loss.parts[0]
    return convert(loss, RDP, orders=[order]).parts[0]
