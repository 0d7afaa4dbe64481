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

    Raises `ConversionError` for RDP of some orders, which has no such amount.
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
    """The Renyi loss at one order; raises `ConversionError` if no theorem bounds it, or the loss has a delta."""
    same = isinstance(loss, RDP) and loss.orders == (order,)
    counted = loss if same else convert(loss, RDP, orders=[order])
    if counted.delta:
        raise ConversionError(
            f"loss: this odometer counts Renyi divergences, which a loss with a delta does not have, got {loss!r}; use "
            "RDPFilter with a delta, or a time-uniform odometer with slack_delta"
        )
    return counted.parts[0]
