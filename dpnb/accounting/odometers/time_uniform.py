"""Base classes of the time-uniform odometers: their delta, the sum of the losses' deltas, and the statement."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from dpnb.accounting.convert import convert
from dpnb.accounting.doubles import failure_probability
from dpnb.accounting.exact import Number, binary_up, exact, non_negative, shown
from dpnb.accounting.losses import GDP, RDP, ZCDP, ApproxDP, EpsilonLoss, Loss, PointwiseDP, PureGDP
from dpnb.accounting.losses.epsilon import is_range
from dpnb.accounting.odometers.protocol import Odometer, OdometerKind
from dpnb.accounting.odometers.statements import time_uniform_statement
from dpnb.errors import ConversionError, InvalidValueError

_ZERO = Fraction(0)


@dataclass(frozen=True, init=False, repr=False)
class TimeUniformOdometer(Odometer):
    """Base class of the time-uniform odometers."""

    measure: ClassVar[str] = "epsilon"
    _reading: ClassVar[str] = "loss so far at most"
    _what: ClassVar[str] = "the privacy loss"
    _coins: ClassVar[str] = "the privacy loss of the answers and of the hidden coins behind them"
    delta: Fraction  # the probability that the bound is ever exceeded
    deltas: Fraction  # sum of the losses' deltas
    pointwise: Fraction  # sum of the deltas of PointwiseDP losses, which is added to the bound

    @property
    def kind(self) -> OdometerKind:
        """``"time-uniform"``."""
        return "time-uniform"

    @property
    def failure(self) -> Fraction:
        """The probability that the statement is ever wrong."""
        return self.delta

    @property
    def slack(self) -> Fraction:
        """Bound on the sum of the losses' deltas."""
        return _ZERO

    @property
    def bound(self) -> float:
        if self.deltas > self.slack:
            return math.inf
        bound = self._boundary()
        return math.nextafter(bound + binary_up(self.pointwise), math.inf) if self.pointwise else bound

    def statement(self) -> str:
        bound = self.bound
        return time_uniform_statement(
            bound,
            self.failure,
            costs_nothing=bound == 0 and not self.deltas,
            overspent=self.deltas > self.slack,
            what=self._coins if self.deltas > self.pointwise else self._what,
        )

    def truncated_guarantee(self, threshold: Fraction) -> ApproxDP:
        """The loss of a view that is cut where the bound would exceed a threshold: (threshold, `failure`)-DP.

        Parameters
        ----------
        threshold : Fraction
            Fixed beforehand, at least 0.
        """
        return ApproxDP.of(threshold, self.failure)

    def _boundary(self) -> float:
        """The bound without the correction for PointwiseDP losses, rounded up."""
        raise NotImplementedError

    def _start(self, delta: Fraction) -> None:
        self._set(delta=delta, deltas=_ZERO, pointwise=_ZERO)

    def _with_deltas(self, loss: Loss, delta: Fraction, **changes: object) -> Self:
        """The next state, with the delta of a loss added to its sums."""
        if not delta:
            return self._changed(**changes)
        pointwise = self.pointwise + delta if isinstance(loss, PointwiseDP) else self.pointwise
        return self._changed(deltas=self.deltas + delta, pointwise=pointwise, **changes)


@dataclass(frozen=True, init=False, repr=False)
class IntrinsicTimeOdometer(TimeUniformOdometer):
    """Base class of the three odometers of Whitehouse et al. 2023, Theorem 3: a boundary in V."""

    slack_delta: Fraction  # bound on the sum of the losses' deltas; the confidence is 1 - delta - slack_delta
    v: Fraction  # the sum V of mu^2 for GDP losses, 2 rho for zCDP losses and epsilon^2 for DP losses

    @property
    def failure(self) -> Fraction:
        """The probability that the statement is ever wrong: delta + slack_delta."""
        return self.delta + self.slack_delta

    @property
    def slack(self) -> Fraction:
        """Bound on the sum of the losses' deltas: slack_delta."""
        return self.slack_delta

    def bound_at(self, v: Number) -> float:
        """The bound at V = `v` without PointwiseDP losses, rounded up; 0 at 0.

        Parameters
        ----------
        v : Number
            At least 0.

        Raises
        ------
        InvalidValueError
            `v` is negative, not finite or not a number.

        Examples
        --------
        >>> from dpnb.accounting import GDP, MixtureOdometer
        >>> round(MixtureOdometer.tuned(v=1, delta=1e-6).bound_at(1), 3)
        6.038
        """
        number = non_negative(v, name="v")
        return self._curve(number) if number else 0.0

    def step(self, loss: Loss) -> Self:
        v, delta = intrinsic_time(loss)
        return self._with_deltas(loss, delta, v=self.v + v)

    def _curve(self, v: Fraction) -> float:
        """The boundary plus V/2 at V > 0, rounded up."""
        raise NotImplementedError

    def _boundary(self) -> float:
        return self._curve(self.v) if self.v else 0.0

    def _open(self, delta: Number, slack_delta: Number) -> None:
        number, slack = failure_probability(delta), exact(slack_delta, name="slack_delta")
        if not 0 <= slack < 1 - number:
            raise InvalidValueError(
                f"slack_delta must be at least 0 and less than 1 - delta, got {shown(slack_delta)}; give for example "
                "1e-6, or 0 if no loss has a delta"
            )
        self._start(number)
        self._set(slack_delta=slack, v=_ZERO)


def for_intrinsic_time(loss: Loss) -> Loss:
    """The same loss as zCDP if it has an epsilon, for which V then grows by 2 epsilon tanh(epsilon/2)."""
    return convert(loss, ZCDP) if isinstance(loss, EpsilonLoss | PureGDP) else loss


def intrinsic_time(loss: Loss) -> tuple[Fraction, Fraction]:
    """The amount that a loss adds to V, and its delta.

    mu^2 for GDP, 2 rho for zCDP and, as in Whitehouse et al. 2023, Theorem 3, epsilon^2 for a DP loss
    (for PureGDP both; for Repeated the sum of those of its mechanisms), and range^2/4 for a bounded range:
    by Hoeffding's lemma a loss in an interval of that length, less its mean, is sub-Gaussian with this variance, and
    the mean, a Kullback-Leibler divergence, is at most half of it (Cesar and Rogers 2021, at order 1);
    ``convert(loss, ZCDP)`` beforehand gives 2 epsilon tanh(epsilon/2) instead, which is smaller, and less for a range.

    Raises `ConversionError` for RDP of some orders, which has no such amount.
    """
    if isinstance(loss, GDP):
        mu_squared, delta = loss.parts
        return mu_squared, delta
    if isinstance(loss, ZCDP):
        return 2 * loss.rho, loss.delta
    if is_range(loss):
        return loss.parts[0] ** 2 / (4 * loss.count), _ZERO
    if isinstance(loss, EpsilonLoss):
        return loss.epsilon * loss.epsilon / loss.count, loss.delta
    if isinstance(loss, PureGDP):
        return loss.epsilon * loss.epsilon + loss.mu_squared, loss.delta
    if isinstance(loss, RDP) and not loss:
        return _ZERO, _ZERO
    raise ConversionError(
        f"loss: V counts GDP, ZCDP, PureDP, ApproxDP and PointwiseDP, got {type(loss).__name__} "
        f"{shown(loss)}; use RenyiOdometer or RDPAccumulator, which count one order"
    )
