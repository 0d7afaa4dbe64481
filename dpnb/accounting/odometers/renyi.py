"""One Renyi order, fixed beforehand."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpnb.accounting.convert import convert
from dpnb.accounting.exact import Number, binary_down, binary_up, exact, shown
from dpnb.accounting.losses import RDP, Loss
from dpnb.accounting.odometers.time_uniform import MARGIN, TimeUniform, failure_probability, log_inverse
from dpnb.errors import InvalidValueError

__all__ = ["RenyiOdometer", "checked_order", "renyi_loss"]


@dataclass(frozen=True, init=False, repr=False)
class RenyiOdometer(TimeUniform):
    """With confidence 1 - delta, the realised loss never exceeds sum rho(order) + log(1/delta)/(order - 1).

    Mironov 2017, Proposition 3, for the running sum: exp((order - 1) (L - sum rho)) is a non-negative supermartingale,
    so Ville's inequality gives it at all times at once.  That holds for one order; to read the smallest of several, fix
    them beforehand and split delta among them.

    Parameters
    ----------
    order : Number
        Above 1.
    delta : Number
        In [1e-300, 1): the chance that the statement is wrong at any moment.

    Attributes
    ----------
    rho : Fraction
        The sum of the losses at the order.

    Raises
    ------
    InvalidValueError
        A number is out of its range.
    """

    order: Fraction
    rho: Fraction

    def __init__(self, order: Number, delta: Number) -> None:
        number = checked_order(order)
        self._start(failure_probability(delta))
        self._set(order=number, rho=Fraction(0))

    def step(self, loss: Loss) -> RenyiOdometer:
        """The odometer after `loss`.

        Raises
        ------
        ConversionError
            The loss has a delta, so that no Renyi divergence bounds it, or says nothing of this order.
        """
        return self._changed(rho=self.rho + renyi_loss(loss, self.order))

    def _boundary(self) -> float:
        if not self.rho:
            return 0.0
        return (binary_up(self.rho) + log_inverse(self.delta) / binary_down(self.order - 1)) * MARGIN


def renyi_loss(loss: Loss, order: Fraction) -> Fraction:
    """The Renyi loss of one order.

    Raises
    ------
    ConversionError
        No theorem bounds it.
    """
    if isinstance(loss, RDP) and loss.orders == (order,):
        return loss.parts[0]
    return convert(loss, RDP, orders=[order]).parts[0]


def checked_order(order: Number) -> Fraction:
    """An order as an exact number.

    Raises
    ------
    InvalidValueError
        It is not above 1, beyond 1e300, so near to 1 that doubles do not tell, or no number.
    """
    number = exact(order, name="order")
    if not Fraction(1, 10**300) <= number - 1 <= 10**300:
        raise InvalidValueError(
            f"order must be greater than 1 and at most 1e300, got {shown(order)}; give for example 2"
        )
    return number
