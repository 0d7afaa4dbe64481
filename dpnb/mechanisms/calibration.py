"""How much noise a declared loss asks for."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Protocol

from dpnb.accounting.exact import shown, sqrt_up
from dpnb.errors import ConversionError, InvalidValueError


class GaussianLoss(Protocol):
    """A loss that a Gaussian release can be calibrated to; `accounting.losses.GDP` is one."""

    @property
    def mu_squared(self) -> Fraction:
        """The square of mu, exactly."""
        ...


def sigma_for(l2_sensitivity_squared: Fraction | int, loss: GaussianLoss) -> float:
    """Give the smallest double sigma at which the Gaussian mechanism costs at most the declared loss.

    In closed form: C^2/sigma^2 <= mu^2 exactly when sigma >= sqrt(C^2/mu^2), and that root is rounded up by exact
    rational comparison, so that the true loss is never above the declared one.

    Parameters
    ----------
    l2_sensitivity_squared : Fraction or int
        C^2, > 0: the square of the largest L2 change that one privacy unit can make to the sums.
    loss : GaussianLoss
        What the release is to cost; ``loss.mu_squared`` > 0.

    Returns
    -------
    float
        In the units of the sums; its literal binary value counts.

    Raises
    ------
    InvalidValueError
        The sensitivity or mu is not positive, or sigma would be beyond the range of doubles.
    ConversionError
        The loss has no mu.

    References
    ----------
    .. [1] Dong, Roth, Su 2022, Gaussian Differential Privacy, arXiv:1905.02383v3, Theorem 2.7.

    Examples
    --------
    >>> from dpnb.accounting import GDP
    >>> from dpnb.mechanisms import sigma_for
    >>> sigma_for(4, GDP(0.5))
    4.0
    """
    if isinstance(l2_sensitivity_squared, bool) or not isinstance(l2_sensitivity_squared, int | Fraction):
        raise InvalidValueError(
            f"l2_sensitivity_squared: must be an exact number (int or Fraction), "
            f"given {l2_sensitivity_squared!r}. Compute it in integers on the plan's grid."
        )
    if l2_sensitivity_squared <= 0:
        raise InvalidValueError(
            f"l2_sensitivity_squared: must be > 0, given {l2_sensitivity_squared}. "
            f"A question that no privacy unit can change needs no noise: answer it from the schema."
        )
    mu_squared = getattr(loss, "mu_squared", None)
    if not isinstance(mu_squared, int | Fraction):
        raise ConversionError(
            f"loss: Gaussian noise is calibrated to a loss in mu, given {type(loss).__name__}. "
            f"Convert it to accounting.losses.GDP first."
        )
    if mu_squared <= 0:
        raise InvalidValueError(
            f"loss: mu must be > 0, given mu^2 = {shown(mu_squared)}: no finite noise costs nothing. "
            "Ask for a larger mu."
        )
    sigma = sqrt_up(Fraction(l2_sensitivity_squared) / mu_squared)
    if not math.isfinite(sigma):
        raise InvalidValueError(
            f"loss: the noise scale C/mu must stay below the largest double, given C^2 = {l2_sensitivity_squared} "
            f"and mu^2 = {shown(mu_squared)}. Ask for a larger mu or a coarser grid."
        )
    return sigma
