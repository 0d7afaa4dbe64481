"""The noise scale for a declared loss."""

from __future__ import annotations

import math
from fractions import Fraction

from dpnb.accounting.exact import shown, sqrt_up
from dpnb.accounting.losses import GaussianLoss
from dpnb.errors import ConversionError, InvalidValueError


def sigma_for(l2_sensitivity_squared: Fraction | int, loss: GaussianLoss) -> float:
    """The smallest double sigma for which the loss of the Gaussian mechanism is at most the declared loss.

    `l2_sensitivity_squared` is C^2, the square of the largest L2 change that one privacy unit can make to the sums, and
    sigma is in their units; its literal binary value is used.  By Dong, Roth, Su 2022 (arXiv:1905.02383v3), Theorem
    2.7, C^2/sigma^2 <= mu^2 suffices; that holds exactly when sigma >= sqrt(C^2/mu^2), and the root is rounded up by
    exact rational comparison, so that the true loss is never above the declared one.

    >>> from dpnb.accounting import GDP
    >>> sigma_for(4, GDP(0.5))
    4.0
    """
    if isinstance(l2_sensitivity_squared, bool) or not isinstance(l2_sensitivity_squared, int | Fraction):
        raise InvalidValueError(
            f"l2_sensitivity_squared: must be an exact number (int or Fraction), "
            f"got {l2_sensitivity_squared!r}; compute it in integers on the plan's grid"
        )
    if l2_sensitivity_squared <= 0:
        raise InvalidValueError(
            f"l2_sensitivity_squared: must be > 0; got {l2_sensitivity_squared}; "
            f"a query that no privacy unit can change needs no noise: answer it from the schema"
        )
    mu_squared = getattr(loss, "mu_squared", None)
    if not isinstance(mu_squared, int | Fraction):
        raise ConversionError(
            f"loss: Gaussian noise is calibrated to a loss in mu; got {type(loss).__name__}; "
            f"convert it to accounting.losses.GDP first"
        )
    if mu_squared <= 0:
        raise InvalidValueError(
            f"loss: mu must be > 0; got mu^2 = {shown(mu_squared)}: a loss of 0 needs infinite noise; "
            "request a larger mu"
        )
    sigma = sqrt_up(Fraction(l2_sensitivity_squared) / mu_squared)
    if not math.isfinite(sigma):
        raise InvalidValueError(
            f"loss: the noise scale C/mu must stay below the largest double; got C^2 = {l2_sensitivity_squared} "
            f"and mu^2 = {shown(mu_squared)}; request a larger mu or a coarser grid"
        )
    return sigma
