"""Time-uniform odometers that add up one number: the Renyi losses of an order, or epsilons."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpnb.accounting.conversions.directed import checked_delta
from dpnb.accounting.convert import convert, own_epsilon_delta
from dpnb.accounting.doubles import MARGIN, failure_probability, log_inverse, order_in_doubles
from dpnb.accounting.exact import Number, binary_down, binary_up, decimal_up
from dpnb.accounting.losses import RDP, Loss
from dpnb.accounting.odometers.time_uniform import TimeUniformOdometer
from dpnb.errors import ConversionError


@dataclass(frozen=True, init=False, repr=False)
class RenyiOdometer(TimeUniformOdometer):
    """With confidence 1 - delta, the realised loss never exceeds sum rho(order) + log(1/delta)/(order - 1).

    Mironov 2017, Proposition 3, for the running sum: exp((order - 1) (L - sum rho)) is a non-negative supermartingale,
    so by Ville's inequality the bound holds at all times at once.  That is for one order; to use the smallest bound of
    several orders, fix them beforehand and split delta among them.

    Parameters
    ----------
    order : Number
        Above 1.
    delta : Number
        In [1e-300, 1): the probability that the statement is ever wrong.

    Attributes
    ----------
    rho : Fraction
        The sum of the losses at the order.

    Raises
    ------
    InvalidValueError
        A number is out of range.

    Examples
    --------
    >>> from dpnb.accounting import GDP, RenyiOdometer
    >>> round(RenyiOdometer(order=10, delta=1e-6).step(GDP(0.5)).bound, 4)
    2.7851
    """

    order: Fraction
    rho: Fraction

    def __init__(self, order: Number, delta: Number) -> None:
        number = order_in_doubles(order)
        self._start(failure_probability(delta))
        self._set(order=number, rho=Fraction(0))

    def step(self, loss: Loss) -> RenyiOdometer:
        return self._changed(rho=self.rho + renyi_loss(loss, self.order))

    def _boundary(self) -> float:
        if not self.rho:
            return 0.0
        return (binary_up(self.rho) + log_inverse(self.delta) / binary_down(self.order - 1)) * MARGIN


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


@dataclass(frozen=True, init=False, repr=False)
class BasicOdometer(TimeUniformOdometer):
    """With confidence 1 - delta, the realised loss never exceeds the sum of epsilon.

    Rogers et al. 2016, Theorem 3.3.  The bound is certain if no loss has a delta, and infinite once the losses' deltas
    add up to more than delta.  PointwiseDP losses need no correction: each is within its epsilon except with
    probability delta.

    Parameters
    ----------
    delta : Number
        In [0, 1): the bound on the sum of the losses' deltas.

    Attributes
    ----------
    epsilon : Fraction
        The sum of the losses' epsilons.

    Raises
    ------
    InvalidValueError
        delta is outside [0, 1).

    Examples
    --------
    >>> from dpnb.accounting import ApproxDP, BasicOdometer
    >>> BasicOdometer(delta=1e-6).step(ApproxDP(0.4, 1e-7)).bound
    0.4
    """

    epsilon: Fraction

    def __init__(self, delta: Number) -> None:
        self._start(checked_delta(delta))
        self._set(epsilon=Fraction(0))

    @property
    def slack(self) -> Fraction:
        """Bound on the sum of the losses' deltas: delta."""
        return self.delta

    @property
    def bound(self) -> float:
        """The sum of epsilon, in nats, rounded up."""
        return self._boundary() if self.deltas <= self.delta else float("inf")

    def step(self, loss: Loss) -> BasicOdometer:
        epsilon, delta = own_epsilon_delta(loss)
        return self._with_deltas(loss, delta, epsilon=self.epsilon + epsilon)

    def _boundary(self) -> float:
        return decimal_up(self.epsilon)
