"""What a loss is in the components that GDP budgets have."""

from __future__ import annotations

from fractions import Fraction
from typing import TypeGuard

from dpnb.accounting.losses.epsilon import BoundedRange, EpsilonLoss, Repeated
from dpnb.accounting.losses.gaussian import GDP, GaussianLoss, PureGDP
from dpnb.accounting.losses.loss import Loss
from dpnb.errors import ConversionError


def is_gaussian(loss: Loss | None) -> TypeGuard[GDP]:
    """Whether a loss is that of Gaussian noise."""
    return isinstance(loss, GDP)


def is_range(loss: Loss) -> bool:
    """Whether a loss is in bounded range, of one mechanism or of several."""
    return isinstance(loss, BoundedRange) or (isinstance(loss, Repeated) and loss.of_kind is BoundedRange)


def as_amount(loss: Loss) -> PureGDP:
    """A loss in mu squared, delta and epsilon, without a conversion.

    Raises
    ------
    ConversionError
        It has other parts.
    """
    if isinstance(loss, PureGDP):
        return loss
    if isinstance(loss, GaussianLoss):
        return PureGDP.of(loss.mu_squared, loss.delta, Fraction(0))
    if isinstance(loss, EpsilonLoss):
        return PureGDP.of(Fraction(0), loss.delta, loss.epsilon)
    raise ConversionError(f"loss: must have a mu or an epsilon; got {loss!r}; convert it beforehand")
