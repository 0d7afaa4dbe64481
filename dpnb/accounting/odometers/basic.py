"""Basic composition."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpnb.accounting.conversions.directed import checked_delta
from dpnb.accounting.convert import own_epsilon_delta
from dpnb.accounting.exact import Number, decimal_up
from dpnb.accounting.losses import Loss
from dpnb.accounting.odometers.time_uniform import TimeUniformOdometer


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
