"""The base classes of all odometers, and their statements as sentences."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Literal, Self

from dpnb.accounting.convert import convert
from dpnb.accounting.exact import (
    Frozen,
    Number,
    binary_up,
    decimal_up,
    display_up,
    exact,
    failure_probability,
    from_text,
    non_negative,
    shown,
    to_text,
)
from dpnb.accounting.losses import GDP, RDP, ZCDP, ApproxDP, EpsilonLoss, Loss, PointwiseDP, PureGDP
from dpnb.accounting.losses.epsilon import is_range
from dpnb.copying import safe_repr
from dpnb.errors import ConversionError, InvalidValueError

_ZERO = Fraction(0)
_NOTHING = "Nothing has been released that costs anything, so "
INSIDE_EVERY_BUDGET = f"{_NOTHING}everything so far is inside every budget."
"""The sentence of an accumulator of nothing."""

OdometerKind = Literal["time-uniform", "accumulator"]


def order_text(order: Fraction) -> str:
    """An order as a person would write it: ``8``, ``2.5``, ``7/3``."""
    double = decimal_up(order)
    return f"{double:g}" if from_text(to_text(order)) == Fraction(f"{double:g}") else to_text(order)


@lru_cache(maxsize=1024)  # each odometer has one
def confidence_text(failure: Fraction) -> str:
    """1 - failure as a percentage, rounded down by at most a hundredth of failure."""
    if not failure:
        return "100%"
    # Digits after the point at which one unit, in percent, is between a hundredth and a thousandth of failure.
    places = max(0, math.ceil(-math.log10(binary_up(failure))))
    if places > 12:
        with localcontext(prec=3, rounding=ROUND_CEILING):
            return f"1 - {(Decimal(failure.numerator) / Decimal(failure.denominator)).normalize():g}"
    units = math.floor(100 * (1 - failure) * 10**places)
    return f"{Decimal(units).scaleb(-places).normalize():f}%"


@dataclass(frozen=True, init=False, repr=False)
class Odometer(Frozen):
    """Base class of all odometers; every odometer is frozen.

    Examples
    --------
    >>> from dpnb.accounting import GDP, GDPAccumulator, Odometer
    >>> isinstance(GDPAccumulator(), Odometer)
    True
    >>> GDPAccumulator().step(GDP(0.3)).step(GDP(0.4)).bound
    0.5
    """

    #: The measure that is bounded: "epsilon", "rho", "mu", "rdp" or "spent".
    measure: ClassVar[str]
    _reading: ClassVar[str] = ""

    @property
    def kind(self) -> OdometerKind:
        """The meaning of the bound: ``"time-uniform"`` or ``"accumulator"``."""
        raise NotImplementedError

    @property
    def bound(self) -> float:
        """The current bound, in nats (mu has no unit), rounded up; infinite where nothing is proved."""
        raise NotImplementedError

    def step(self, loss: Loss) -> Self:
        """The odometer after the loss; a loss counts from the launch of its release, before the answer is seen.

        Parameters
        ----------
        loss : Loss
            The loss of one release.

        Raises
        ------
        ConversionError
            The odometer cannot count the loss.

        Examples
        --------
        >>> from dpnb.accounting import GDP, GDPAccumulator, MixtureOdometer
        >>> GDPAccumulator().step(GDP(mu="0.5")).bound
        0.5
        >>> round(MixtureOdometer.tuned(v=1, delta=1e-6).step(GDP(mu=1)).bound, 3)
        6.038
        """
        raise NotImplementedError

    def after_repeated(self, loss: Loss, count: int) -> Self:
        """The odometer after equal losses.

        Parameters
        ----------
        loss : Loss
            The loss of one release.
        count : int
            The number of releases.
        """
        return self.step(loss.with_parts(tuple(count * part for part in loss.parts)))

    def statement(self) -> str:
        """The reading in words; all numbers are rounded in the safe direction.

        Examples
        --------
        >>> from dpnb.accounting import GDP, MixtureOdometer
        >>> print(MixtureOdometer.tuned(v=1, delta=1e-6).step(GDP(mu=1)).statement())
        With confidence 99.9999%, the privacy loss so far is at most 6.038, at whatever moment you look.
        >>> from dpnb.accounting import GDPAccumulator
        >>> print(GDPAccumulator().step(GDP(mu="0.5")).statement())
        Everything so far is inside every budget of mu-GDP that was fixed beforehand and whose mu is at least 0.5.
        """
        raise NotImplementedError

    @property
    def words(self) -> str:
        """The reading in few words, for example ``mu 0.5``."""
        bound = self.bound
        return f"{self._reading or self.measure} {display_up(bound)}" if bound < math.inf else "unbounded"

    @safe_repr
    def __repr__(self) -> str:
        pairs = ((field.name, getattr(self, field.name)) for field in fields(self))
        shown = ((name, decimal_up(value) if isinstance(value, Fraction) else value) for name, value in pairs)
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in shown)})"


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
        if bound == 0 and not self.deltas:
            return f"{_NOTHING}the privacy loss so far is 0."
        if self.deltas > self.slack:
            return "The deltas so far are more than was set aside for them, so no number bounds the privacy loss."
        if bound == math.inf:
            return "No number is known to bound the privacy loss so far."
        # The loss of the answers, or of a view that determines them.
        what = self._coins if self.deltas > self.pointwise else self._what
        return (
            f"With confidence {confidence_text(self.failure)}, {what} so far is at most {display_up(bound)},"
            " at whatever moment you look."
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
